"""Hostile HTTP/2 frames. Each attack is repeated on fresh connections until the good
client has been beside it for a second; each time it must be cut off within its bound."""
import struct
import time

import pytest

from attacker import *  # noqa: F403
from run.process import wait_until

RESET_BURST, RESETS_PER_S = 100, 20
GLITCH_BURST, GLITCHES_PER_S = 1000, 100
CONTINUATIONS = 8
STEP = 10
STALL, LATE = 1, 3   # `write_stall` and its kin here; and what a sweep and a slow machine add


def assert_calm(attacker):
    assert attacker.goaway and attacker.goaway[1] == CALM, attacker.goaway


def assert_bucket(attack, attacker, sent, weight, burst=GLITCH_BURST, per_s=GLITCHES_PER_S):
    """Cut off with ENHANCE_YOUR_CALM as soon as the bucket had to be full."""
    seconds = time.monotonic() - attacker.began
    assert_calm(attacker)
    bound = (burst + per_s * seconds) / weight + STEP
    assert burst / weight - STEP <= sent <= bound, (sent, bound)
    attack.note(f"GOAWAY ENHANCE_YOUR_CALM after {sent} frames")


# ---- resets (rows 1, 2, 12, 13) ------------------------------------------------

def test_01_rapid_reset_in_one_batch(field, attack):
    """A stream that is reset before its batch was read costs nothing behind us."""
    before = len(field.upstream.seen)
    for _ in attack.goes_on():
        with field.attacker() as attacker:
            streams = b"".join(attacker.request("/app/free/x")
                               + frame(RST, 0, attacker.stream - 2, number(CANCEL))
                               for _ in range(300))
            try:
                attacker.send(streams)
                attacker.wait_cut(5)
            except Cut:
                pass
            assert_calm(attacker)
            served = (attacker.goaway[0] + 1) // 2
            assert served <= RESET_BURST + 2, served
            attack.note(f"GOAWAY ENHANCE_YOUR_CALM at stream {served}")
    assert len(field.upstream.seen) == before


def test_01_rapid_reset_of_a_hundred_thousand(field, attack):
    """Records cut frames anywhere, so the last stream of a batch may be dispatched."""
    before, cuts, tries = len(field.upstream.seen), field.cuts("resets"), 0
    for tries in attack.goes_on():
        with field.attacker() as attacker:
            attacker.ask("/app/free/x")  # fills both tables
            pair = attacker.block("/app/free/x")
            sent = attacker.flood(lambda: frame(HEADERS, 5, attacker.take_stream(), pair)
                                  + frame(RST, 0, attacker.stream - 2, number(CANCEL)),
                                  100_000, step=1000)
            assert attacker.is_cut and sent < 100_000
            attack.note(f"cut with {sent} sent")
    wait_until(lambda: field.cuts("resets") - cuts == tries + 1, 5, "each cut for its resets")
    assert len(field.upstream.seen) - before <= 200 * (tries + 1)


def test_01_rapid_reset_after_dispatch(field, attack):
    """Fifty hang at the application; one is reset and another opened, again and again."""
    for _ in attack.goes_on():
        before = len(field.upstream.seen)
        with field.attacker() as attacker:
            hanging = [attacker.stream + 2 * n for n in range(50)]
            attacker.send(b"".join(attacker.request("/app/free/hang") for _ in hanging))
            resets = 0
            try:
                while resets < 1000 and not attacker.is_cut:
                    hanging.append(attacker.stream)
                    attacker.send(frame(RST, 0, hanging.pop(0), number(CANCEL))
                                  + attacker.request("/app/free/hang")
                                  + attacker.request(field.flag))
                    resets += 1
                    attacker.wait(attacker.stream - 2)
            except Cut:
                pass
            attacker.read(0.2)
            assert_bucket(attack, attacker, resets, 1, RESET_BURST, RESETS_PER_S)
        assert len(field.upstream.seen) - before <= len(hanging) + resets


def test_01_honest_resets_of_finished_streams_are_not_cut(field, attack):
    finished = 0
    with field.attacker() as attacker:
        for _ in attack.goes_on(least=6):
            for _ in range(100):
                stream = attacker.ask(field.flag)
                attacker.send(frame(RST, 0, stream, number(CANCEL)))
                finished += 1
        attacker.ask(field.flag)
        assert not attacker.is_cut and finished >= 600
    attack.note(f"not cut in {finished}")


