"""What a row of a conformance table is, and how one is played.

A row is a connection of its own: it sends its steps and names what must come
back. A step is bytes, or a function of the Talk that returns bytes or waits.
Bytes between two waits leave in one write, so that a server reads them at once.

The outcome of a row is a dict: stream number -> what became of it,

    "200"                  an answer, complete
    "200 open"             an answer's head; its body has not ended
    "reset CANCEL"         RST_STREAM; with an answer's head before it "200 reset CANCEL"

and 0 -> "goaway CODE" once the connection is closed after a GOAWAY, "closed"
without one. A connection that is not over must answer a PING and one more
request. Streams of which nothing came are not in the dict.
"""
import socket
import ssl
import time

import hpack

import wire
from run.process import PATIENCE

PONG, PROBE = b"the end?", 2001


class Over(Exception):
    """The connection is: the steps left are not played."""


class Target:
    """A server to talk to. `page` answers GET with 200 and a body, `sink` reads a
    body and answers 200, `big` answers GET with more than a window."""

    def __init__(self, port, authority, ca, page, sink, big):
        self.port, self.authority = port, authority
        self.page, self.sink, self.big = page, sink, big
        self.context = ssl.create_default_context(cafile=ca)
        self.context.check_hostname = ca is not None
        if ca is None:
            self.context.verify_mode = ssl.CERT_NONE
        self.context.set_alpn_protocols(["h2"])

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port), 10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.context.wrap_socket(sock, server_hostname="127.0.0.1")


class Stream:
    def __init__(self):
        self.status, self.fields, self.body = None, [], b""
        self.ended, self.reset, self.window = False, None, 0

    @property
    def is_over(self):
        return self.ended or self.reset is not None

    def outcome(self):
        words = [self.status] if self.status else []
        if self.reset is not None:
            words.append(f"reset {wire.error_name(self.reset)}")
        elif not self.ended:
            words.append("open")
        return " ".join(words)


