"""RFC 9113, section 8: what makes a request, and what its answer must be."""
from wire import *  # noqa: F403
from rows import (AUTHORITY, GET, HOST, METHOD, PATH, SCHEME, SINK, Row, answered, big, fields,
                  post, request, synced)

MALFORMED = "reset PROTOCOL_ERROR"
# 8.1.1: a malformed request is an error of its stream, or of the connection (5.4.1); an
# answer of 400 may go ahead of it.
AT_ONCE = "some answer 400, or end the connection"
LAX = AT_ONCE + ", or do not look"
POST = ((":method", "POST"), SCHEME, HOST, (":path", SINK))


def trailers(*pairs, stream=1, end=True):
    return headers(stream, block(pairs), end=end)


def body(*pieces):
    """DATA of these, the last one ends the stream."""
    return b"".join(data(1, piece, end=number == len(pieces) - 1)
                    for number, piece in enumerate(pieces))


TRAILERS = [
    Row("8.1", "trailers end a body", [post(), data(1, b"x"), trailers(("x-sum", "1"))], "200"),
    Row("8.1", "trailers without a body", [post(), trailers(("x-sum", "1"))], "200"),
    Row("8.1", "an empty block of trailers", [post(), data(1, b"x"), headers(1, b"")], "200",
        why="6.2 demands no byte of the fragment; some do"),
    Row("8.1", "trailers in pieces",
        [post(), data(1, b"x"), headers(1, literal("x-a", "b"), end_headers=False),
         continuation(1, literal("x-c", "d"))], "200"),
    Row("8.1", "trailers that do not end the stream",
        [post(), data(1, b"x"), trailers(("x-sum", "1"), end=False)], MALFORMED,
        why="8.1 demands it; some end the connection"),
    Row("8.1", "a second head", [post(), post()], MALFORMED,
        why="as trailers that do not end the stream"),
    Row("8.1", "a pseudo-field in trailers", [post(), trailers((":path", "/"))], MALFORMED,
        why=AT_ONCE),
    Row("8.1", "a status in trailers", [post(), trailers((":status", "200"))], MALFORMED,
        why=AT_ONCE),
    Row("8.1", "an upper-case name in trailers", [post(), trailers(("X-Sum", "1"))], MALFORMED,
        why="peers that throw trailers away unread"),
    Row("8.1", "a line end in trailers", [post(), trailers(("x-sum", "1\r\nx: y"))], MALFORMED,
        why="as an upper-case name in trailers"),
    Row("8.1", "a connection's field in trailers",
        [post(), trailers(("transfer-encoding", "chunked"))], MALFORMED,
        why="as an upper-case name in trailers"),
    Row("8.1", "DATA behind trailers",
        [request(method="POST", end=False), answered(), trailers(("x-sum", "1")), data(1, b"x")],
        "goaway STREAM_CLOSED", why="as DATA on a stream closed by END_STREAM"),
    Row("8.1", "trailers above the budget",
        [post(), data(1, b"x"), headers(1, literal("x", "") * 600)], MALFORMED,
        why="10.5.1 leaves the limit to us"),
]