def window_overflow(field, attacker):
    return (attacker.request(field.line, END_HEADERS, "POST")
            + frame(WINDOW, 0, attacker.stream - 2, number(BIG_WINDOW)))


def zero_window_update(field, attacker):
    return (attacker.request(field.line, END_HEADERS, "POST")
            + frame(WINDOW, 0, attacker.stream - 2, number(0)))


def upper_case_field(field, attacker):
    return attacker.request(field.flag, more=[("X-Upper", "y")])


def empty_name(field, attacker):
    return frame(HEADERS, 5, attacker.take_stream(), attacker.block(field.flag) + b"\x00\x00\x01v")


def longer_than_its_length(field, attacker):
    return (attacker.request(field.holds, END_HEADERS, "POST", [("content-length", "5")])
            + frame(DATA, END_STREAM, attacker.stream - 2, b"123456789"))


RESETTING = [window_overflow, zero_window_update, upper_case_field, empty_name, longer_than_its_length]


@pytest.mark.parametrize("is_going", [False, True], ids=["as it is", "after GOAWAY"])
def test_02_12_13_made_you_reset(field, attack, is_going):
    """Resets that we were made to send count as the client's, whatever made us."""
    for turn in attack.goes_on(least=len(RESETTING)):
        make = RESETTING[turn % len(RESETTING)]
        with field.attacker() as attacker:
            if is_going:
                attacker.send(frame(GOAWAY, 0, 0, number(0) + number(0)))
            sent = attacker.flood(lambda: make(field, attacker), 3000, STEP, probe=field.flag)
            assert_bucket(attack, attacker, sent, 1, RESET_BURST, RESETS_PER_S)
            assert set(attacker.reset.values()) <= {PROTOCOL, FLOW}, attacker.reset


# ---- heads (rows 3, 4, 5, 6) ---------------------------------------------------

@pytest.mark.parametrize("piece", [b"", b"\x00\x01x\x7f\x00" + b"v" * 127, b"\xbe" * 16000],
                         ids=["empty", "a field each", "full"])
def test_03_continuation_flood(field, attack, piece):
    for _ in attack.goes_on():
        with field.attacker() as attacker:
            first = attacker.block("/", more=[("x", "y")])  # 0xbe is there from now on
            attacker.send(frame(HEADERS, END_STREAM, 1, first)
                          + frame(CONTINUATION, 0, 1, piece) * CONTINUATIONS)
            assert not attacker.read(0.1) or not attacker.is_cut  # 8 are good
            sent = CONTINUATIONS
            try:
                while sent < 10_000 and not attacker.is_cut:
                    attacker.send(frame(CONTINUATION, 0, 1, piece))
                    sent += 1
                    attacker.read(0.05)
            except Cut:
                pass
            assert_calm(attacker)
            assert sent <= CONTINUATIONS + 10
            attack.note(f"GOAWAY ENHANCE_YOUR_CALM at frame {CONTINUATIONS + 1}")


def test_03_head_over_eight_continuations_is_served(field, attack):
    for _ in attack.goes_on(20):
        with field.attacker() as attacker:
            block = attacker.block(field.flag)
            attacker.send(frame(HEADERS, END_STREAM, 1, block[:1])
                          + b"".join(frame(CONTINUATION, 0, 1, block[at:at + 1])
                                     for at in range(1, CONTINUATIONS))
                          + frame(CONTINUATION, END_HEADERS, 1, block[CONTINUATIONS:]))
            attacker.wait(1)
            assert attacker.status[1] == 200
    attack.note("served")


def bomb(attacker, name, value, times):
    """One entry of the table, pointed at again and again in the same block."""
    length = b"\x7f" + varint(len(value) - 127) if len(value) >= 127 else bytes([len(value)])
    entry = b"\x40" + bytes([len(name)]) + name + length + value
    # Only fields of the static table and literals stand before it: 0xbe is the entry.
    head = b"\x82\x87\x84\x01" + bytes([len(attacker.authority)]) + attacker.authority.encode()
    return head + entry + b"\xbe" * times


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([128 | value % 128])
        value //= 128
    return out + bytes([value])


