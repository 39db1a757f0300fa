"""Requests that want to be taken for something else: another path, another person,
another answer for others."""
import concurrent.futures
import datetime
import json
import random
import struct
import time

import pytest

from attacker import *  # noqa: F403
from beside import beside
from h2client import H2
from run.process import wait_until
from shopper import API, Shopper, decode_jwt

LATE = 3  # seconds that a slow machine adds


def loosely(field, **more):
    """A connection that may say anything, from an address of its own."""
    return H2(field.stack.url, field.stack.ca, validate=False,
              always={"x-forwarded-for": field.shop.address()}, **more)


# ---- paths and hosts (rows 38, 39, 51) ---------------------------------------------

def spellings():
    """Sixty ways to say the paths of the interface and of the operators."""
    for path in ("/admin", "/v1/sales", "/metrics", "/_sluice/v1/sales/SALE"):
        yield from (path.replace("/", "//", 1), "/." + path, "/x/.." + path, "/%2e" + path,
                    "/x/%2e%2e" + path, path + "/.", path + "%00", path + "\\", path + ";x",
                    path + "%20", path.replace("/", "/%2f", 1), path.upper(), path + "/..",
                    path.replace("/", "/\\", 1), path + "#x")


def test_39_spellings_of_paths(field, attack):
    """Each is refused or is nothing; the application behind sees none."""
    paths = [path.replace("SALE", field.sale) for path in spellings()]
    assert len(set(paths)) == 60
    before = len(field.upstream.seen)
    for _ in attack.goes_on(10):
        with loosely(field) as connection:
            answers = {path: connection.get(path) for path in paths}
    odd = {path: answer for path, answer in answers.items() if answer.status not in (400, 404)}
    assert not odd and len(field.upstream.seen) == before, odd
    attack.note(f"{len(paths)} spellings: 400 or 404")


def test_39_spellings_within_a_gated_path(field, attack):
    """What a rule lets through free cannot be reached around, nor left by dots."""
    before = len(field.upstream.seen)
    tails = ["/app/free/../x", "/app/free/%2e%2e/x", "/app/free/..%2fx", "/app/free//x", "/app/free/.%2e/x",
             "/app/./free/x", "/app/free%2f..%2fx", "/app/free/x\\..\\y", "/app/%66ree/x"]
    for _ in attack.goes_on(10):
        with loosely(field) as connection:
            for path in tails:
                answer = connection.get(path, {"accept": "application/json"})
                # Spelled otherwise it is another path: gated, or refused.
                assert answer.status in (202, 400, 401, 404), (path, answer)
    assert len(field.upstream.seen) == before
    attack.note("refused or gated")


AUTHORITIES = ["admin@127.0.0.1", "127.0.0.1,evil.test", "evil.test", "127.0.0.1:99999999",
               "127.0.0.1:x", "127.0.0.1%00", "[::1", "LOCALHOST.evil.test"]


def test_38_authorities(field, attack):
    for _ in attack.goes_on(10):
        with loosely(field) as connection:
            for authority in AUTHORITIES:
                for host in ({}, {"host": "127.0.0.1"}):
                    answer = connection.get(field.line, host, authority=authority)
                    assert answer.status in (400, 421) or answer.reset == PROTOCOL, (authority, answer)
    attack.note("400, 421 or RST")


def test_51_nothing_of_the_operators_on_the_public_port(field, attack):
    unknown = None
    token = field.stack.admin.token
    paths = ["/metrics", "/readyz", "/healthz", "/v1/sales", f"/v1/sales/{field.sale}", "/v1/audit",
             "/v1/invariant", "/v1/snapshot", f"/v1/sales/{field.sale}/pause", "/_sluice/metrics",
             "/_sluice/v1/audit", "/_sluice/v1/invariant", "/_sluice/v1/snapshot", "/_sluice/admin"]
    for _ in attack.goes_on(10):
        with loosely(field) as connection:
            unknown = connection.get("/nothing/here")
            for path in paths:
                for headers in ({}, {"authorization": f"Bearer {token}"}):
                    answer = connection.get(path, headers)
                    assert (answer.status, answer.body) == (404, unknown.body), (path, answer)
    attack.note("the 404 of any unknown path")


# ---- smuggling and identity (rows 36, 37, 40, 41, 42) ------------------------------

