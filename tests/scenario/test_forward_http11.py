"""What passes between a shopper and an application that speaks HTTP/1.1."""
import http.server
import re
import struct
import tempfile
import threading

import hpack
import pytest

from h2client import H2
from run import keys
from run.process import wait_until
from shopper import Shopper
from upstream import Upstream
from upstream11 import BIG, MEDIUM, Upstream11


class Application(http.server.BaseHTTPRequestHandler):
    """Python's own server, which keeps connections and knows no gateway."""
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        body = f"{self.command} {self.path} {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_DELETE = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (body[:7], body[7:]):
            if part:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def application():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Application)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield "127.0.0.1:%d" % server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def upstream():
    made = Upstream11()
    yield made
    made.close()


def http11(address, **more):
    return {"address": address, "protocol": "http/1.1", "request_timeout": "1s", **more}


@pytest.fixture
def own(make_shop, upstream, application):
    return make_shop(options={"gateway": {"trusted_proxies": [], "upstreams": {
        "app": http11(upstream.address),
        "real": http11(application, host="shop.internal"),
        "gone": http11("127.0.0.1:1")}}})


def enter(shop, upstream="app"):
    """(path, visitor inside); below path/free anybody may go."""
    name = shop.fresh("p")
    sale = shop.sale(units=5, upstream=upstream, identity="account",
                     match=[{"host": None, "path": f"/{name}", "prefix": True}],
                     bypass=[{"host": None, "path": f"/{name}/free", "prefix": True}])
    visitor = Shopper(shop.connect(), sale, shop.token(), mode="cookie")
    visitor.enter()
    return f"/{name}", visitor


def get(visitor, path, method="GET", body=None, **headers):
    return visitor.take(visitor.connection.request(method, path, visitor.headers(**headers), body))


def test_an_ordinary_application(own):
    path, visitor = enter(own, "real")
    for number in range(3):
        answer = get(visitor, f"{path}/a?n={number}")
        assert answer.status == 200 and answer.header("connection") is None
        assert answer.body.decode() == f"GET {path}/a?n={number} shop.internal"
    head = get(visitor, f"{path}/a", method="HEAD")
    assert (head.status, head.body) == (200, b"") and int(head.header("content-length")) > 0
    assert get(visitor, f"{path}/a", method="DELETE").body.startswith(b"DELETE ")
    for size in (0, 5, 300_000):
        answer = get(visitor, f"{path}/a", method="POST", body="y" * size)
        assert (answer.status, answer.body) == (201, b"y" * size)
        assert answer.header("transfer-encoding") is None


def test_answers_of_every_shape(own, upstream, expected_errors):
    path, visitor = enter(own)
    free = f"{path}/free"
    for what in ("fine", "chunked", "interim", "close", "leftover", "until-end", "hops", "fine"):
        answer = visitor.connection.get(f"{free}/{what}")
        assert (answer.status, answer.body) == (200, b"fine"), what
        if what == "hops":
            names = {name for name, _ in answer.headers}
            assert "x-end" in names and not names & {
                "connection", "keep-alive", "x-hop", "proxy-connection", "upgrade", "sluice-other"}
    for what in ("204", "304"):
        answer = visitor.connection.get(f"{free}/{what}")
        assert (answer.status, answer.body, answer.header("etag")) == (int(what), b"", '"e"')

    before = own.stack.metrics().value("sluice_forward_failed_total")
    bad = ("two-lengths", "length-and-chunks", "nul", "bare-lf", "bare-cr", "folded", "not-http",
           "long-head", "switch")
    for what in bad:
        answer = visitor.connection.get(f"{free}/{what}")
        assert (answer.status, answer.json["code"]) == (502, "bad_gateway"), what
        assert b"evil" not in answer.body
    for what in ("cut", "cut-chunk"):
        assert visitor.connection.get(f"{free}/{what}").reset is not None, what
    answer = visitor.connection.get(f"{free}/hang")
    assert (answer.status, answer.json["code"]) == (504, "gateway_timeout")
    assert visitor.connection.get(f"{free}/fine").body == b"fine"
    failed = own.stack.metrics().value("sluice_forward_failed_total") - before
    assert failed == len(bad) + 3
    assert not upstream.odd

    path, visitor = enter(own, "gone")
    answer = visitor.connection.get(f"{path}/free/x")
    assert (answer.status, answer.json["code"]) == (503, "unavailable")
    assert answer.header("retry-after")