@pytest.mark.parametrize("name, value, times", [(b"cookie", b"a", 16000), (b"x", b"v" * 4000, 12000)],
                         ids=["04_cookie_crumbs", "05_big_entry"])
def test_header_bomb(field, attack, name, value, times):
    """Refused by its size as counted before crumbs are joined; nothing is kept. Its windows are shut,
    and drip, so that no answer goes out; after a hundred such heads the connection is over."""
    for _ in attack.goes_on():
        with field.attacker(settings=[(INITIAL_WINDOW, 0)]) as attacker:
            block = bomb(attacker, name, value, times)
            heads = 0
            try:
                while heads < 300 and not attacker.is_cut:
                    attacker.send(frame(HEADERS, 5, attacker.take_stream(), block)
                                  + (frame(WINDOW, 0, 1, number(1)) if heads % 20 == 10 else b""))
                    heads += 1
                    attacker.read(0.001)
                attacker.wait_cut(STALL + LATE)
            except Cut:
                pass
            assert attacker.is_cut
            assert set(attacker.status.values()) <= {431}, attacker.status
            assert len(attacker.status) <= 102
            attack.note(f"431 each, cut after {len(attacker.status)} heads")


@pytest.mark.parametrize("count, status", [(90, 200), (150, 431)])
def test_04_crumbs_are_counted_each(field, attack, count, status):
    """An honest browser's ninety pass; more than a hundred fields do not, whatever they join to."""
    for _ in attack.goes_on(20):
        with field.attacker() as attacker:
            stream = attacker.ask(field.flag, more=[("cookie", f"c{n}=1") for n in range(count)])
            assert attacker.status[stream] == status
            stream = attacker.ask(field.flag)
            assert attacker.status[stream] == 200
    attack.note(str(status))


FAULTS = {"index beyond the table": b"\xbe", "index 0": b"\x80",
          "integer overflow": b"\xff" * 9 + b"\x7f", "table above the limit": b"\x3f\xe2\x1f\x82",
          "padding of Huffman": b"\x00\x81\xff\x00", "table size behind a field": b"\x82\x20"}


def test_06_hpack_faults_are_compression_errors(field, attack):
    for turn in attack.goes_on(least=len(FAULTS)):
        what, block = list(FAULTS.items())[turn % len(FAULTS)]
        with field.attacker() as attacker:
            attacker.send(frame(HEADERS, 5, 1, block))
            attacker.wait_cut(5)
            assert attacker.goaway and attacker.goaway[1] == COMPRESSION, (what, attacker.goaway)
    attack.note("GOAWAY COMPRESSION_ERROR at once")


# ---- floods (rows 7 to 11) -----------------------------------------------------

