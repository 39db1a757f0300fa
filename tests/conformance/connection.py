"""RFC 9113, sections 3 and 4: the beginning, frames, header blocks as frames."""
from wire import *  # noqa: F403
from rows import Row, answered, flushed, post, request, split, synced

PROTOCOL, SIZE = "goaway PROTOCOL_ERROR", "goaway FRAME_SIZE_ERROR"


# 3.4 lets the GOAWAY be left out, since the peer may not speak HTTP/2 at all.
SILENT = "some close without a word"
# 4.2: the frame is too small for what it must have.
SMALL = "4.2 has FRAME_SIZE_ERROR; some take it for a padding that is too long"


def raw(title, *steps, **more):
    return Row("3.4", title, steps, opening=False, **more)


def bytewise(step):
    def play(talk):
        for byte in PREFACE + settings() + step(talk):
            talk.send(bytes([byte]))
            talk.flush()
    return play


def first_is_settings(talk):
    assert talk.frames[0][:3] == (SETTINGS, 0, 0), talk.frames[0]


def early(talk):
    """A request before the server has said anything."""
    return PREFACE + settings() + request()(talk)


START = [
    raw("the preface's first byte is wrong", b"G" + PREFACE[1:], settings(), want=PROTOCOL,
        why=SILENT),
    raw("the preface's last byte is wrong", PREFACE[:-1] + b"\r", settings(), want=PROTOCOL,
        why=SILENT),
    raw("HTTP/1.1 instead", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", want=PROTOCOL,
        why=SILENT),
    raw("frames without a preface", settings(), want=PROTOCOL, why=SILENT),
    raw("a preface twice", PREFACE, PREFACE, want=SIZE,
        why="its first bytes are the length of a frame; 6.5 allows either reading"),
    raw("HEADERS before SETTINGS", PREFACE, request(), want=PROTOCOL,
        why="peers that do not look whether SETTINGS came first (3.4 says they must come)"),
    raw("PING before SETTINGS", PREFACE, ping(), want=PROTOCOL,
        why="as HEADERS before SETTINGS"),
    raw("WINDOW_UPDATE before SETTINGS", PREFACE, window(0, 1), want=PROTOCOL,
        why="as HEADERS before SETTINGS"),
    raw("an unknown frame before SETTINGS", PREFACE, frame(0x77, 0, 0, b"x"), want=PROTOCOL,
        why="as HEADERS before SETTINGS"),
    raw("an acknowledgement instead of SETTINGS", PREFACE, settings_ack(), want=PROTOCOL,
        why="as HEADERS before SETTINGS"),
    raw("byte by byte", bytewise(request()), want="200", check=first_is_settings),
    raw("a request with the first flight", early, want="200", check=first_is_settings),
    raw("the preface in two pieces", PREFACE[:10], flushed, PREFACE[10:] + settings(),
        check=first_is_settings),
    raw("settings are acknowledged", PREFACE, settings((MAX_FRAME, 20000)), synced,
        check=lambda talk: len([f for f in talk.frames if f[:2] == (SETTINGS, ACK)]) == 1 or 1 / 0),
]

