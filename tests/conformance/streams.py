"""RFC 9113, section 5: the states of streams, their numbers, how many there are."""
from wire import *  # noqa: F403
from rows import Row, answered, began, big, post, request, synced

PROTOCOL, CLOSED = "goaway PROTOCOL_ERROR", "goaway STREAM_CLOSED"
MOST = 100  # streams, as our SETTINGS say


# 5.4.1 lets any error of a stream be the connection's.
WHOLE = "some end the connection"


def state(section, name, before, cases):
    return [Row(section, f"{title} on {name}", [*before, piece], want, why=why)
            for title, piece, want, why in cases]


IDLE = state("5.1", "an idle stream", [], [
    ("DATA", data(1, b"x"), PROTOCOL, None),
    ("empty DATA", data(1, b"", end=True), PROTOCOL, None),
    ("RST_STREAM", rst(1), PROTOCOL, None),
    ("WINDOW_UPDATE", window(1, 100), PROTOCOL, None),
    ("CONTINUATION", continuation(1), PROTOCOL, None),
    ("PRIORITY", priority(1), None, None),
    ("PRIORITY_UPDATE", priority_update(1), None, None),
    ("HEADERS", request(), "200", None),
])
LATER_IDLE = state("5.1", "an idle stream above an open one", [post()], [
    ("DATA", data(3, b"x"), PROTOCOL, None),
    ("RST_STREAM", rst(3), PROTOCOL, None),
    ("WINDOW_UPDATE", window(3, 100), PROTOCOL, None),
])
EVEN_IDLE = state("5.1", "a stream of the server's that is idle", [], [
    ("DATA", data(2, b"x"), PROTOCOL, None),
    ("RST_STREAM", rst(2), PROTOCOL, None),
    ("WINDOW_UPDATE", window(2, 100), PROTOCOL, None),
    ("PRIORITY", priority(2), None, None),
])

# Its answer waits for the window, so the server's side stays open.
STUCK = [settings((INITIAL_WINDOW, 0)), request(), began()]
HALF_CLOSED = state("5.1", "a half-closed (remote) stream", STUCK, [
    ("DATA", data(1, b"x"), "200 reset STREAM_CLOSED",
     "5.1 asks for an error of the stream; some end the connection"),
    ("empty DATA", data(1, b"", end=True), "200 reset STREAM_CLOSED", "as DATA"),
    ("HEADERS", request(), "200 reset STREAM_CLOSED", "as DATA"),
    ("CONTINUATION", continuation(1), PROTOCOL, None),
    ("WINDOW_UPDATE", window(1, 100000), "200", None),
    ("PRIORITY", priority(1), "200 open", None),
    ("PRIORITY_UPDATE", priority_update(1), "200 open", None),
    ("RST_STREAM", rst(1), "200 open", None),
])

DONE = state("5.1", "a stream closed by END_STREAM on both sides", [request(), answered()], [
    ("DATA", data(1, b"x"), CLOSED, "5.1 demands it; some ignore such frames"),
    ("empty DATA", data(1, b"", end=True), CLOSED, "as DATA"),
    ("HEADERS", request(), CLOSED, "as DATA; 5.1.1 has PROTOCOL_ERROR for a number used again"),
    ("CONTINUATION", continuation(1), PROTOCOL, None),
    ("WINDOW_UPDATE", window(1, 100), "200", None),
    ("PRIORITY", priority(1), "200", None),
    ("PRIORITY_UPDATE", priority_update(1), "200", None),
    ("RST_STREAM", rst(1), "200", None),
    ("RST_STREAM, twice", rst(1) + rst(1), "200", None),
])

GONE = state("5.1", "a stream the client has reset", [post(), rst(1), synced], [
    ("DATA", data(1, b"x"), CLOSED,
     "5.1 asks for STREAM_CLOSED; of the stream or, as 5.4.1 allows, the connection; some "
     "ignore it"),
    ("HEADERS", request(), CLOSED, "as DATA"),
    ("CONTINUATION", continuation(1), PROTOCOL, None),
    ("WINDOW_UPDATE", window(1, 100), None, None),
    ("PRIORITY", priority(1), None, None),
    ("RST_STREAM", rst(1), None, None),
])