def test_connections_are_kept_and_spoiled_ones_are_not(own, upstream):
    path, visitor = enter(own)

    def number(what, **more):
        assert visitor.connection.request(more.get("method", "GET"), f"{path}/free/{what}", (),
                                          more.get("body")).body == b"fine"
        return upstream.seen[-1][0]
    first = number("fine")
    assert {number("fine") for _ in range(10)} == {first}
    for what in ("close", "leftover", "until-end"):
        spoiled = number(what)
        assert number("fine") > spoiled, what
    # An answer before the body was read: nobody else gets what is left of it.
    early = number("early", method="POST", body="e" * 900_000)
    wait_until(lambda: early in upstream.ends, 10, "the connection closed")
    assert number("fine") > early
    # The application left without a word behind its last answer.
    for _ in range(20):
        left = number("last")
        wait_until(lambda: left in upstream.ends, 10, "the application gone")
        assert visitor.connection.request("POST", f"{path}/free/fine", (), "x").status == 200
    assert not upstream.odd


def test_a_slow_reader_stops_the_application(own, upstream):
    path, visitor = enter(own)
    stream = visitor.connection.start("GET", f"{path}/free/big")
    wait_until(lambda: upstream.sent > 0, 5, "the first bytes")
    settled = []

    def stands():
        settled.append(upstream.sent)
        return len(settled) > 4 and settled[-1] == settled[-5]
    wait_until(stands, 10, "the application to be stopped")
    assert upstream.sent < BIG / 2
    assert len(visitor.connection.finish(stream, 60).body) == BIG


# ---- smuggling: what a client writes is never what the application reads ----

TEMPLATE = re.compile(
    rb"(?P<line>(?:GET|POST|PUT|HEAD|OPTIONS) /[!-~]* HTTP/1\.1)\r\n"
    rb"host: (?P<host>[a-z0-9.:\[\]-]+)\r\n"
    rb"sluice-sale: [a-z0-9-]+\r\n"
    rb'forwarded: for=127\.0\.0\.1;host="(?P=host)";proto=https\r\n'
    rb"x-forwarded-for: 127\.0\.0\.1\r\nx-forwarded-proto: https\r\n"
    rb"x-forwarded-host: (?P=host)\r\n"
    rb"traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-00\r\n"
    rb"(?P<passed>(?:(?:accept|cookie|referer|user-agent): [ -~]*\r\n)*)"
    rb"(?:content-length: (?P<length>\d+)\r\n)?\r\n")

SMUGGLED = "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n"

