"""RFC 9113, section 6: each type of frame; RFC 9218, 7.1."""
from wire import *  # noqa: F403
from rows import Row, answered, began, big, post, read, request, synced, upload

PROTOCOL, SIZE = "goaway PROTOCOL_ERROR", "goaway FRAME_SIZE_ERROR"
FLOW, CALM = "goaway FLOW_CONTROL_ERROR", "goaway ENHANCE_YOUR_CALM"


def body_is(size, stream=1):
    def check(talk):
        assert len(talk.stream(stream).body) == size, len(talk.stream(stream).body)
    return check


DATA_ROWS = [
    Row("6.1", "DATA of no stream", [data(0, b"x")], PROTOCOL),
    Row("6.1", "a body in one frame", [post(), data(1, b"abc", end=True)], "200"),
    Row("6.1", "a body in many frames",
        [post(), *[data(1, b"x" * 10) for _ in range(50)], data(1, b"x", end=True)], "200"),
    Row("6.1", "an empty last DATA", [post(), data(1, b"abc"), data(1, b"", end=True)], "200"),
    Row("6.1", "some empty DATA", [post(), data(1), data(1), data(1, b"x", end=True)], "200"),
    Row("6.1", "padding", [post(), data(1, b"abc", end=True, pad=7)], "200"),
    Row("6.1", "a pad length of 0", [post(), data(1, b"abc", end=True, pad=0)], "200"),
    Row("6.1", "padding and nothing else", [post(), data(1, b"", end=True, pad=255)], "200"),
    Row("6.1", "padding as long as the payload",
        [post(), frame(DATA, PADDED, 1, b"\x05" + bytes(4))], PROTOCOL),
    Row("6.1", "padding longer than the payload",
        [post(), frame(DATA, PADDED | END_STREAM, 1, b"\xff" + bytes(10))], PROTOCOL),
    Row("6.1", "padding that is not zero",
        [post(), frame(DATA, PADDED | END_STREAM, 1, b"\x03abc\x01\x02\x03")], "200",
        why="6.1 allows either"),
    Row("6.1", "a body of three windows", [post(), upload(1, 200_000)], "200"),
    Row("6.1", "padding counts for the windows and is given back",
        [post(), upload(1, 20_000, chunk=100, pad=255)], "200"),
    Row("6.1", "a body nobody reads gives the connection's window back",
        [*[piece for n in range(1, 21, 2) for piece in
           (request(n, method="POST", end=False), answered(n), data(n, bytes(16000), end=True))]],
        {n: "405" for n in range(1, 21, 2)}, why="peers that take a POST for the page"),
]

HEADERS_ROWS = [
    Row("6.2", "padding", [request(pad=9)], "200"),
    Row("6.2", "a pad length of 0", [request(pad=0)], "200"),
    Row("6.2", "a place among the priorities", [request(priority=(0, 15))], "200"),
    Row("6.2", "padding and a place", [request(priority=(0, 15), pad=30)], "200"),
    Row("6.2", "padding as long as the payload",
        [frame(HEADERS, PADDED | END_HEADERS, 1, b"\x03" + bytes(2))], PROTOCOL),
    Row("6.2", "padding that takes the place",
        [frame(HEADERS, PADDED | PRIORITIZED | END_HEADERS, 1, b"\x05" + bytes(6))], PROTOCOL),
    Row("6.2", "an empty block", [headers(1, b"")], "reset PROTOCOL_ERROR",
        why="a request without fields is malformed (8.1.1); some find the frame too short"),
    Row("6.2", "padding around an empty block", [headers(1, b"", pad=10)],
        "reset PROTOCOL_ERROR", why="as an empty block"),
]