UNKNOWN = [
    Row("4.1", "an unknown type for the connection", [frame(0x42, 0, 0, b"x")]),
    Row("4.1", "an unknown type on an idle stream", [frame(0x42, 0, 1, b"x")]),
    Row("4.1", "an unknown type on an open stream",
        [post(), frame(0xff, 0xff, 1, b"x"), data(1, b"y", end=True)], "200"),
    Row("4.1", "an unknown type, with every flag", [frame(0xff, 0xff, 3, b"xyz")]),
    Row("4.1", "an unknown type, without a payload", [frame(0x20, 0, 0)]),
    Row("4.1", "an unknown type, of full length", [frame(0x20, 0, 0, bytes(FRAME_MAX))]),
    Row("4.1", "an unknown type, too long", [frame(0x20, 0, 0, bytes(FRAME_MAX + 1))], SIZE,
        why="4.2 knows no exception for types unknown; peers skip what they do not read"),
    Row("4.1", "ALTSVC and ORIGIN, which only servers send",
        [frame(0xa, 0, 0, b"\0\0x"), frame(0xc, 0, 0, b"")]),
    Row("4.1", "a reserved bit in HEADERS", [request(stream=1 | 1 << 31)], "200"),
    Row("4.1", "a reserved bit in PING", [ping(stream=1 << 31)],
        check=lambda talk: b"12345678" in talk.pongs or 1 / 0),
    Row("4.1", "a reserved bit in SETTINGS", [settings(stream=1 << 31)]),
    Row("4.1", "a reserved bit in RST_STREAM", [request(), answered(), rst(1 | 1 << 31)], "200"),
    Row("4.1", "flags that HEADERS does not know", [request(flags=0x92)], "200"),
    Row("4.1", "flags that DATA does not know", [post(), data(1, b"x", end=True, flags=0xf6)],
        "200"),
    Row("4.1", "flags that SETTINGS does not know", [settings(flags=0xfe)]),
    Row("4.1", "flags that PING does not know", [ping(flags=0xfe)],
        check=lambda talk: b"12345678" in talk.pongs or 1 / 0),
    Row("4.1", "flags that WINDOW_UPDATE does not know",
        [frame(WINDOW_UPDATE, 0xff, 0, b"\0\0\1\0")]),
    Row("4.1", "flags that RST_STREAM does not know",
        [request(), answered(), frame(RST_STREAM, 0xff, 1, b"\0\0\0\x08")], "200"),
    Row("4.1", "flags that GOAWAY does not know", [frame(GOAWAY, 0xff, 0, bytes(8)), request()],
        "200"),
    Row("4.1", "flags that PRIORITY does not know", [frame(PRIORITY, 0xff, 1, b"\0\0\0\0\x0f"),
                                                     request()], "200"),
    Row("4.1", "flags that CONTINUATION does not know",
        [lambda talk: (lambda head: head + frame(CONTINUATION, 0xff, 1, b""))(
            request(end_headers=False)(talk))], "200"),
]


def filled(size):
    """A head whose block has exactly so many bytes, and is within its budget."""
    def step(talk):
        small = request(more=[("x-fill", "v" * 15000)])(talk)[9:]
        return request(more=[("x-fill", "v" * (15000 + size - len(small)))])(talk)
    return step


SIZES = [
    Row("4.2", "DATA of full length", [post(), data(1, bytes(FRAME_MAX), end=True)], "200"),
    Row("4.2", "DATA too long", [post(), data(1, bytes(FRAME_MAX + 1), end=True)], SIZE,
        why="4.2 allows an error of the stream alone"),
    Row("4.2", "HEADERS of 16 KB", [filled(15900)], "200"),
    Row("4.2", "HEADERS of full length", [
        lambda talk: headers(1, filled(FRAME_MAX - 256)(talk)[9:], pad=255)], "200"),
    Row("4.2", "HEADERS too long", [filled(FRAME_MAX + 1)], SIZE),
    Row("4.2", "SETTINGS too long", [settings(*[(0x99, 0)] * 2731)], SIZE),
    Row("4.2", "CONTINUATION too long",
        [request(end_headers=False), continuation(1, bytes(FRAME_MAX + 1))], SIZE,
        why="some decode what is there before they look at its length"),
    Row("4.2", "the greatest length there is", [frame(DATA, 0, 1, b"", length=0xffffff)], SIZE,
        why="peers that wait for the stream's error until all has come"),
    *[Row("4.2", f"{name} of {len(payload)} bytes", [frame(kind, flags, stream, payload)], SIZE,
          why=why)
      for name, kind, flags, stream, payload, why in [
          ("PING", PING, 0, 0, b"", None), ("PING", PING, 0, 0, b"1234567", None),
          ("PING", PING, 0, 0, b"123456789", None), ("GOAWAY", GOAWAY, 0, 0, b"1234567", None),
          ("PADDED HEADERS", HEADERS, PADDED | END_HEADERS, 1, b"", SMALL),
          ("PRIORITY HEADERS", HEADERS, PRIORITIZED | END_HEADERS, 1, b"1234", None),
          ("padded PRIORITY HEADERS", HEADERS, PADDED | PRIORITIZED | END_HEADERS, 1, b"\0" * 5,
           SMALL),
          ("WINDOW_UPDATE", WINDOW_UPDATE, 0, 0, b"\0\0\1", None),
          ("WINDOW_UPDATE", WINDOW_UPDATE, 0, 0, b"\0\0\0\0\1", None),
          ("WINDOW_UPDATE", WINDOW_UPDATE, 0, 0, b"", None),
          ("PRIORITY_UPDATE", PRIORITY_UPDATE, 0, 0, b"\0\0\1",
           "peers that do not know RFC 9218, where the frame is an unknown one"),
      ]],
    Row("4.2", "a padded DATA without its length", [post(), frame(DATA, PADDED, 1, b"")], SIZE,
        why=SMALL),
]


