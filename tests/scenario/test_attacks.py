"""Odd and hostile HTTP/2 and TLS clients: cut off within the bound, while a good
client beside them is served."""
import socket
import ssl
import struct
import time

import hpack
import pytest

from h2client import H2
from shopper import API

@pytest.fixture
def sale(shop):
    sale = shop.sale()
    shop.wait_state(sale, "open")
    return sale


@pytest.fixture(autouse=True)
def good_client(shop, sale):
    """Twenty requests on a connection of its own, opened before, used after."""
    with H2(shop.stack.url, shop.stack.ca) as connection:
        assert connection.get(f"{API}/sales/{sale}").status == 200
        yield
        for _ in range(20):
            assert connection.get(f"{API}/sales/{sale}", seconds=2).status == 200


class Raw:
    """Frames by hand on one TLS connection; what comes is only glanced at."""

    def __init__(self, shop):
        connection = H2(shop.stack.url, shop.stack.ca)
        self.sock, self.authority = connection.sock, connection.authority
        self.encoder, self.stream, self.buffer = hpack.Encoder(), 1, b""
        self.goaway, self.ended = False, set()
        self.send(8, 0, 0, struct.pack(">I", 1 << 30))

    def head(self, path, method="GET", more=()):
        return self.encoder.encode([(":method", method), (":scheme", "https"), (":path", path),
                                    (":authority", self.authority), *more])

    def request(self, path, flags=0x5, method="GET", more=()):
        stream, self.stream = self.stream, self.stream + 2
        self.send(1, flags, stream, self.head(path, method, more))
        return stream

    def send(self, kind, flags, stream, payload):
        self.sock.settimeout(5)
        self.sock.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
                          + struct.pack(">I", stream) + payload)

    def read_some(self, seconds):
        """Takes what comes within the time; OSError when the peer has closed."""
        self.sock.settimeout(max(seconds, 0.001))
        piece = self.sock.recv(65536)
        if not piece:
            raise ConnectionResetError
        self.buffer += piece
        while len(self.buffer) >= 9:
            size = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + size:
                return
            kind, flags = self.buffer[3], self.buffer[4]
            stream = int.from_bytes(self.buffer[5:9], "big")
            self.buffer = self.buffer[9 + size:]
            self.goaway |= kind == 7
            if kind in (0, 1) and flags & 1 or kind == 3:
                self.ended.add(stream)
            if kind == 4 and not flags & 1:
                self.send(4, 1, 0, b"")

    def wait_end(self, stream):
        while stream not in self.ended:
            assert not self.goaway
            self.read_some(5)

    def drain(self):
        try:
            while True:
                self.read_some(0.002)
        except TimeoutError:
            pass

    def is_cut(self, seconds=10):
        """True once the peer has said GOAWAY or closed."""
        deadline = time.monotonic() + seconds
        try:
            while not self.goaway:
                self.read_some(deadline - time.monotonic())
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def is_cut_while(self, act, times):
        """Repeats until the peer closes, reading what comes so that it can."""
        try:
            for number in range(times):
                act(number)
                if number % 50 == 49:
                    self.drain()
                    if self.goaway:
                        return True
        except OSError:
            return True
        return self.is_cut(3)


def test_rapid_reset_is_cut_and_asks_nobody_behind(shop, sale):
    raw = Raw(shop)
    before = shop.stack.metrics().value("sluice_origin_requests_total", kind="hold")

    def act(_):
        stream = raw.request(f"{API}/sales/{sale}/line", method="POST")
        raw.send(3, 0, stream, struct.pack(">I", 8))
    assert raw.is_cut_while(act, 5000)
    assert shop.stack.metrics().value("sluice_origin_requests_total", kind="hold") == before


def test_honest_resets_of_finished_streams_are_not_cut(shop, sale):
    raw = Raw(shop)
    for _ in range(600):
        stream = raw.request(f"{API}/sales/{sale}")
        raw.wait_end(stream)
        raw.send(3, 0, stream, struct.pack(">I", 8))
    raw.drain()
    assert not raw.goaway


@pytest.mark.parametrize("kind", ["window overflow", "upper-case field", "content-length"])
def test_made_you_reset_is_cut(shop, sale, kind):
    raw = Raw(shop)

    def act(_):
        if kind == "window overflow":
            stream = raw.request(f"{API}/sales/{sale}/line", flags=0x4, method="POST")
            raw.send(8, 0, stream, struct.pack(">I", 0x7fffffff))
        elif kind == "upper-case field":
            raw.request(f"{API}/sales/{sale}", more=[("X-Upper", "y")])
        else:
            stream = raw.request(f"{API}/sales/{sale}/holds", flags=0x4, method="POST",
                                 more=[("content-length", "5")])
            raw.send(0, 1, stream, b"123456789")
    assert raw.is_cut_while(act, 3000)