LENGTHS = [
    Row("8.1.1", "a body as long as content-length",
        [post(more=[("content-length", "5")]), body(b"12", b"345")], "200"),
    Row("8.1.1", "a body as long as content-length, with trailers",
        [post(more=[("content-length", "5")]), data(1, b"12345"), trailers(("x-sum", "1"))],
        "200"),
    Row("8.1.1", "padding is not the body's length",
        [post(more=[("content-length", "5")]), data(1, b"12345", end=True, pad=20)], "200"),
    Row("8.1.1", "content-length 0 and no body",
        [post(more=[("content-length", "0")], end=True)], "200"),
    Row("8.1.1", "content-length 0 and empty DATA",
        [post(more=[("content-length", "0")]), body(b"")], "200"),
    Row("8.1.1", "a body longer than content-length",
        [post(more=[("content-length", "5")]), body(b"123456")], MALFORMED),
    Row("8.1.1", "a body longer than content-length, in pieces",
        [post(more=[("content-length", "5")]), data(1, b"123"), data(1, b"456")], MALFORMED, why=LAX),
    Row("8.1.1", "a body shorter than content-length",
        [post(more=[("content-length", "5")]), body(b"1234")], MALFORMED),
    Row("8.1.1", "a body shorter than content-length, ended by trailers",
        [post(more=[("content-length", "5")]), data(1, b"1234"), trailers(("x-sum", "1"))],
        MALFORMED, why=LAX),
    Row("8.1.1", "content-length and no body at all",
        [post(more=[("content-length", "5")], end=True)], MALFORMED, why=LAX),
    Row("8.1.1", "content-length and empty DATA",
        [post(more=[("content-length", "5")]), body(b"")], MALFORMED),
    *[Row("8.1.1", f"content-length {title}",
          [post(more=[("content-length", value) for value in values]), body(b"12345")], MALFORMED, why=LAX)
      for title, values in [
          ("twice, equal", ["5", "5"]), ("twice, different", ["5", "6"]), ("+5", ["+5"]),
          ("-5", ["-5"]), ("nothing", [""]), ("1,1", ["1,1"]), ("5, 5", ["5, 5"]),
          ("0x5", ["0x5"]), ("5.0", ["5.0"]), ("2^64", ["18446744073709551616"]),
          ("2^63", ["9223372036854775808"]), ("twenty digits", ["10000000000000000005"])]],
    Row("8.1.1", "content-length with zeros in front",
        [post(more=[("content-length", "0005")]), body(b"12345")], "200"),
    Row("8.1.1", "GET with a body", [request(end=False), data(1, b"x", end=True)], "200"),
]


def name(title, text, want=MALFORMED, **more):
    return Row("8.2.1", f"a name with {title}", [request(more=[(text, "x")])], want, why=LAX, **more)


def value(title, text, want=MALFORMED, **more):
    return Row("8.2.1", f"a value with {title}", [request(more=[("x-field", text)])], want,
               **{"why": LAX, **more})


FIELDS = [
    name("an upper-case letter", "X-upper"), name("an upper-case letter last", "x-uppeR"),
    Row("8.2.1", "a name that is empty", [request(more=[("", "x")])], MALFORMED, why=LAX),
    name("a space", "x field"), name("a space behind it", "x-field "), name("a colon", "x:field"),
    name("a colon behind it", "x-field:"), name("NUL", "x\0field"), name("a line end", "x\r\nfield"),
    name("LF", "x\nfield"), name("DEL", "x\x7ffield"), name("a byte above ASCII", "x\xe4field"),
    name("a tab", "x\tfield"), name("a control", "x\x01field"),
    *[name(f"the separator {c}", f"x{c}field") for c in '"(),/;<=>?@[]\\{}'],
    *[name(f"the character {c}", f"x{c}field", "200") for c in "!#$%&'*+-.^_`|~0"],
    value("NUL", "a\0b"), value("CR", "a\rb"), value("LF", "a\nb"), value("a line end", "a\r\nb: c"),
    value("CR alone", "\r"), value("a space in front", " a"), value("a space behind", "a "),
    value("a tab in front", "\ta"), value("a tab behind", "a\t"), value("one space alone", " "),
    *[value(f"the control {n:#04x}", f"a{chr(n)}b",
            why="8.2.1 names NUL, CR and LF; RFC 9110, 5.5 has the others be refused or replaced")
      for n in (0x01, 0x08, 0x0b, 0x0c, 0x1b, 0x1f, 0x7f)],
    value("nothing", "", "200"), value("a tab within", "a\tb", "200"),
    value("spaces within", "a  b", "200"), value("bytes above ASCII", "\x80\xff\xe4", "200"),
    value("every visible character", "".join(map(chr, range(0x21, 0x7f))), "200"),
    Row("8.2", "a field three times", [request(more=[("x-a", "1")] * 3)], "200"),
]