MALFORMED = [request(more=[("Upper", "x")], end=False), answered()]
# Some end the connection for the malformed request already.
RESET = state("5.1", "a stream the server has reset", MALFORMED, [
    ("DATA", data(1, b"x"), "reset PROTOCOL_ERROR", WHOLE),
    ("DATA with END_STREAM", data(1, b"x", end=True), "reset PROTOCOL_ERROR", WHOLE),
    ("HEADERS", request(), "reset PROTOCOL_ERROR",
     "5.1: the client may not know yet; some say STREAM_CLOSED"),
    ("CONTINUATION", continuation(1), PROTOCOL, None),
    ("WINDOW_UPDATE", window(1, 100), "reset PROTOCOL_ERROR", WHOLE),
    ("RST_STREAM", rst(1), "reset PROTOCOL_ERROR", WHOLE),
    ("PRIORITY", priority(1), "reset PROTOCOL_ERROR", WHOLE),
])

SKIPPED = state("5.1.1", "a stream that was passed over", [request(5), answered(5)], [
    ("HEADERS", request(3), PROTOCOL,
     "5.1.1 has PROTOCOL_ERROR for a number that is too low; some say STREAM_CLOSED"),
    ("DATA", data(3, b"x"), CLOSED, "an error either way; some ignore it"),
    ("WINDOW_UPDATE", window(3, 100), {5: "200"}, None),
    ("RST_STREAM", rst(3), {5: "200"}, None),
    ("PRIORITY", priority(3), {5: "200"}, None),
])


def was_reset(talk):
    talk.wait(lambda: talk.stream(1).reset is not None)


def late_table(talk):
    """What follows a reset of ours must still be decoded."""
    trailers = headers(1, literal("x-late", "1", kind="added"))
    return trailers + headers(3, request()(talk)[9:] + indexed(62))


LOCAL = [
    Row("5.1", "a body behind an answer that came early",
        [request(method="POST", end=False), answered(), data(1, b"late", end=True)], "405",
        why="peers that take a POST for the page"),
    Row("5.1", "a body that never ends behind an answer that came early",
        [request(method="POST", end=False), answered(), data(1, b"late"),
         was_reset], "405 reset NO_ERROR",
        why="8.1 allows to stop the client so; some read on without end"),
    Row("5.1", "WINDOW_UPDATE on a half-closed (local) stream",
        [request(method="POST", end=False), answered(), window(1, 100), data(1, b"", end=True)],
        "405", why="peers that take a POST for the page"),
    Row("5.1", "RST_STREAM on a half-closed (local) stream",
        [request(method="POST", end=False), answered(), rst(1)], "405",
        why="peers that take a POST for the page"),
    Row("5.1", "a block behind our reset still counts for the table",
        [*MALFORMED, late_table], {1: "reset PROTOCOL_ERROR", 3: "200"}, why=WHOLE),
]

NUMBERS = [
    Row("5.1.1", "HEADERS of no stream", [request(0)], PROTOCOL),
    Row("5.1.1", "HEADERS on an even stream", [request(2)], PROTOCOL),
    Row("5.1.1", "HEADERS on an even stream below the newest", [request(5), request(4)], PROTOCOL,
        why="some say STREAM_CLOSED"),
    Row("5.1.1", "HEADERS on a lower stream that is idle", [request(7), request(5)], PROTOCOL,
        why="as HEADERS on a stream that was passed over"),
    Row("5.1.1", "numbers may be left out",
        [request(3), request(301), request(1001)], {3: "200", 301: "200", 1001: "200"}),
    Row("5.1.1", "the greatest number", [request(WINDOW_MAX)], {WINDOW_MAX: "200"}, probe=None),
    Row("5.1.1", "the greatest number, then a lower one",
        [request(WINDOW_MAX), answered(WINDOW_MAX), request(5)], {WINDOW_MAX: "200"}, probe=None,
        why="of streams long ago we do not remember whether we reset them: as for those, what comes "
            "is ignored; some say PROTOCOL_ERROR or STREAM_CLOSED"),
    Row("5.1.1", "DATA on a closed stream of long ago",
        [request(1), answered(), request(1001), answered(1001), data(1, b"x")],
        {1: "200", 1001: "200"}, why="as the greatest number, then a lower one"),
]