PRIORITY_ROWS = [
    Row("6.3", "PRIORITY of no stream", [priority(0)], PROTOCOL),
    *[Row("6.3", f"PRIORITY of {size} bytes", [frame(PRIORITY, 0, 1, bytes(size))], SIZE,
          why="6.3 has an error of the stream, which 5.4.1 lets be the connection's: there is no "
              "stream yet") for size in (0, 4, 6)],
    Row("6.3", "PRIORITY of an open stream",
        [post(), priority(1, 0, 255), data(1, b"x", end=True)], "200"),
    Row("RFC 9218 7.1", "PRIORITY_UPDATE of an open stream",
        [post(), priority_update(1, b"u=0, i"), data(1, b"x", end=True)], "200"),
    Row("RFC 9218 7.1", "PRIORITY_UPDATE on a stream", [priority_update(1, stream=1)], PROTOCOL,
        why="peers that do not know RFC 9218, where the frame is an unknown one"),
    Row("RFC 9218 7.1", "PRIORITY_UPDATE for stream 0", [priority_update(0)], PROTOCOL,
        why="as PRIORITY_UPDATE on a stream"),
    Row("RFC 9218 7.1", "PRIORITY_UPDATE that nobody can parse", [priority_update(1, b"\xff=;;")]),
    Row("RFC 9218 7.1", "PRIORITY_UPDATE without a value", [priority_update(1, b""), request()],
        "200"),
    Row("RFC 9218 5", "a priority field", [request(more=[("priority", "u=9, \x22")])], "200"),
]

RST_ROWS = [
    Row("6.4", "RST_STREAM of no stream", [rst(0)], PROTOCOL),
    *[Row("6.4", f"RST_STREAM of {size} bytes",
          [post(), frame(RST_STREAM, 0, 1, bytes(size))], SIZE) for size in (0, 3, 5)],
    Row("6.4", "an error code that nobody knows", [post(), rst(1, 0xdeadbeef), request(3)],
        {3: "200"}),
    Row("6.4", "NO_ERROR", [post(), rst(1, 0), request(3)], {3: "200"}),
    Row("6.4", "RST_STREAM in the batch of its request", [request(), rst(1)], None,
        why="peers that answered before they read the reset"),
    Row("6.4", "RST_STREAM with a body under way",
        [post(), data(1, bytes(1000)), rst(1), request(3)], {3: "200"}),
    Row("6.4", "RST_STREAM while the answer waits for the window",
        [settings((INITIAL_WINDOW, 0)), request(), began(), rst(1), settings((INITIAL_WINDOW, 9999)),
         request(3)], {1: "200 open", 3: "200"}),
]


def acks(count):
    def check(talk):
        assert talk.acks == count, talk.acks
    return check


def setting(title, pair, want=None, **more):
    return Row("6.5.2", title, [settings(pair), request()] if want is None else [settings(pair)],
               want or "200", **more)