class Talk:
    """One connection: sends what it is told, keeps what comes."""

    def __init__(self, target, acknowledge=True):
        self.target, self.acknowledge = target, acknowledge
        self.sock = target.connect()
        self.decoder = hpack.Decoder()
        self.streams, self.frames, self.pongs = {}, [], []
        self.settings, self.acks, self.window = None, 0, 0
        self.goaway, self.is_closed = None, False
        self.out, self.buffer, self.block = b"", b"", b""

    def close(self):
        self.sock.close()

    # -- sending

    def send(self, piece):
        self.out += piece

    def flush(self):
        piece, self.out = self.out, b""
        try:
            self.sock.settimeout(10)
            self.sock.sendall(piece)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            pass  # what the server said before it closed is yet to be read

    def play(self, steps):
        for step in steps:
            piece = step(self) if callable(step) else step
            self.out += piece or b""

    def open(self):
        """The usual beginning, both sides' settings acknowledged."""
        self.send(wire.PREFACE + wire.settings())
        self.wait(lambda: self.settings is not None and self.acks == 1)
        self.flush()

    # -- receiving

    def wait(self, question, seconds=5 * PATIENCE):
        """Reads until the answer is yes: True. False when the time is up."""
        self.flush()
        deadline = time.monotonic() + seconds
        while not question():
            if self.is_closed or self.goaway is not None:
                raise Over
            if not self.read(deadline):
                return False
        return True

    def read(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        self.sock.settimeout(left)
        try:
            piece = self.sock.recv(65536)
        except TimeoutError:
            return False
        except (ConnectionResetError, ssl.SSLError):
            piece = b""
        self.is_closed = not piece
        self.buffer += piece
        while len(self.buffer) >= 9:
            size = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + size:
                break
            head, payload = self.buffer[:9], self.buffer[9:9 + size]
            self.buffer = self.buffer[9 + size:]
            self.take(head[3], head[4], int.from_bytes(head[5:9], "big"), payload)
        return True

    def take(self, kind, flags, stream, payload):
        self.frames.append((kind, flags, stream, payload))
        if kind in (wire.HEADERS, wire.CONTINUATION):
            self.take_head(kind, flags, stream, payload)
        elif kind == wire.DATA:
            self.stream(stream).body += payload
            self.stream(stream).ended |= bool(flags & wire.END_STREAM)
        elif kind == wire.RST_STREAM:
            self.stream(stream).reset = int.from_bytes(payload, "big")
        elif kind == wire.SETTINGS and flags & wire.ACK:
            self.acks += 1
        elif kind == wire.SETTINGS:
            pairs = [payload[at:at + 6] for at in range(0, len(payload), 6)]
            self.settings = {int.from_bytes(pair[:2], "big"): int.from_bytes(pair[2:], "big")
                             for pair in pairs}
            if self.acknowledge:
                self.send(wire.settings_ack())
        elif kind == wire.PING and flags & wire.ACK:
            self.pongs.append(payload)
        elif kind == wire.GOAWAY:
            last, code = (int.from_bytes(payload[at:at + 4], "big") for at in (0, 4))
            if code or self.goaway is None:
                self.goaway = code, last
        elif kind == wire.WINDOW_UPDATE and stream:
            self.stream(stream).window += int.from_bytes(payload, "big")
        elif kind == wire.WINDOW_UPDATE:
            self.window += int.from_bytes(payload, "big")

    def take_head(self, kind, flags, stream, payload):
        if kind == wire.HEADERS:
            self.head_flags = flags
            if flags & wire.PADDED:
                payload = payload[1:len(payload) - payload[0]]
            if flags & wire.PRIORITIZED:
                payload = payload[5:]
        self.block += payload
        if not flags & wire.END_HEADERS:
            return
        fields, self.block = self.decoder.decode(self.block), b""
        one = self.stream(stream)
        if one.status is None:
            one.fields, one.status = fields, dict(fields)[":status"]
        one.ended |= bool(self.head_flags & wire.END_STREAM)

    def stream(self, number):
        return self.streams.setdefault(number, Stream())

    # -- the end

    def settle(self, want, probe):
        """Sees whether the connection goes on, and to the streams that are awaited."""
        self.send(wire.ping(PONG))
        if not self.wait(lambda: PONG in self.pongs):
            return
        if probe:
            self.send(request(probe, method="HEAD")(self))
            self.wait(lambda: self.stream(probe).status)
        awaited = [number for number, what in want.items() if "open" not in what]
        self.wait(lambda: all(self.stream(number).is_over for number in awaited), 3 * PATIENCE)

    def wait_closed(self, seconds=5 * PATIENCE):
        deadline = time.monotonic() + seconds
        while not self.is_closed and self.read(deadline):
            pass
        return self.is_closed

    def outcome(self, probe):
        if self.goaway is not None:
            how = f"goaway {wire.error_name(self.goaway[0])}"
            return {0: how if self.is_closed else f"{how} and not closed"}
        if self.is_closed:
            return {0: "closed"}
        found = {number: stream.outcome() for number, stream in sorted(self.streams.items())
                 if stream.outcome() != "open" and number != probe}
        if PONG not in self.pongs:
            found[0] = "silent"
        elif probe and self.stream(probe).status != "200":
            found[0] = f"probe: {self.stream(probe).outcome()}"
        return found


class Row:
    def __init__(self, section, title, steps, want=None, opening=True, acknowledge=True,
                 probe=PROBE, check=None, why=None):
        """`want`: a dict as above, or its one value: "goaway …" for the connection,
        anything else for stream 1; None: nothing comes, the connection goes on.
        `check(talk)` asserts more of it. `why`: what peers of ours do otherwise,
        and the reason for doing it so."""
        if want is None or isinstance(want, str):
            want = {0 if (want or "").startswith(("goaway", "closed")) else 1: want} if want else {}
        self.section, self.title, self.steps, self.want = section, title, steps, want
        self.opening, self.acknowledge, self.probe = opening, acknowledge, probe
        self.check, self.why = check, why

    @property
    def name(self):
        return f"{self.section} {self.title}"

    def talk(self, target):
        return Talk(target, self.acknowledge)

    def play(self, target):
        """(outcome, talk)."""
        talk = self.talk(target)
        try:
            try:
                if self.opening:
                    talk.open()
                talk.play(self.steps)
                talk.settle(self.want, self.probe)
            except Over:
                talk.wait_closed()
            return talk.outcome(self.probe), talk
        finally:
            talk.close()


# ---- steps -----------------------------------------------------------------

def fields_of(talk, method, path, more=(), authority=None):
    return [(":method", method), (":scheme", "https"),
            (":authority", authority or talk.target.authority), (":path", path), *more]


def request(stream=1, path=None, method="GET", more=(), how=None, **frame):
    """A request for the page, or `path`; `frame` as for wire.headers()."""
    def step(talk):
        fields = fields_of(talk, method, path or talk.target.page, more)
        return wire.headers(stream, wire.block(fields, **(how or {})), **frame)
    return step


def post(stream=1, more=(), end=False, **frame):
    """The head of a request whose body goes to the sink."""
    return lambda talk: request(stream, talk.target.sink, "POST", more, end=end, **frame)(talk)


def big(stream=1):
    return lambda talk: request(stream, talk.target.big)(talk)


def fields(*pairs, stream=1, end=True, **how):
    """A head of exactly these fields; PAGE and AUTHORITY stand for the target's."""
    def step(talk):
        real = {PAGE: talk.target.page, SINK: talk.target.sink, AUTHORITY: talk.target.authority}
        return wire.headers(stream, wire.block([(name, real.get(value, value))
                                                for name, value in pairs], **how), end=end)
    return step


PAGE, SINK, AUTHORITY = "\0page", "\0sink", "\0authority"
METHOD, SCHEME, HOST, PATH = ((":method", "GET"), (":scheme", "https"), (":authority", AUTHORITY),
                              (":path", PAGE))
GET = (METHOD, SCHEME, HOST, PATH)


def split(step, *sizes):
    """The frame HEADERS of a step as HEADERS of the first size and CONTINUATIONs of
    the others; the last has the rest."""
    def cut(talk):
        whole = step(talk)
        flags, stream = whole[4], int.from_bytes(whole[5:9], "big")
        payload, pieces = whole[9:], []
        for size in sizes:
            pieces.append(payload[:size])
            payload = payload[size:]
        pieces.append(payload)
        out = wire.frame(wire.HEADERS, flags & ~wire.END_HEADERS, stream, pieces[0])
        for piece in pieces[1:-1]:
            out += wire.continuation(stream, piece, end_headers=False)
        return out + wire.continuation(stream, pieces[-1])
    return cut


def answered(stream=1):
    """Waits for the stream's end."""
    def step(talk):
        assert talk.wait(lambda: talk.stream(stream).is_over), f"stream {stream} never ended"
    return step


def began(stream=1):
    """Waits for the answer's head."""
    def step(talk):
        assert talk.wait(lambda: talk.stream(stream).status), f"stream {stream} never answered"
    return step


def read(stream, size):
    """Waits for so many bytes of the body."""
    def step(talk):
        talk.wait(lambda: len(talk.stream(stream).body) >= size)
    return step


def synced(talk):
    """Waits until the server has read all that was sent before."""
    before = len(talk.pongs)
    talk.send(wire.ping(b"so far??"))
    talk.wait(lambda: len(talk.pongs) > before)


def flushed(talk):
    talk.flush()


def upload(stream, total, chunk=16384, pad=None):
    """So many bytes as DATA, as the windows allow."""
    def step(talk):
        left, whole = total, 0 if pad is None else pad + 1
        spent = 0
        while left:
            size = min(chunk, left)
            cost = size + whole
            talk.wait(lambda: min(talk.window, talk.stream(stream).window) + wire.WINDOW
                      >= spent + cost)
            talk.send(wire.data(stream, bytes(size), end=size == left, pad=pad))
            spent += cost
            left -= size
    return step