def test_36_what_goes_to_the_application(field, attack):
    """Its head is ours: our own content-length, no field that steers a connection."""
    for _ in attack.goes_on(10):
        with loosely(field) as connection:
            for name, value in (("transfer-encoding", "chunked"), ("connection", "close"),
                                ("content-length", "5"), ("content-length", "+4"),
                                ("content-length", "4,4"), ("x", "a\r\nevil: 1"), ("x", "a\0b"),
                                ("te", "chunked"), ("proxy-connection", "close"), ("x\r\ny", "z")):
                before = len(field.upstream.seen)
                answer = connection.post("/app/free/x", b"body", {name: value})
                assert answer.reset == PROTOCOL or answer.status == 400, (name, value, answer)
                assert len(field.upstream.seen) == before
            answer = connection.post("/app/free/x", b"body", {"te": "trailers", "expect": "100-continue"})
            assert answer.status == 200, answer
            head, body = field.upstream.seen[-1]
            assert body == b"body" and head["content-length"] == "4"
            assert not {"te", "expect", "transfer-encoding", "connection"} & set(head), head
    attack.note("RST PROTOCOL_ERROR, nothing behind asked")


IDENTITY = ["sluice-account", "sluice-sale", "sluice-hold", "sluice-replay-only", "sluice-anything",
            "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "forwarded", "sluice_account",
            "sluice_sale", "x_forwarded_for", "x_account"]


def test_40_fields_of_identity(field, attack):
    """Neither they nor their other spellings with _ reach the application. (Whose
    X-Forwarded-For counts is row 42.)"""
    for _ in attack.goes_on(10):
        with loosely(field) as connection:
            for name in IDENTITY:
                answer = connection.get("/app/free/x", {name: "6.6.6.6"})
                assert answer.status == 200, answer
                head, _ = field.upstream.seen[-1]
                assert "6.6.6.6" not in json.dumps(head), (name, head)
                assert not [have for have in head if "_" in have], head
                broken = connection.get("/app/free/x", {name + " ": "6.6.6.6"})
                assert broken.reset == PROTOCOL or broken.status == 400, (name, broken)
    attack.note("dropped")


def test_41_the_origin_wants_its_token(field, attack):
    """It listens where the configuration says, and answers nobody without the token."""
    for _ in attack.goes_on(10):
        for path in ("/v1/sales", "/v1/invariant", "/v1/snapshot", f"/v1/sales/{field.sale}"):
            for headers in ({}, {"Authorization": "Bearer x"}, {"Sluice-Account": "jane"}):
                assert field.stack.origin.get(path, headers=headers, token=False).status == 401
    attack.note("401")


def failures(field, names):
    """The statuses of joins that fail, each with another X-Forwarded-For."""
    with H2(field.stack.url, field.stack.ca) as connection:
        return [connection.post(field.line, headers={"authorization": "Bearer x",
                                                     "x-forwarded-for": name}).status
                for name in names]


def test_42_forged_x_forwarded_for(own_field):
    """Without a trusted proxy the peer's address counts: rotating names escapes nothing."""
    field = own_field(trusted_proxies=[], limiter={"network_failures_per_minute": 40})
    with beside(field, "test_42_forged_x_forwarded_for") as attack:
        tries = 0
        for tries in attack.goes_on(20):
            statuses = failures(field, [f"7.7.{number}.1" for number in range(60)])
            assert statuses[-1] == 429 and (tries or statuses[0] == 401), statuses
            attack.note(f"429 after {statuses.index(429)}" if tries == 0 else "")


def test_42_forged_x_forwarded_for_behind_a_proxy(strict, strict_attack):
    """Behind a trusted one the name at the right counts. What stands left of it neither
    escapes nor hurts whom it names, here the good client."""
    for _ in strict_attack.goes_on(20):
        statuses = failures(strict, [f"10.9.8.7, 1.1.{number}.1, 66.6.6.6" for number in range(60)])
        assert statuses[-1] == 429, statuses
    assert failures(strict, ["66.6.6.7"]) == [401]
    strict_attack.note("429 by the name at the right")


# ---- tickets (rows 43, 44, 45, 48) -------------------------------------------------

def changed(ticket, bit):
    """The same text with one bit of its meaning turned over."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    at, which = divmod(bit, 6)
    if ticket[at] not in letters:
        return None
    letter = letters[letters.index(ticket[at]) ^ 1 << which]
    return ticket[:at] + letter + ticket[at + 1:]


def test_43_forged_tickets(field, attack):
    with H2(field.stack.url, field.stack.ca) as connection:
        waiting = Shopper(connection, field.sale, field.shop.token())
        assert waiting.join().status == 202
        ticket = waiting.ticket
    refused = 0
    bits = random.Random(43).sample(range(6 * len(ticket)), 6 * len(ticket))
    for _ in attack.goes_on(20):
        with loosely(field) as connection:
            for bit in [bits.pop() for _ in range(min(100, len(bits)))]:
                forged = changed(ticket, bit)
                if forged is None:
                    continue
                answer = connection.get(field.line, {"sluice-ticket": forged})
                # The last letter has bits that mean nothing: not ours to give.
                assert answer.status == 404 and not answer.json.get("ticket"), (bit, answer)
                refused += 1
            for forged in (ticket[:-1], ticket[:-8], ticket + "A", ticket * 2, "", "." * len(ticket)):
                answer = connection.get(field.line, {"sluice-ticket": forged})
                assert answer.status == 404, (forged, answer)
    assert refused >= 100
    attack.note(f"{refused} forged tickets: 404")


def test_44_one_place_in_many_hands(field, attack):
    """A hundred uses of one account's place at once are one pass."""
    sale = field.shop.sale(units=5)
    token = field.shop.token()
    field.shop.buyer(sale).enter()
    with H2(field.stack.url, field.stack.ca) as connection:
        ticket = Shopper(connection, sale, token).join().json["ticket"]
    passes = set()

    def claim(_):
        with loosely(field) as mine:
            streams = [mine.start("POST", f"{API}/sales/{sale}/line", {
                "authorization": f"Bearer {token}", "sluice-ticket": ticket}) for _ in range(25)]
            return {decode_jwt(mine.finish(stream).json["pass"])[1]["jti"] for stream in streams}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in attack.goes_on(3):
            passes |= set().union(*pool.map(claim, range(4)))
    issued = field.stack.metrics().value("sluice_passes_issued_total", sale=sale)
    assert len(passes) == 1 and issued == 2, (len(passes), issued)
    attack.note("one pass")