SETTINGS_ROWS = [
    Row("6.5", "none at all", [settings()], check=acks(2)),
    Row("6.5", "each SETTINGS is acknowledged", [settings(), settings(), settings()],
        check=acks(4)),
    Row("6.5", "SETTINGS on a stream", [settings(stream=1)], PROTOCOL),
    Row("6.5", "SETTINGS on an open stream", [post(), settings(stream=1)], PROTOCOL),
    *[Row("6.5", f"SETTINGS of {size} bytes", [frame(SETTINGS, 0, 0, bytes(size))], SIZE)
      for size in (1, 5, 7, 11)],
    Row("6.5", "an acknowledgement with settings", [frame(SETTINGS, ACK, 0, bytes(6))], SIZE),
    Row("6.5", "an acknowledgement with a byte", [frame(SETTINGS, ACK, 0, b"x")], SIZE),
    Row("6.5", "an acknowledgement on a stream", [frame(SETTINGS, ACK, 1)], PROTOCOL),
    Row("6.5", "an acknowledgement of nothing", [settings_ack()], PROTOCOL,
        why="nobody asked for it; 6.5 does not say"),
    Row("6.5", "32 settings", [settings(*[(0x1000 + n, n) for n in range(32)])], check=acks(2)),
    Row("6.5", "33 settings", [settings(*[(0x1000 + n, n) for n in range(33)])], CALM,
        why="10.5 leaves the limit to us: there are eight settings"),
    *[setting(f"HEADER_TABLE_SIZE {n}", (HEADER_TABLE_SIZE, n)) for n in (0, 1, 4096, 2 ** 32 - 1)],
    *[setting(f"ENABLE_PUSH {n}", (ENABLE_PUSH, n)) for n in (0, 1)],
    *[setting(f"ENABLE_PUSH {n}", (ENABLE_PUSH, n), PROTOCOL) for n in (2, 2 ** 32 - 1)],
    *[setting(f"MAX_CONCURRENT_STREAMS {n}", (MAX_CONCURRENT, n)) for n in (0, 2 ** 32 - 1)],
    *[setting(f"INITIAL_WINDOW_SIZE {n}", (INITIAL_WINDOW, n)) for n in (65536, WINDOW_MAX)],
    *[setting(f"INITIAL_WINDOW_SIZE {n}", (INITIAL_WINDOW, n), FLOW)
      for n in (2 ** 31, 2 ** 32 - 1)],
    *[setting(f"MAX_FRAME_SIZE {n}", (MAX_FRAME, n)) for n in (FRAME_MAX, 2 ** 24 - 1)],
    *[setting(f"MAX_FRAME_SIZE {n}", (MAX_FRAME, n), PROTOCOL)
      for n in (0, FRAME_MAX - 1, 2 ** 24, 2 ** 32 - 1)],
    *[setting(f"MAX_HEADER_LIST_SIZE {n}", (MAX_LIST, n)) for n in (0, 2 ** 32 - 1)],
    *[setting(f"an unknown setting {n:#x}", (n, 0xffffffff)) for n in (0, 7, 0x0a0a, 0xffff)],
    *[setting(f"ENABLE_CONNECT_PROTOCOL {n}", (CONNECT_PROTOCOL, n)) for n in (0, 1)],
    *[setting(f"NO_RFC7540_PRIORITIES {n}", (NO_PRIORITIES, n)) for n in (0, 1)],
    setting("NO_RFC7540_PRIORITIES 2", (NO_PRIORITIES, 2), PROTOCOL,
            why="RFC 9218, 2.1 demands it; peers that do not know the setting"),
    Row("6.5.3", "the last of two values counts",
        [settings((INITIAL_WINDOW, 5), (INITIAL_WINDOW, 0)), request(), began()], "200 open",
        check=body_is(0)),
    Row("6.5.3", "a wrong value behind right ones",
        [settings((INITIAL_WINDOW, 5), (MAX_FRAME, 20000), (ENABLE_PUSH, 3))], PROTOCOL),
    Row("6.5.3", "a request in the same batch sees the values",
        [settings((INITIAL_WINDOW, 3)), request(), began(), read(1, 3), synced], "200 open",
        check=body_is(3)),
    Row("6.5", "SETTINGS while a body is under way",
        [post(), data(1, b"x"), settings((INITIAL_WINDOW, 9)), data(1, b"y", end=True),
         window(1, 100000)], "200"),
]

PUSH_ROWS = [
    Row("6.6", "PUSH_PROMISE on an idle stream", [push_promise(1, 2)], PROTOCOL),
    Row("6.6", "PUSH_PROMISE on an open stream", [post(), push_promise(1, 2)], PROTOCOL),
    Row("6.6", "PUSH_PROMISE of no stream", [push_promise(0, 2)], PROTOCOL),
    Row("6.6", "PUSH_PROMISE without a number",
        [post(), frame(PUSH_PROMISE, END_HEADERS, 1, b"")], PROTOCOL,
        why="an error either way, FRAME_SIZE_ERROR too"),
]


def pongs(*wanted):
    def check(talk):
        assert talk.pongs[:len(wanted)] == list(wanted), talk.pongs
    return check


PING_ROWS = [
    Row("6.7", "a PING comes back as it was", [ping(bytes(range(8)))],
        check=pongs(bytes(range(8)))),
    Row("6.7", "several come back in order", [ping(bytes([n] * 8)) for n in range(20)],
        check=pongs(*[bytes([n] * 8) for n in range(20)])),
    Row("6.7", "an acknowledgement of nothing", [ping(flags=ACK)],
        check=lambda talk: b"12345678" not in talk.pongs or 1 / 0),
    Row("6.7", "PING on a stream", [ping(stream=1)], PROTOCOL),
    Row("6.7", "an acknowledgement on a stream", [ping(flags=ACK, stream=1)], PROTOCOL),
    Row("6.7", "an acknowledgement of 7 bytes", [ping(b"1234567", flags=ACK)], SIZE),
]