@pytest.mark.parametrize("piece", [b"", b"x" * 100])
def test_continuation_flood_is_cut(shop, piece):
    raw = Raw(shop)
    raw.send(1, 0x1, 1, raw.head("/"))
    assert raw.is_cut_while(lambda _: raw.send(9, 0, 1, piece), 2000)


@pytest.mark.parametrize("kind, frame", [
    ("ping", (6, 0, 0, b"12345678")), ("settings", (4, 0, 0, b"")),
    ("unknown type", (77, 0, 0, b"x")), ("goaway", (7, 0, 0, b"\0" * 8)),
    ("priority", (2, 0, 1001, b"\0\0\0\0\x10")), ("window update", (8, 0, 0, b"\0\0\0\x01"))])
def test_floods_of_odd_frames_are_cut(shop, kind, frame):
    raw = Raw(shop)
    assert raw.is_cut_while(lambda _: raw.send(*frame), 40_000), kind


def test_flood_of_empty_data_is_cut(shop, sale):
    raw = Raw(shop)
    stream = raw.request(f"{API}/sales/{sale}/holds", flags=0x4, method="POST")
    assert raw.is_cut_while(lambda _: raw.send(0, 0, stream, b""), 40_000)


@pytest.mark.parametrize("frame", [
    (1, 0x5, 2, b"\x82"), (0, 1, 9, b"x"), (5, 0x4, 1, b"\0\0\0\x02\x82"), (6, 0, 0, b"short"),
    (4, 0, 0, b"12345"), (3, 0, 0, b"\0\0\0\x08"), (1, 0x5, 1, b"\xff\xff\xff\xff\xff\xff\xff"),
    (1, 0x5, 1, b"\xbf")], ids=["even stream", "idle stream", "push promise", "short ping",
                                "settings length", "reset of 0", "hpack integer", "hpack index"])
def test_protocol_errors_end_the_connection(shop, frame):
    raw = Raw(shop)
    raw.send(*frame)
    assert raw.is_cut(5)


def test_header_bomb_is_refused(shop):
    raw = Raw(shop)
    streams = [raw.request("/", more=[("cookie", "a")] * 4000) for _ in range(20)]
    try:
        for stream in streams:
            raw.wait_end(stream)
    except OSError:
        pass
    assert shop.stack.metrics().value("sluice_connections") <= 3


@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"PRI * HTT"])
def test_no_preface_is_closed_in_time(shop, first):
    context = ssl.create_default_context(cafile=shop.stack.ca)
    context.set_alpn_protocols(["h2"])
    port = shop.stack.nodes[0].port
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10),
                             server_hostname="127.0.0.1") as sock:
        if first:
            sock.sendall(first)
        sock.settimeout(8)
        got = b""
        try:
            while piece := sock.recv(4096):
                got += piece
        except (ConnectionResetError, ssl.SSLError) as why:
            assert not isinstance(why, TimeoutError)
        assert len(got) < 200


@pytest.mark.parametrize("first, seconds", [(b"", 15), (b"\x16\x03\x01", 8),
                                            (b"GET / HTTP/1.1\r\n\r\n", 8)])
def test_no_handshake_is_closed_in_time(shop, first, seconds):
    """Without a byte the kernel keeps the connection to itself for some seconds."""
    port = shop.stack.nodes[0].port
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        if first:
            sock.sendall(first)
        sock.settimeout(seconds)
        try:
            while sock.recv(4096):
                pass
        except ConnectionResetError:
            pass


def test_half_a_head_is_closed_in_time(shop):
    raw = Raw(shop)
    raw.send(1, 0x1, 1, raw.head("/")[:5])
    assert raw.is_cut(8)


def test_body_never_sent_is_answered_408_or_reset(shop, sale):
    buyer = shop.buyer(sale)
    buyer.enter()
    stream = buyer.connection.start("POST", f"{API}/sales/{sale}/holds",
                                    buyer.headers(**{"idempotency-key": "k"}), end=False)
    answer = buyer.connection.finish(stream, 14)
    assert answer.status == 408 or answer.reset is not None, answer


def test_renegotiation_and_old_tls_are_refused(shop):
    context = ssl.create_default_context(cafile=shop.stack.ca)
    context.set_alpn_protocols(["h2"])
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    port = shop.stack.nodes[0].port
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port), 5),
                             server_hostname="127.0.0.1") as sock:
        assert sock.version() == "TLSv1.2"
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        context.wrap_socket(socket.create_connection(("127.0.0.1", port), 5),
                            server_hostname="127.0.0.1")


def test_connections_cut_in_the_middle_leave_nothing(shop, sale):
    for _ in range(200):
        connection = H2(shop.stack.url, shop.stack.ca)
        connection.start("GET", f"{API}/sales/{sale}")
        sock = connection.sock
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