# (why, method, path below, fields, body, whether the stream ends with its head)
CORPUS = [
    ("chunked", "POST", "fine", [("transfer-encoding", "chunked")], b"0\r\n\r\n" + SMUGGLED.encode()),
    ("chunked and length", "POST", "fine", [("transfer-encoding", "chunked"),
                                            ("content-length", "5")], b"0\r\n\r\n"),
    ("length too short", "POST", "fine", [("content-length", "3")], b"abc" + SMUGGLED.encode()),
    ("length too long", "POST", "fine", [("content-length", "99")], b"abc"),
    ("length 0 and a body", "POST", "fine", [("content-length", "0")], SMUGGLED.encode()),
    ("two lengths", "POST", "fine", [("content-length", "3"), ("content-length", "4")], b"abc"),
    ("the same length twice", "POST", "fine", [("content-length", "3")] * 2, b"abc"),
    ("a list of lengths", "POST", "fine", [("content-length", "3,3")], b"abc"),
    ("a sign", "POST", "fine", [("content-length", "+3")], b"abc"),
    ("a space in the length", "POST", "fine", [("content-length", " 3")], b"abc"),
    ("2^64 + 3", "POST", "fine", [("content-length", "18446744073709551619")], b"abc"),
    ("an honest body", "POST", "fine", [("content-length", "3")], b"abc"),
    ("a body without a length", "POST", "fine", [], b"abc"),
    ("a body on GET", "GET", "fine", [], SMUGGLED.encode()),
    ("a body that is a request", "POST", "fine", [], SMUGGLED.encode()),
    ("no body on POST", "POST", "fine", [], None),
    ("length without a body", "POST", "fine", [("content-length", "5")], None),
    ("CRLF in a value", "GET", "fine", [("referer", "a\r\ntransfer-encoding: chunked")], None),
    ("a request in a value", "GET", "fine", [("user-agent", "a\r\n\r\n" + SMUGGLED)], None),
    ("LF in a value", "GET", "fine", [("referer", "a\nx: y")], None),
    ("CR in a value", "GET", "fine", [("referer", "a\rx: y")], None),
    ("NUL in a value", "GET", "fine", [("referer", "a\0b")], None),
    ("CRLF in a name", "GET", "fine", [("x\r\ny", "a")], None),
    ("a colon in a name", "GET", "fine", [("host: x\r\na", "a")], None),
    ("a space behind a name", "GET", "fine", [("content-length ", "5")], None),
    ("upper case", "POST", "fine", [("Transfer-Encoding", "chunked")], b"0\r\n\r\n"),
    ("underscore", "POST", "fine", [("content_length", "9"), ("transfer_encoding", "chunked")], b"a"),
    ("CRLF in a cookie", "GET", "fine", [("cookie", "a=b\r\nx: y")], None),
    ("an honest cookie", "GET", "fine", [("cookie", "a=b"), ("cookie", "c=d")], None),
    ("CRLF in the path", "GET", "fine HTTP/1.1\r\nhost: x\r\n\r\nGET /smuggled", [], None),
    ("CRLF in the query", "GET", "fine?a HTTP/1.1\r\nhost: x\r\n\r\n", [], None),
    ("a space in the query", "GET", "fine?a HTTP/1.1", [], None),
    ("a tab in the query", "GET", "fine?a\tb", [], None),
    ("NUL in the query", "GET", "fine?a\0b", [], None),
    ("CRLF in the method", "GET / HTTP/1.1\r\nhost: x\r\n\r\nGET", "fine", [], None),
    ("a space in the method", "GET /x", "fine", [], None),
    ("expect", "POST", "fine", [("expect", "100-continue")], b"abc"),
    ("te", "GET", "fine", [("te", "trailers")], None),
    ("te with more", "GET", "fine", [("te", "trailers, chunked")], None),
    ("connection", "GET", "fine", [("connection", "close, host")], None),
    ("keep-alive", "GET", "fine", [("keep-alive", "timeout=99")], None),
    ("upgrade", "GET", "fine", [("upgrade", "h2c"), ("http2-settings", "AAAA")], None),
    ("proxy-connection", "GET", "fine", [("proxy-connection", "close")], None),
    ("another host", "GET", "fine", [("host", "evil.test")], None),
    ("forged fields", "GET", "fine", [("x-forwarded-for", "6.6.6.6"), ("forwarded", "for=6.6.6.6"),
                                      ("sluice-account", "root"), ("x-account", "root"),
                                      ("x_account", "root"), ("traceparent", "00-1-1-00"),
                                      ("sluice-sale", "other")], None),
    ("trailers", "POST", "fine", "trailers", b"abc"),
]