@pytest.mark.parametrize("weight, flood", [
    (1, frame(PING, 0, 0, b"12345678")), (10, frame(SETTINGS, 0, 0)),
    (1, frame(PRIORITY, 0, 1001, b"\0\0\0\0\x10")),
    (1, frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=3")), (1, frame(WINDOW, 0, 0, number(1))),
    (1, frame(77, 0, 0, b"x")), (10, frame(GOAWAY, 0, 0, bytes(8)))],
    ids=["07_ping", "08_settings", "10_priority", "10_priority_update", "11_window_update",
         "11_unknown_type", "11_goaway"])
def test_flood(field, attack, weight, flood):
    for _ in attack.goes_on():
        with field.attacker() as attacker:
            sent = attacker.flood(lambda: flood, 20_000, STEP, probe=field.flag)
            assert_bucket(attack, attacker, sent, weight)


@pytest.mark.parametrize("pad", [None, 255], ids=["09_empty_data", "11_padding_only"])
def test_flood_of_data_without_data(field, attack, pad):
    """The stream stays open: its body never comes."""
    for _ in attack.goes_on():
        with field.attacker() as attacker:
            attacker.send(attacker.request("/app/free/x", END_HEADERS, "POST"))
            empty = frame(DATA, 0, 1) if pad is None else frame(DATA, PADDED, 1,
                                                                bytes([pad]) + bytes(pad))
            sent = attacker.flood(lambda: empty, 20_000, STEP, probe=field.flag)
            assert_bucket(attack, attacker, sent, 10)


def test_09_empty_trailers_are_reset(field, attack):
    for _ in attack.goes_on():
        with field.attacker() as attacker:
            def empty_headers():
                return (attacker.request("/app/free/x", END_HEADERS, "POST")
                        + frame(HEADERS, END_HEADERS, attacker.stream - 2))
            sent = attacker.flood(empty_headers, 3000, STEP, probe=field.flag)
            assert_bucket(attack, attacker, sent, 1, RESET_BURST, RESETS_PER_S)


@pytest.mark.parametrize("kind", [77, SETTINGS], ids=["unknown", "settings of 33"])
def test_11_useless_bytes(field, attack, kind):
    """Bytes of no use are counted too: 2 MiB of them, an eighth of which is above 256 KiB."""
    for _ in attack.goes_on():
        with field.attacker() as attacker:
            big = (frame(77, 0, 0, bytes(16384)) if kind == 77 else
                   frame(SETTINGS, 0, 0, struct.pack(">HI", 99, 1) * 33))
            sent = attacker.flood(lambda: big, 400, 1, probe=field.flag)
            assert_calm(attacker)
            bound = 8 * 256 * 1024 / 16384 + 4 if kind == 77 else 2
            assert sent <= bound, (sent, bound)
            attack.note(f"GOAWAY ENHANCE_YOUR_CALM after {sent} frames")


@pytest.mark.parametrize("flood", [frame(PING, 0, 0, b"12345678"), frame(SETTINGS, 0, 0)],
                         ids=["07_ping", "08_settings"])
def test_flood_of_one_who_never_reads(field, attack, flood):
    for _ in attack.goes_on():
        before = field.cuts("glitches")
        with field.attacker(rcvbuf=4096) as attacker:
            attacker.read(1)
            sent, chunk = 0, flood * 2000
            try:
                while sent < 300_000:
                    attacker.send(chunk, seconds=5)
                    sent += 2000
            except (Cut, TimeoutError):
                pass
            wait_until(lambda: field.cuts("glitches") > before, STALL + LATE, "the flood cut")
            attack.note(f"cut with {sent} sent")


# ---- windows (rows 14, 15) -----------------------------------------------------

@pytest.mark.parametrize("window", [0, 1])
@pytest.mark.parametrize("what", ["flag", "big"])
def test_14_window_that_stays_shut(field, attack, window, what):
    path = field.flag if what == "flag" else "/app/free/big"
    with field.attacker(settings=[(INITIAL_WINDOW, window)]) as attacker:
        streams = [attacker.stream + 2 * n for n in range(50 if what == "flag" else 10)]
        attacker.send(b"".join(attacker.request(path) for _ in streams))
        began = time.monotonic()
        try:
            for stream in streams:
                attacker.wait(stream, STALL + LATE)
            seconds = time.monotonic() - began
            assert set(attacker.reset.values()) == {CANCEL}, attacker.reset
            assert seconds >= 0.45 * STALL
            attack.note(f"RST CANCEL after {seconds:.1f} s")
        except Cut:
            attack.note(f"closed after {time.monotonic() - began:.1f} s")


@pytest.mark.parametrize("what", ["flag", "big"])
def test_14_window_that_drips(field, attack, what):
    """One byte now and then is no progress."""
    path = field.flag if what == "flag" else "/app/free/big"
    with field.attacker(settings=[(INITIAL_WINDOW, 0)]) as attacker:
        attacker.send(attacker.request(path))
        began = time.monotonic()
        while 1 not in attacker.ended and not attacker.is_cut:
            assert time.monotonic() < began + STALL + LATE
            attacker.send(frame(WINDOW, 0, 1, number(1)))
            pause = time.monotonic() + 0.1
            while (left := pause - time.monotonic()) > 0 and not attacker.is_cut:
                attacker.read(left)
        seconds = time.monotonic() - began
        assert attacker.is_cut or attacker.reset == {1: CANCEL}, attacker.reset
        assert seconds >= 0.45 * STALL
        attack.note(f"{'closed' if attacker.is_cut else 'RST CANCEL'} after {seconds:.1f} s")


def test_14_window_of_the_connection_stays_shut(field, attack):
    with field.attacker(settings=[(INITIAL_WINDOW, BIG_WINDOW)], gives=False) as attacker:
        streams = [1, 3, 5]
        attacker.send(b"".join(attacker.request("/app/free/big") for _ in streams))
        began = time.monotonic()
        try:
            for stream in streams:
                attacker.wait(stream, STALL + LATE)
            assert set(attacker.reset.values()) == {CANCEL}, attacker.reset
        except Cut:
            pass
        attack.note(f"RST CANCEL after {time.monotonic() - began:.1f} s")


@pytest.mark.parametrize("what", ["flag", "big"])
def test_15_window_open_and_never_read(field, attack, what):
    """The big ones stall and are given up; of the small ones more are open than may be,
    as none is taken."""
    path = field.flag if what == "flag" else "/app/free/big"

    def cuts():
        return field.cuts("timeout") + field.cuts("protocol")
    before = cuts()
    with field.attacker(settings=[(INITIAL_WINDOW, BIG_WINDOW)], rcvbuf=4096) as attacker:
        attacker.send(frame(WINDOW, 0, 0, number(BIG_WINDOW - 65535)))
        began, sent = time.monotonic(), 0
        try:
            while sent < (200_000 if what == "flag" else 60):
                attacker.send(b"".join(attacker.request(path) for _ in range(20)),
                              seconds=STALL + LATE)
                sent += 20
        except (Cut, TimeoutError):
            pass
        assert sent < 200_000, "its requests were read without end"
        wait_until(lambda: cuts() > before or field.nothing_waits(), STALL + LATE + 1,
                   "the deaf one cut, or its streams given up")
        what = "closed" if cuts() > before else "streams given up"
        attack.note(f"{what} after {time.monotonic() - began:.1f} s, {sent} requests sent")


# ---- order (rows 16, 17, 18, 19) -----------------------------------------------

ORDERS = {
    "even": (PROTOCOL, lambda block: frame(HEADERS, 5, 2, block)),
    "lower": (PROTOCOL, lambda block: frame(HEADERS, 5, 5, block) + frame(HEADERS, 5, 3, block)),
    "stream 0": (PROTOCOL, lambda block: frame(HEADERS, 5, 0, block)),
    "data on idle": (PROTOCOL, lambda _: frame(DATA, 1, 9, b"x")),
    "reset on idle": (PROTOCOL, lambda _: frame(RST, 0, 9, number(CANCEL))),
    "window on idle": (PROTOCOL, lambda _: frame(WINDOW, 0, 9, number(1))),
    "push": (PROTOCOL, lambda _: frame(PUSH, END_HEADERS, 1, number(2) + b"\x82")),
    "continuation alone": (PROTOCOL, lambda _: frame(CONTINUATION, END_HEADERS, 1, b"\x82")),
    "frame within a head": (PROTOCOL, lambda _: frame(HEADERS, END_STREAM, 1, b"\x82")
                            + frame(PING, 0, 0, bytes(8))),
    "window by 0": (PROTOCOL, lambda _: frame(WINDOW, 0, 0, number(0))),
    "window overflow": (FLOW, lambda _: frame(WINDOW, 0, 0, number(BIG_WINDOW))),
    "short ping": (SIZE, lambda _: frame(PING, 0, 0, b"short")),
    "settings length": (SIZE, lambda _: frame(SETTINGS, 0, 0, b"12345")),
    "frame too long": (SIZE, lambda _: frame(77, 0, 0, bytes(16385))),
}


def test_16_frames_out_of_order(field, attack):
    for turn in attack.goes_on(least=len(ORDERS)):
        what, (code, make) = list(ORDERS.items())[turn % len(ORDERS)]
        with field.attacker() as attacker:
            attacker.send(make(attacker.block(field.flag)))
            attacker.wait_cut(5)
            assert attacker.goaway and attacker.goaway[1] == code, (what, attacker.goaway)
            attack.note(f"GOAWAY {CODES[code]} at once")


@pytest.mark.parametrize("body", [b"", b"x"], ids=["never comes", "never ends"])
def test_17_body(field, attack, body):
    """The gateway's own interface wants it whole; an application behind is not asked for it."""
    before = len(field.upstream.seen)
    for path in (field.holds, "/app/free/x"):
        with field.attacker() as attacker:
            fields = [("idempotency-key", "k"), ("authorization", f"Bearer {field.shop.token()}")]
            streams = [attacker.stream + 2 * n for n in range(50)]
            attacker.send(b"".join(attacker.request(path, END_HEADERS, "POST", fields)
                                   + frame(DATA, 0, stream, body) for stream in streams))
            began = time.monotonic()
            for stream in streams:
                attacker.wait(stream, STALL + LATE)
            seconds = time.monotonic() - began
            assert seconds >= 0.9 * STALL
            assert set(attacker.status.values()) <= {408}, attacker.status
            assert len(attacker.status) == 50 or set(attacker.reset) == set(streams)
            wait_until(lambda: attacker.read(0.1) and set(attacker.reset) >= set(streams), 4,
                       "every stream reset")
            attack.note(f"408 after {seconds:.1f} s, then RST NO_ERROR")
            assert set(attacker.reset.values()) == {NO_ERROR}
    assert len(field.upstream.seen) == before


@pytest.mark.parametrize("first", [b"", frame(HEADERS, END_STREAM, 1, b"\x82")],
                         ids=["head", "continuation"])
def test_18_head_that_drips(field, attack, first):
    with field.attacker() as attacker:
        attacker.send(first)
        drip = iter(frame(CONTINUATION if first else HEADERS, 5, 1, bytes(200)))
        began = time.monotonic()
        try:
            while not attacker.is_cut:
                assert time.monotonic() < began + STALL + LATE
                attacker.send(bytes([next(drip)]))
                attacker.read(0.05)
        except Cut:
            pass
        attack.note(f"closed after {time.monotonic() - began:.1f} s")


@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"PRI * HTT", PREFACE],
                         ids=["silence", "HTTP/1.1", "half a preface", "no settings"])