def between(title, piece):
    return Row("4.3", f"{title} within a header block",
               [split_open(), piece], PROTOCOL)


def split_open():
    return request(end_headers=False)


def many(count):
    """A head in HEADERS and so many CONTINUATIONs."""
    return split(request(), *[3] * count)


def table_of_another_stream(talk):
    added = literal("x-a", "b", kind="added")
    return (headers(1, request()(talk)[9:] + added)
            + headers(3, request()(talk)[9:] + indexed(62)))


def table_of_a_refused_stream(talk):
    """The malformed head's field is in the table all the same."""
    added = literal("x-a", "b", kind="added") + literal("Upper", "c", kind="added")
    return (headers(1, request()(talk)[9:] + added)
            + headers(3, request()(talk)[9:] + indexed(63)))


def table_of_a_reset_stream(talk):
    added = literal("x-a", "b", kind="added")
    return (headers(1, request()(talk)[9:] + added) + rst(1)
            + headers(3, request()(talk)[9:] + indexed(62)))


BLOCKS = [
    Row("4.3", "a block in two frames", [split(request(), 20)], "200"),
    Row("4.3", "a block cut within a field", [split(request(), 1, 1, 1, 5)], "200"),
    Row("4.3", "an empty HEADERS, then the block", [split(request(), 0)], "200",
        why="6.2 demands no byte of the fragment; some do"),
    Row("4.3", "an empty CONTINUATION at the end", [split(request(), 1000)], "200"),
    Row("4.3", "an empty CONTINUATION in the middle", [split(request(), 10, 0, 10)], "200"),
    Row("4.3", "eight CONTINUATIONs", [many(8)], "200"),
    Row("4.3", "nine CONTINUATIONs", [many(9)], "goaway ENHANCE_YOUR_CALM",
        why="10.5 leaves the limit to us: 9 frames of 16 KB are more than any head may have"),
    Row("4.3", "END_STREAM is told by the first frame",
        [post(end_headers=False), continuation(1), data(1, b"x", end=True)], "200"),
    between("PING", ping()), between("DATA of the stream", data(1, b"x")),
    between("HEADERS of another stream", request(3)),
    between("HEADERS of the stream", request()),
    between("CONTINUATION of another stream", continuation(3)),
    between("CONTINUATION of no stream", continuation(0)),
    between("SETTINGS", settings()), between("an acknowledgement", settings_ack()),
    between("WINDOW_UPDATE", window(0, 1)), between("PRIORITY", priority(1)),
    between("RST_STREAM", rst(1)), between("GOAWAY", goaway()),
    between("PRIORITY_UPDATE", priority_update(1)),
    Row("5.5", "an unknown frame within a header block",
        [split_open(), frame(0x42, 0, 0, b"x")], PROTOCOL),
    Row("5.5", "an unknown frame of the stream within a header block",
        [split_open(), frame(0x42, 0, 1, b"x")], PROTOCOL),
    Row("6.10", "CONTINUATION first of all", [continuation(1)], PROTOCOL),
    Row("6.10", "CONTINUATION of no stream", [continuation(0)], PROTOCOL),
    Row("6.10", "CONTINUATION behind END_HEADERS", [request(), continuation(1)], PROTOCOL),
    Row("6.10", "CONTINUATION behind the last one",
        [split(request(), 20), continuation(1)], PROTOCOL),
    Row("6.10", "CONTINUATION behind DATA", [post(), data(1, b"x"), continuation(1)], PROTOCOL),
    Row("4.3", "the table is shared by streams", [table_of_another_stream], {1: "200", 3: "200"}),
    Row("4.3", "a malformed head's block counts for the table", [table_of_a_refused_stream],
        {1: "reset PROTOCOL_ERROR", 3: "200"}, why="some end the connection"),
    Row("4.3", "a reset stream's block counts for the table", [table_of_a_reset_stream],
        {3: "200"}, why="peers that answered before they read the reset"),
    Row("4.3", "a block that cannot be decoded", [headers(1, b"\xff\xff\xff\xff\xff\xff")],
        "goaway COMPRESSION_ERROR"),
    Row("4.3", "trailers that cannot be decoded", [post(), headers(1, indexed(0))],
        "goaway COMPRESSION_ERROR"),
]

ROWS = START + UNKNOWN + SIZES + BLOCKS