def test_45_tickets_tell_no_order(field, attack):
    """Nobody reads from a ticket whose is older, nor finds a place by counting."""
    tickets = []
    for _ in attack.goes_on(10):
        with H2(field.stack.url, field.stack.ca) as connection:
            for _ in range(20):
                buyer = Shopper(connection, field.sale, field.shop.token())
                assert buyer.join().status == 202
                tickets.append(buyer.ticket)
    assert len(set(tickets)) == len(tickets) >= 40
    mac = [ticket[-16:] for ticket in tickets]
    assert len(set(mac)) == len(mac)
    higher = sum(a < b for a, b in zip(mac, mac[1:]))
    assert 0.2 * len(mac) < higher < 0.8 * len(mac), higher
    attack.note(f"{len(tickets)} tickets")


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_48_a_flag_follows_its_stock(field, attack):
    """Held is not sold: the flag says so, and turns within a second of a hold's end. Both
    instants are the product's own: the end by the database's clock, and when the flag's
    version changed. A machine that is busy elsewhere may delay one of them, not all."""
    sales = [field.shop.sale(units=1, hold_seconds=5) for _ in range(5)]
    ends = {}
    for sale in sales:
        buyer = field.shop.buyer(sale)
        buyer.enter()
        ends[sale] = instant(buyer.hold().json["expires_at"])
    held = [field.shop.wait_state(sale, "all_held", 5).json["version"] for sale in sales]
    late = []
    for sale, before in zip(sales, held):
        flag = field.shop.wait_state(sale, "open", 15).json
        assert flag["version"] == before + 1
        late.append(instant(flag["as_of"]) - ends[sale])
    assert min(late) < 1 and max(late) < 1 + LATE, late
    assert min(late) > -0.1, late
    for _ in attack.goes_on(1):
        pass
    attack.note(f"open again {sorted(late)[0]:.2f} to {sorted(late)[-1]:.2f} s after the end")


# ---- answers of others, logs, bodies, secrets (rows 47, 49, 50, 52, 53) --------------

def test_47_the_flag_is_the_same_for_all(field, attack):
    """Whatever comes with the request: fields, query, cookie, method of a preflight."""
    plain = None
    odd = [(f"x-odd-{n}", "v" * (n % 50)) for n in range(40)] + [
        ("accept", "text/html"), ("accept", "*/*"), ("accept-language", "de"), ("cookie", "a=b"),
        ("authorization", "Bearer x"), ("origin", "https://evil.test"), ("range", "bytes=0-1"),
        ("x-forwarded-host", "evil.test"), ("x-original-url", "/admin"), ("x-http-method-override", "POST"),
        ("cache-control", "no-cache"), ("pragma", "no-cache"), ("if-modified-since", "Mon, 01 Jan 2024 00:00:00 GMT"),
        ("if-none-match", '"x"'), ("accept-encoding", "gzip, br"), ("forwarded", "host=evil.test")]
    queries = ["", "?", "?a=b", "?sale=other", "?" + "q" * 1000, "?callback=evil", "?x=%0d%0a"]
    repeats, asked = field.stack.metrics(), 0
    for _ in attack.goes_on(20, least=2):
        with loosely(field) as connection:
            connection.always = {}
            plain = plain or connection.get(field.flag)
            assert plain.status == 200 and not plain.cookies
            for name, value in odd:
                answer = connection.get(field.flag + queries[asked % len(queries)], {name: value})
                assert (answer.status, answer.headers, answer.body) == (
                    200, plain.headers, plain.body), (name, value, answer)
                asked += 1
    assert asked >= 100
    missing = {path: connection_get(field, path).header("cache-control") for path in
               (f"{API}/sales/none-such", field.flag + "/none")}
    assert all("no-store" in value for value in missing.values()), missing
    assert repeats.has("sluice_repeated_heads_evicted_total")
    attack.note(f"{asked} answers byte for byte the same")