class RawStream:
    """One connection a request, so that what one does wrong is its own."""

    def __init__(self, shop):
        connection = H2(shop.stack.url, shop.stack.ca)
        self.sock, self.authority = connection.sock, connection.authority
        self.encoder, self.buffer = hpack.Encoder(), b""

    def frame(self, kind, flags, payload):
        self.sock.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
                          + struct.pack(">I", 1) + payload)

    def ask(self, method, path, fields, body):
        trailers = fields == "trailers"
        head = [(":method", method), (":scheme", "https"), (":authority", self.authority),
                (":path", path), *([] if trailers else fields)]
        try:
            self.frame(1, 4 if body is not None else 5, self.encoder.encode(head))
            if body is not None:
                self.frame(0, 0 if trailers else 1, body)
            if trailers:
                self.frame(1, 5, self.encoder.encode([("content-length", "9"), ("x-t", "y")]))
            return self.outcome()
        except OSError:
            return "closed"

    def outcome(self):
        """The status, "reset" or "closed"."""
        self.sock.settimeout(10)
        decoder = hpack.Decoder()
        while piece := self.sock.recv(65536):
            self.buffer += piece
            while len(self.buffer) >= 9:
                size = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) < 9 + size:
                    break
                kind, payload = self.buffer[3], self.buffer[9:9 + size]
                self.buffer = self.buffer[9 + size:]
                if kind == 1:
                    return int(dict(decoder.decode(payload))[":status"])
                if kind in (3, 7):
                    return "reset"
        return "closed"


def test_what_arrives_is_written_by_the_gateway_alone(own, upstream):
    path, visitor = enter(own)
    passed = []
    for why, method, below, fields, body in CORPUS:
        before = len(upstream.seen)
        raw = RawStream(own)
        outcome = raw.ask(method, f"{path}/free/{below}", fields, body)
        raw.sock.close()
        assert outcome == 200 or outcome in ("reset", "closed") or 400 <= outcome < 500, (why, outcome)
        arrived = upstream.seen[before:]
        assert len(arrived) == (outcome == 200), (why, outcome, arrived)
        for _, head, got in arrived:
            found = TEMPLATE.fullmatch(head)
            assert found, (why, head)
            assert got == (body or b""), (why, got)
            assert found["length"] == (None if method == "GET" and not body
                                       else str(len(got)).encode()), (why, head)
            assert found["line"] == f"{method} {path}/free/{below} HTTP/1.1".encode(), why
            passed.append((why, found["passed"]))
        # Whoever comes next is answered as if nothing had been.
        assert visitor.connection.get(f"{path}/free/fine").body == b"fine", why
        assert not upstream.odd, (why, upstream.odd)
    told = dict(passed)
    assert told["an honest cookie"] == b"cookie: a=b; c=d\r\n"
    assert {"an honest body", "a body without a length", "a body on GET", "a body that is a request",
            "no body on POST", "underscore", "forged fields", "trailers"} <= set(told)
    assert not set(told) & {why for why, *_ in CORPUS if "CR" in why or "LF" in why or "NUL" in why
                            or "length" in why and why not in ("a body without a length",)}


# ---- TLS toward the application ----

@pytest.fixture(scope="module")
def certificate():
    with tempfile.TemporaryDirectory() as folder:
        yield keys.make_certificate(folder)


def test_applications_behind_tls(make_shop, certificate):
    ca, cert, key = certificate
    plain, multiplexed = Upstream11(cert, key), Upstream(cert, key)
    stranger = Upstream11(*_another_certificate())
    try:
        shop = make_shop(options={"gateway": {"upstreams": {
            "one": http11(plain.address, ca_file=ca),
            "two": http11(multiplexed.address, ca_file=ca, protocol="h2"),
            "mute": http11(plain.address, ca_file=ca, protocol="h2"),
            "false": http11(stranger.address, ca_file=ca)}}})
        for name, status in (("one", 200), ("two", 200), ("mute", 503), ("false", 503)):
            path, visitor = enter(shop, name)
            for _ in range(3):
                answer = visitor.connection.get(f"{path}/free/fine")
                assert answer.status == status, name
            if status == 200:
                assert len(visitor.connection.get(f"{path}/free/medium").body) == MEDIUM
        assert len(plain.seen) == 4 and not plain.odd and not stranger.seen
        assert {seen[0][":scheme"] for seen in multiplexed.seen} == {"https"}
    finally:
        for made in (plain, multiplexed, stranger):
            made.close()


def _another_certificate():
    folder = tempfile.mkdtemp()
    _, cert, key = keys.make_certificate(folder)
    return cert, key