GOAWAY_ROWS = [
    Row("6.8", "what is open is finished", [post(), goaway(), data(1, b"x", end=True)], "200",
        why="peers that close once the client has said it"),
    Row("6.8", "a request behind it is served", [goaway(), request()], "200",
        why="6.8: the client's GOAWAY speaks of streams that we open; some take it for the end"),
    Row("6.8", "an error that nobody knows, and words", [goaway(0, 0xfeed, b"bye"), request()],
        "200", why="as a request behind it"),
    Row("6.8", "GOAWAY on a stream", [goaway(stream=1)], PROTOCOL),
    Row("6.8", "twice, with a lower number", [goaway(WINDOW_MAX), goaway(0), request()], "200",
        why="as a request behind it"),
    Row("6.8", "twice, with a higher number", [goaway(0), goaway(2), request()], "200",
        why="6.8: it must not rise, but says nothing to a server that opens no streams"),
    Row("6.8", "a reserved bit in its number", [goaway(1 << 31), goaway(0), request()], "200",
        why="as a request behind it"),
]

WINDOW_ROWS = [
    Row("6.9", "an increment of 0 for the connection", [window(0, 0)], PROTOCOL),
    Row("6.9", "an increment of 0 for a stream", [post(), window(1, 0)],
        "reset PROTOCOL_ERROR", why="5.4.1 lets it be the connection's"),
    Row("6.9", "an increment of 0 and a reserved bit", [window(0, 1 << 31)], PROTOCOL),
    Row("6.9", "a reserved bit in the increment", [window(0, 1 << 31 | 1)]),
    Row("6.9", "an increment of 3 bytes for a stream",
        [post(), frame(WINDOW_UPDATE, 0, 1, b"\0\0\1")], SIZE),
    Row("6.9.1", "the connection's window at its most", [window(0, WINDOW_MAX - WINDOW)]),
    Row("6.9.1", "the connection's window above its most", [window(0, WINDOW_MAX - WINDOW + 1)],
        FLOW),
    Row("6.9.1", "the connection's window above its most in two steps",
        [window(0, WINDOW_MAX - WINDOW), window(0, 1)], FLOW),
    Row("6.9.1", "a stream's window at its most",
        [post(), window(1, WINDOW_MAX - WINDOW), data(1, b"x", end=True)], "200"),
    Row("6.9.1", "a stream's window above its most", [post(), window(1, WINDOW_MAX)],
        "reset FLOW_CONTROL_ERROR", why="5.4.1 lets it be the connection's"),
    Row("6.9.1", "a stream's window above its most in two steps",
        [post(), window(1, WINDOW_MAX - WINDOW), window(1, 1)], "reset FLOW_CONTROL_ERROR",
        why="5.4.1 lets it be the connection's"),
    Row("6.9.1", "many small increments",
        [settings((INITIAL_WINDOW, 0)), request(), began(), *[window(1, 100)] * 20], "200"),
]


def more_of(stream, by):
    """Gives window and waits for exactly that much more of the body."""
    def step(talk):
        before = len(talk.stream(stream).body)
        talk.send(window(stream, by))
        read(stream, before + by)(talk)
        synced(talk)
        assert len(talk.stream(stream).body) == before + by
    return step


def no_more_of(stream, piece):
    def step(talk):
        before = len(talk.stream(stream).body)
        talk.send(piece)
        synced(talk)
        assert len(talk.stream(stream).body) == before, (before, len(talk.stream(stream).body))
    return step


HEADS = "some send no head while the connection's window is shut, though it needs none"