def test_19_no_preface(field, attack, first):
    with field.attacker(opens=False, acknowledges=False) as attacker:
        attacker.send(first)
        seconds = attacker.wait_closed(STALL + LATE)
        assert not attacker.status and len(attacker.buffer) < 9
        attack.note(f"closed after {seconds:.1f} s")


# ---- connections (rows 8, 20, 21, 22) ------------------------------------------

def test_08_settings_never_acknowledged(field, attack):
    with field.attacker(acknowledges=False) as attacker:
        seconds = attacker.wait_cut(13)
        assert attacker.goaway[1] == SETTINGS_TIMEOUT and seconds >= 9, (attacker.goaway, seconds)
        attack.note(f"GOAWAY SETTINGS_TIMEOUT after {seconds:.1f} s")


def test_22_methods_and_protocols_that_are_not_offered(field, attack):
    for _ in attack.goes_on(20):
        with field.attacker() as attacker:
            connect = attacker.encoder.encode([(":method", "CONNECT"), (":authority", "127.0.0.1")])
            attacker.send(frame(HEADERS, 5, attacker.take_stream(), connect))
            attacker.wait(1)
            assert attacker.reset.get(1) == PROTOCOL or attacker.status.get(1) == 405
            extended = attacker.encoder.encode([
                (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"),
                (":path", "/"), (":authority", attacker.authority)])
            attacker.send(frame(HEADERS, 5, attacker.take_stream(), extended))
            attacker.wait(3)
            assert attacker.reset.get(3) == PROTOCOL
            upgrade = attacker.ask(field.flag, more=[("upgrade", "h2c"), ("connection", "upgrade")])
            assert attacker.reset.get(upgrade) == PROTOCOL
            status = attacker.encoder.encode([(":status", "103")])
            attacker.send(frame(HEADERS, 4, attacker.take_stream(), status))
            attacker.wait(attacker.stream - 2)
            assert attacker.reset.get(attacker.stream - 2) == PROTOCOL
            assert not attacker.is_cut
            # Trailers are dropped: the application gets the body and none of them.
            stream = attacker.stream
            attacker.send(attacker.request("/app/free/x", END_HEADERS, "POST")
                          + frame(DATA, 0, stream, b"body")
                          + frame(HEADERS, 5, stream, attacker.encoder.encode([("x-trailer", "t")])))
            attacker.wait(stream)
            head, body = field.upstream.seen[-1]
            assert attacker.status[stream] == 200 and body == b"body" and "x-trailer" not in head
    attack.note("RST PROTOCOL_ERROR; trailers dropped")