CONNECTION = [
    *[Row("8.2.2", f"the field {field}: {text}", [request(more=[(field, text)])], MALFORMED,
          why="some drop the field")
      for field, text in [("connection", "close"), ("connection", "te"), ("keep-alive", "3"),
                          ("proxy-connection", "keep-alive"), ("transfer-encoding", "chunked"),
                          ("transfer-encoding", "identity"), ("upgrade", "h2c"), ("te", "gzip"),
                          ("te", "trailers, gzip"), ("te", "trailers;q=1"), ("te", "")]],
    Row("8.2.2", "te: trailers", [request(more=[("te", "trailers")])], "200"),
    Row("8.2.2", "http2-settings", [request(more=[("http2-settings", "AAMAAABk")])], "200"),
]

COOKIES = [
    Row("8.2.3", "90 crumbs", [request(more=[("cookie", f"c{n}=v") for n in range(90)])], "200",
        why="peers with another limit"),
    Row("8.2.3", "crumbs between others",
        [request(more=[("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2")])], "200"),
    Row("8.2.3", "an empty crumb", [request(more=[("cookie", "a=1"), ("cookie", "")])], "200"),
    Row("10.5.1", "101 fields", [request(more=[("cookie", "a=1")] * 101)], "431",
        why="the limit is ours"),
    Row("10.5.1", "fields of more than 16 KiB", [request(more=[("x-a", "v" * 8200)] * 2, how={
        "huffman": True})], "431", why="the limit is ours"),
]


def without(*gone):
    return [pair for pair in GET if pair not in gone]


PSEUDO = [
    Row("8.3.1", "all four", [fields(*GET)], "200"),
    Row("8.3.1", "all four in another order", [fields(PATH, HOST, METHOD, SCHEME)], "200"),
    *[Row("8.3.1", f"no {gone[0]}", [fields(*without(gone))], MALFORMED,
          why="some answer 400") for gone in (METHOD, SCHEME, PATH)],
    Row("8.3.1", "neither :authority nor host", [fields(*without(HOST))], MALFORMED,
        why="some answer 400"),
    Row("8.3.1", "host instead of :authority", [fields(*without(HOST), ("host", AUTHORITY))],
        "200"),
    Row("8.3.1", "host beside :authority", [fields(*GET, ("host", AUTHORITY))], "200"),
    Row("8.3.1", "host twice", [fields(*GET, ("host", AUTHORITY), ("host", AUTHORITY))], MALFORMED,
        why="RFC 9112, 3.2: 400; a request so malformed is reset like any other"),
    *[Row("8.3.1", f"an empty {gone[0]}", [fields(*without(gone), (gone[0], ""))], MALFORMED,
          why="some answer 400") for gone in GET],
    *[Row("8.3.1", f"{pair[0]} twice", [fields(*GET, pair)], MALFORMED, why=AT_ONCE)
      for pair in GET],
    Row("8.3", "a pseudo-field behind a field",
        [fields(METHOD, SCHEME, HOST, ("accept", "*/*"), PATH)], MALFORMED, why=LAX),
    Row("8.3", "an unknown pseudo-field", [fields(*GET, (":unknown", "x"))], MALFORMED, why=LAX),
    Row("8.3", "a pseudo-field without a name", [fields(*GET, (":", "x"))], MALFORMED, why=LAX),
    Row("8.3", "an answer's pseudo-field", [fields(*GET, (":status", "200"))], MALFORMED, why=LAX),
    Row("8.3", "a pseudo-field in upper case", [fields(*GET, (":Path", "/"))], MALFORMED, why=LAX),
    Row("RFC 8441 4", ":protocol, which we have not offered",
        [fields((":method", "CONNECT"), SCHEME, HOST, PATH, (":protocol", "websocket"))],
        MALFORMED, why="peers that do offer it"),
    Row("8.3.1", "a path without a slash", [fields(METHOD, SCHEME, HOST, (":path", "x"))],
        MALFORMED, why="some answer 400"),
    Row("8.3.1", "a path that is a whole URI",
        [fields(METHOD, SCHEME, HOST, (":path", "https://a.test/x"))], MALFORMED,
        why="some answer 400"),
    Row("8.3.1", "OPTIONS *", [fields((":method", "OPTIONS"), SCHEME, HOST, (":path", "*"))], "400",
        why="it is well-formed, and nothing here answers it"),
    Row("8.3.1", "GET *", [fields(METHOD, SCHEME, HOST, (":path", "*"))], MALFORMED,
        why="some answer 400"),
    *[Row("8.3.1", f"a scheme {title}", [fields(METHOD, (":scheme", text), HOST, PATH)], MALFORMED,
          why="some do not look at it")
      for title, text in [("with a space", "ht tp"), ("with a colon", "https:"),
                          ("that begins with a digit", "1https"), ("with a line end", "https\r\n")]],
    *[Row("8.3.1", f"a method with {title}", [fields((":method", text), SCHEME, HOST, PATH)],
          MALFORMED, why="some answer 400")
      for title, text in [("a space", "GE T"), ("a line end", "GET\r\n"), ("NUL", "GET\0"),
                          ("a colon", "GET:")]],
    Row("8.5", "CONNECT", [fields((":method", "CONNECT"), (":authority", "a.test:443"))], "405",
        why="some reset it"),
    Row("8.5", "CONNECT with :path",
        [fields((":method", "CONNECT"), (":authority", "a.test:443"), PATH)], MALFORMED),
    Row("8.5", "CONNECT with :scheme",
        [fields((":method", "CONNECT"), (":authority", "a.test:443"), SCHEME)], MALFORMED),
    Row("8.5", "CONNECT without :authority", [fields((":method", "CONNECT"))], MALFORMED),
    Row("8.5", "CONNECT, and data behind it",
        [fields((":method", "CONNECT"), (":authority", "a.test:443"), end=False), answered(),
         data(1, b"x", end=True)], "405", why="some reset it"),
]


