"""An HTTP/2 client that sends any bytes, and remembers how it was thrown out."""
import socket
import ssl
import struct
import time
import warnings

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
(DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION) = range(10)
PRIORITY_UPDATE = 16
END_STREAM = ACK = 1
END_HEADERS = 4
PADDED = 8
(NO_ERROR, PROTOCOL, INTERNAL, FLOW, SETTINGS_TIMEOUT, CLOSED, SIZE, REFUSED, CANCEL,
 COMPRESSION) = range(10)
CALM = 11
CODES = {NO_ERROR: "NO_ERROR", PROTOCOL: "PROTOCOL_ERROR", FLOW: "FLOW_CONTROL_ERROR",
         SIZE: "FRAME_SIZE_ERROR", CANCEL: "CANCEL", CALM: "ENHANCE_YOUR_CALM"}
INITIAL_WINDOW = 4
BIG_WINDOW = 2 ** 31 - 1


def frame(kind, flags, stream, payload=b""):
    return (struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream)
            + payload)


def number(value):
    return struct.pack(">I", value)


def tls_socket(port, ca, rcvbuf=None, alpn=("h2",), versions=None):
    sock = socket.socket()
    if rcvbuf:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    sock.settimeout(10)
    sock.connect(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    context = ssl.create_default_context(cafile=ca)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if versions:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version, context.maximum_version = versions
    return context.wrap_socket(sock, server_hostname="127.0.0.1")


class Cut(Exception):
    """GOAWAY or a closed connection."""


class Attacker:
    def __init__(self, port, ca, settings=(), rcvbuf=None, acknowledges=True, opens=True,
                 gives=True):
        """`settings`: pairs to send first; `opens`: with the preface, and once the
        gateway's settings are there and acknowledged; `gives` the window of the
        connection back."""
        self.sock = tls_socket(port, ca, rcvbuf)
        self.began = time.monotonic()
        self.authority = f"127.0.0.1:{port}"
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.stream, self.buffer, self.acknowledges = 1, b"", acknowledges
        self.goaway, self.is_closed, self.is_known = None, False, False
        self.status, self.fields, self.reset, self.ended = {}, {}, {}, set()
        self.gives, self.owed = gives, 0
        if opens:
            pairs = b"".join(struct.pack(">HI", *pair) for pair in settings)
            self.send(PREFACE + frame(SETTINGS, 0, 0, pairs))
            while not self.is_known and not self.is_cut:
                self.read(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    # -- sending -----------------------------------------------------------

    @property
    def is_cut(self):
        return self.is_closed or self.goaway is not None

    def send(self, data, seconds=10):
        self.sock.settimeout(seconds)
        try:
            self.sock.sendall(data)
        except TimeoutError:
            raise
        except OSError:
            self.is_closed = True
            self.read(0.2)  # what it said before it closed
            raise Cut from None

    def take_stream(self):
        stream, self.stream = self.stream, self.stream + 2
        return stream

    def block(self, path, method="GET", more=()):
        return self.encoder.encode([(":method", method), (":scheme", "https"), (":path", path),
                                    (":authority", self.authority), *more])

    def request(self, path, flags=END_STREAM | END_HEADERS, method="GET", more=()):
        """The frame of a request, of the next stream."""
        return frame(HEADERS, flags, self.take_stream(), self.block(path, method, more))

    def ask(self, path, **how):
        """A whole request, to its end: the stream."""
        stream = self.stream
        self.send(self.request(path, **how))
        self.wait(stream)
        return stream

    # -- reading -----------------------------------------------------------

    def read(self, seconds):
        """Takes what comes within the time; False at its end, and when cut off."""
        self.sock.settimeout(max(seconds, 0.0005))
        try:
            piece = self.sock.recv(65536)
        except TimeoutError:
            return False
        except OSError:
            piece = b""
        if not piece:
            self.is_closed = True
            return False
        self.buffer += piece
        self._take_frames()
        return True

    def drain(self):
        while self.read(0):
            pass

    def _take_frames(self):
        at = 0
        while len(self.buffer) - at >= 9:
            size = int.from_bytes(self.buffer[at:at + 3], "big")
            if len(self.buffer) - at < 9 + size:
                break
            kind, flags = self.buffer[at + 3], self.buffer[at + 4]
            stream = int.from_bytes(self.buffer[at + 5:at + 9], "big")
            self._take(kind, flags, stream, self.buffer[at + 9:at + 9 + size])
            at += 9 + size
        self.buffer = self.buffer[at:]

    def _take(self, kind, flags, stream, payload):
        if kind == GOAWAY:
            self.goaway = struct.unpack(">II", payload[:8])
        elif kind == RST:
            self.reset[stream] = int.from_bytes(payload, "big")
        elif kind == HEADERS:
            self.fields[stream] = self.decoder.decode(payload)
            self.status[stream] = int(dict(self.fields[stream])[":status"])
        elif kind == DATA and self.gives:
            self.owed += len(payload)
            if self.owed >= 16384:
                self.owed, by = 0, self.owed
                self.send(frame(WINDOW, 0, 0, number(by)))
        elif kind == SETTINGS and not flags & ACK:
            self.is_known = True
            if self.acknowledges:
                self.send(frame(SETTINGS, ACK, 0))
        if kind == RST or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self.ended.add(stream)

    def wait(self, stream, seconds=10):
        """Until the stream is over; Cut if the connection is before."""
        deadline = time.monotonic() + seconds
        while stream not in self.ended:
            if self.is_cut:
                raise Cut
            if not self.read(deadline - time.monotonic()) and time.monotonic() >= deadline:
                raise TimeoutError(f"stream {stream} is not over after {seconds} s")

    def wait_cut(self, seconds):
        """Reads until GOAWAY or the end: seconds since the connection began."""
        deadline = time.monotonic() + seconds
        while not self.is_cut and time.monotonic() < deadline:
            self.read(deadline - time.monotonic())
        assert self.is_cut, f"not cut off within {seconds} s"
        return time.monotonic() - self.began

    def wait_closed(self, seconds):
        deadline = time.monotonic() + seconds
        while not self.is_closed and time.monotonic() < deadline:
            self.read(deadline - time.monotonic())
        assert self.is_closed, f"not closed within {seconds} s"
        return time.monotonic() - self.began

    # -- floods ------------------------------------------------------------

    def flood(self, make, most, step=10, probe=None):
        """Sends up to `most` of `make()`, `step` at a time, and after each step a good
        request for `probe`, whose end says that all before it was read. How many
        were sent until GOAWAY or the close."""
        sent = 0
        try:
            while sent < most and not self.is_cut:
                self.send(b"".join(make() for _ in range(step))
                          + (self.request(probe) if probe else b""))
                sent += step
                if probe:
                    self.wait(self.stream - 2)
                else:
                    self.drain()
        except Cut:
            pass
        self.read(0.2)
        return sent