def connection_get(field, path):
    with loosely(field) as connection:
        return connection.get(path)


def test_49_lines_of_the_log_cannot_be_forged(strict, strict_attack):
    """Everything a client may say, at the level that logs the most: each line is JSON,
    printable, and no longer than it may be."""
    field, attack = strict, strict_attack
    texts = ['"', "\\", "\x1b[2J", "\u00e4\u2028", "a" * 8000, '"}\n{"level":"error"', "%s%n", "\t"]
    for _ in attack.goes_on(5):
        with loosely(field) as connection:
            for text in texts:
                for path in (field.flag, field.line, "/app/free/x", f"{API}/sales/{text[:60]}",
                             f"/app/free/x?{text}"):
                    for name in ("user-agent", "authorization", "sluice-ticket", "x-forwarded-for"):
                        connection.get(path, {name: text})
        with field.attacker() as attacker:
            attacker.send(frame(GOAWAY, 0, 0, struct.pack(">II", 0, 2) + b'"\n{"level":"error"}'))
            attacker.send(frame(PING, 0, 0, b"short"))
            attacker.wait_cut(5)
    lines = field.stack.gateway.log_text().splitlines()
    assert len(lines) > 100
    for line in lines:
        assert len(line) <= 2048 and all(" " <= letter <= "~" for letter in line), line
        assert isinstance(json.loads(line), dict), line
    attack.note(f"{len(lines)} lines parse")


@pytest.mark.parametrize("length", [str(1 << 30), None], ids=["announced", "sent"])
def test_50_oversized_body(field, attack, length):
    """413 at once and RST NO_ERROR; what was announced is not even waited for."""
    before = len(field.upstream.seen)
    fields = [("idempotency-key", "k"), ("content-type", "application/json"),
              ("authorization", f"Bearer {field.shop.token()}")]
    if length:
        fields.append(("content-length", length))
    for _ in attack.goes_on():
        with field.attacker() as attacker:
            stream = attacker.stream
            attacker.send(attacker.request(field.holds, END_HEADERS, "POST", fields))
            if not length:
                attacker.send(frame(DATA, 0, stream, bytes(5000)))
            wait_until(lambda: attacker.read(0.1) and stream in attacker.reset or attacker.is_cut, 10,
                       "the stream reset")
            assert attacker.status == {stream: 413} and attacker.reset == {stream: NO_ERROR}
            assert attacker.ask(field.flag) and not attacker.is_cut
            seconds = time.monotonic() - attacker.began
            attack.note("413, RST NO_ERROR")
            assert seconds < 5
    assert len(field.upstream.seen) == before


NAMES = ["jane\r\nset-cookie: a=b", "jane\0", "j\x7fane", "\u00e4" * 100, "a" * 300, "jane, john",
         'jane"', "jane;x=y"]


def test_52_names_in_tokens_that_were_signed(field, attack):
    """A name the shop itself signed goes nowhere as it is: refused, or told in safe letters."""
    sale = field.shop.sale(units=20, upstream="app",
                           match=[{"host": None, "path": "/named", "prefix": True}])
    statuses = set()
    for _ in attack.goes_on(3):
        with loosely(field) as connection:
            for name in NAMES:
                buyer = Shopper(connection, sale, field.shop.token(account=name))
                answer = buyer.join()
                statuses.add(answer.status)
                if answer.status != 401:
                    assert answer.status in (200, 202), (name, answer)
                    connection.get("/named/x", buyer.headers())
                for have, value in answer.headers:
                    assert not set(value) & set("\r\n\0"), (have, value)
    for head, _ in field.upstream.seen:
        assert not [value for value in head.values() if set(value) & set("\r\n\0\x7f")], head
    attack.note(f"{sorted(statuses)}")


def test_53_secrets_are_never_indexed_nor_compressed(field, attack):
    """Ticket and pass of an answer: literal fields that no table keeps (RFC 7541, 6.2.3)."""
    for _ in attack.goes_on(3):
        sale = field.shop.sale(units=5)
        with field.attacker() as attacker:
            path = f"{API}/sales/{sale}/line"
            stream = attacker.ask(path, method="POST", more=[
                ("authorization", f"Bearer {field.shop.token()}"), ("accept-encoding", "gzip, br")])
            assert attacker.status[stream] == 200
            fields = attacker.fields[stream]
            assert "content-encoding" not in dict(fields)
            secret = [row for row in fields if row[0] in ("set-cookie", "sluice-ticket", "sluice-pass")]
            assert secret and not any(row.indexable for row in secret), secret
    attack.note(f"{len(secret)} fields")