SEND_ROWS = [
    Row("6.9.1", "no byte without a window",
        [settings((INITIAL_WINDOW, 0)), request(), began(), synced], "200 open", check=body_is(0)),
    Row("6.9.1", "byte by byte", [settings((INITIAL_WINDOW, 1)), request(), began(), read(1, 1),
                                  more_of(1, 1), more_of(1, 7), window(1, 9999)], "200"),
    Row("6.9.1", "an answer without a body needs no window",
        [settings((INITIAL_WINDOW, 0)), request(method="HEAD")], "200"),
    Row("6.9.1", "a body stops at the window", [big(), read(1, WINDOW), synced], "200 open",
        check=body_is(WINDOW)),
    Row("6.9.1", "the connection's window is for all streams",
        [settings((INITIAL_WINDOW, 2 ** 20)), big(), read(1, WINDOW), request(3), began(3), synced],
        {1: "200 open", 3: "200 open"}, check=body_is(0, 3), why=HEADS),
    Row("6.9.1", "the connection's window sets free who waits",
        [settings((INITIAL_WINDOW, 2 ** 20)), big(), read(1, WINDOW), request(3), began(3), synced,
         window(0, 40000), answered(3)], {1: "200 open", 3: "200"}, why=HEADS),
    Row("6.9.1", "a stream's window is not another's",
        [settings((INITIAL_WINDOW, 10)), request(1), request(3), began(1), began(3),
         read(1, 10), read(3, 10), window(3, 9999)], {1: "200 open", 3: "200"}, check=body_is(10)),
    Row("6.9.1", "both windows shut, then both opened",
        [settings((INITIAL_WINDOW, WINDOW)), big(), read(1, WINDOW), no_more_of(1, window(1, 50)),
         window(0, 30), read(1, WINDOW + 30), window(0, 100), read(1, WINDOW + 50), synced],
        "200 open", check=body_is(WINDOW + 50)),
    Row("6.9.1", "both windows shut, the connection's opened first",
        [settings((INITIAL_WINDOW, WINDOW)), big(), read(1, WINDOW), no_more_of(1, window(0, 50)),
         window(1, 30), read(1, WINDOW + 30), synced], "200 open", check=body_is(WINDOW + 30)),
    Row("6.9.2", "a larger first window sets free",
        [settings((INITIAL_WINDOW, 0)), request(), began(), synced,
         settings((INITIAL_WINDOW, 9999))], "200"),
    Row("6.9.2", "a smaller first window makes a stream's negative",
        [window(0, 2 ** 20), settings((INITIAL_WINDOW, 1000)), big(), read(1, 1000),
         settings((INITIAL_WINDOW, 100)), no_more_of(1, window(1, 899)),
         no_more_of(1, window(1, 1)), more_of(1, 5)], "200 open", check=body_is(1005)),
    Row("6.9.2", "negative, and up again by SETTINGS",
        [window(0, 2 ** 20), settings((INITIAL_WINDOW, 1000)), big(), read(1, 1000),
         settings((INITIAL_WINDOW, 0)), no_more_of(1, settings((INITIAL_WINDOW, 999))),
         settings((INITIAL_WINDOW, 1003)), read(1, 1003), synced], "200 open", check=body_is(1003)),
    Row("6.9.2", "up and down in one SETTINGS",
        [settings((INITIAL_WINDOW, 2 ** 20), (INITIAL_WINDOW, 4)), request(), began(), read(1, 4),
         synced], "200 open", check=body_is(4)),
    Row("6.9.2", "the first window is not the connection's",
        [settings((INITIAL_WINDOW, 2 ** 20)), big(), read(1, WINDOW), synced], "200 open",
        check=body_is(WINDOW)),
    Row("6.9.2", "a first window that lifts a stream above its most",
        [settings((INITIAL_WINDOW, 0)), request(), window(1, WINDOW_MAX),
         settings((INITIAL_WINDOW, 1))], FLOW,
        why="6.9.2 has an error of the connection; some reset the stream, or had answered before"),
    Row("6.9.2", "the window of a stream that is over does not count",
        [settings((INITIAL_WINDOW, 0)), post(), window(1, WINDOW_MAX), rst(1),
         settings((INITIAL_WINDOW, WINDOW)), request(3)], {3: "200"}),
    Row("6.9.1", "a record's worth of streams at once",
        [window(0, 2 ** 20), *[request(1 + 2 * n) for n in range(90)]],
        {1 + 2 * n: "200" for n in range(90)}),
]


RECEIVE_ROWS = [
    Row("6.9.1", "exactly the windows",
        [post(), *[data(1, bytes(16384)) for _ in range(3)], data(1, bytes(16383), end=True)],
        "200"),
    Row("6.9.1", "more than a stream's window",
        [request(method="POST", end=False), answered(),
         *[data(1, bytes(16384)) for _ in range(3)], data(1, bytes(16383)), synced,
         data(1, b"x")], "405 reset FLOW_CONTROL_ERROR", why="peers with larger windows"),
    Row("6.9.1", "empty DATA needs no window",
        [request(method="POST", end=False), answered(),
         *[data(1, bytes(16384)) for _ in range(3)], data(1, bytes(16383)), synced,
         data(1, b"", end=True)], "405", why="peers that take a POST for the page"),
]

ROWS = (DATA_ROWS + HEADERS_ROWS + PRIORITY_ROWS + RST_ROWS + SETTINGS_ROWS + PUSH_ROWS + PING_ROWS
        + GOAWAY_ROWS + WINDOW_ROWS + SEND_ROWS + RECEIVE_ROWS)