def crowd(count, first=1):
    return [post(first + 2 * number) for number in range(count)]


def refused(talk):
    assert talk.settings[MAX_CONCURRENT] == MOST, talk.settings


CROWDS = [
    Row("5.1.2", "as many streams as allowed", [*crowd(MOST), rst(1), data(3, b"", end=True)],
        {3: "200"}, check=refused, why="peers with another limit"),
    Row("5.1.2", "one stream more than allowed", crowd(MOST + 1), PROTOCOL,
        why="5.1.2 has PROTOCOL_ERROR or REFUSED_STREAM; 5.4.1 lets it be the connection's: a "
            "client that knows the limit has no excuse"),
    Row("5.1.2", "one more, before the limit was acknowledged",
        [PREFACE, settings(), *crowd(MOST + 1)], {201: "reset REFUSED_STREAM"}, opening=False,
        acknowledge=False, probe=None, why="peers with another limit"),
    Row("5.1.2", "a refused stream's block counts for the table",
        [PREFACE, settings(), *crowd(MOST),
         lambda talk: headers(201, request()(talk)[9:] + literal("x-a", "b", kind="added")),
         rst(1), lambda talk: headers(203, request()(talk)[9:] + indexed(62))],
        {201: "reset REFUSED_STREAM", 203: "200"}, opening=False, acknowledge=False,
        why="peers with another limit"),
    Row("5.1.2", "a stream that was reset makes room",
        [*crowd(MOST), rst(1), post(201), data(201, b"x", end=True), answered(201)], {201: "200"},
        why="peers with another limit"),
    Row("5.1.2", "a stream that ended makes room",
        [*crowd(MOST), data(1, b"x", end=True), answered(), request(201)], {1: "200", 201: "200"},
        why="peers with another limit"),
    Row("5.1.2", "half-closed streams count",
        [settings((INITIAL_WINDOW, 0)), *[request(1 + 2 * n) for n in range(MOST)],
         began(2 * MOST - 1), request(201)], PROTOCOL, why="as one stream more than allowed"),
]

ERRORS_5_4 = [
    Row("5.4.1", "GOAWAY tells the highest stream that was seen",
        [request(1), answered(), request(7), answered(7), ping(b"short")],
        "goaway FRAME_SIZE_ERROR",
        check=lambda talk: talk.goaway[1] == 7 or 1 / 0),
    Row("5.4.1", "GOAWAY before any stream", [ping(b"short")], "goaway FRAME_SIZE_ERROR",
        check=lambda talk: talk.goaway[1] == 0 or 1 / 0),
    Row("5.4.2", "no stream suffers from another's error",
        [big(1), began(1), request(3, more=[("Upper", "x")]), request(5, method="HEAD")],
        {1: "200 open", 3: "reset PROTOCOL_ERROR", 5: "200"},
        why="peers that give one stream the whole window of the connection first"),
    Row("5.4.2", "a reset answers no reset", MALFORMED + [rst(1), rst(1), rst(1)],
        "reset PROTOCOL_ERROR", why=WHOLE),
]

PRIORITIES = [
    Row("5.3", "HEADERS that depends on itself", [request(priority=(1, 15))], "200",
        why="RFC 9113 takes the priorities of RFC 7540 out, and with them this error"),
    Row("5.3", "PRIORITY that depends on itself", [priority(3, 3), request()], "200",
        why="as HEADERS that depends on itself"),
    Row("5.3", "HEADERS with an exclusive place", [request(priority=(1 << 31, 255))], "200"),
    Row("5.3", "HEADERS that depends on a stream to come", [request(priority=(99, 0))], "200"),
    Row("5.3", "PRIORITY of a thousand idle streams", [
        b"".join(priority(3 + 2 * n, 0) for n in range(900)), request()], "200",
        why="10.5 leaves the limit to us: a thousand"),
]

ROWS = (IDLE + LATER_IDLE + EVEN_IDLE + HALF_CLOSED + DONE + GONE + RESET + SKIPPED + LOCAL
        + NUMBERS + CROWDS + ERRORS_5_4 + PRIORITIES)