def no_body(talk):
    assert talk.stream(1).body == b"" and talk.stream(1).ended
    assert not [f for f in talk.frames if f[0] == DATA and f[3]], talk.frames


def length_of_body(talk):
    one = talk.stream(1)
    assert dict(one.fields)["content-length"] == str(len(one.body)), one.fields


def lower_case(talk):
    for field, _ in talk.stream(1).fields:
        assert field == field.lower(), field
        assert field not in ("connection", "keep-alive", "transfer-encoding", "upgrade"), field


def ends_with_its_head(talk):
    assert [f[1] & END_STREAM for f in talk.frames if f[:1] == (HEADERS,) and f[2] == 1] == [1]


ANSWERS = [
    Row("8.1", "a body as long as it is said", [request()], "200", check=length_of_body),
    Row("8.2", "names are in lower case", [request()], "200", check=lower_case),
    Row("8.1", "HEAD has no body", [request(method="HEAD")], "200", check=no_body),
    Row("8.1", "HEAD ends with its head", [request(method="HEAD")], "200",
        check=ends_with_its_head),
    Row("8.1", "HEAD through an application", [request(path=None, method="HEAD"),
                                               lambda talk: request(3, talk.target.big, "HEAD")(talk)],
        {1: "200", 3: "200"}, check=no_body),
    Row("8.1", "HEAD with a body", [request(method="HEAD", end=False), data(1, b"x", end=True)],
        "200", check=no_body),
    Row("8.1", "expect: 100-continue is answered in the end",
        [post(more=[("expect", "100-continue")]), synced, body(b"abc")], "200"),
    Row("8.1", "an answer of several windows",
        [window(0, 2 ** 30), settings((INITIAL_WINDOW, 2 ** 30)), big()], "200",
        check=length_of_body),
]

ROWS = TRAILERS + LENGTHS + FIELDS + CONNECTION + COOKIES + PSEUDO + ANSWERS
