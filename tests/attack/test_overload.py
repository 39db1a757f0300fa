"""More than a worker can do: 503 with a time to come back on the connections that are
there, new ones closed before their handshake, and all well again once it is over.

The gateway is stopped while a crowd asks, so it finds everything in one turn; how long
that takes on this machine does not matter, since a turn may be a millisecond old here.
"""
import collections
import contextlib
import os
import signal
import socket
import ssl
import time

from attacker import Attacker, Cut
from run.process import wait_until

CROWD, REQUESTS = 10, 100  # together more than a turn that is not judged
NEWCOMERS = 20             # more than are taken in one turn
PATIENCE = 60


def hello(ca):
    """The first bytes of a handshake."""
    sent = ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=ca)
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="127.0.0.1").do_handshake()
    return sent.read()


class Crowd:
    def __init__(self, field):
        self.field, self.pid = field, field.stack.gateway.pid
        self.status, self.closed = collections.Counter(), 0

    @contextlib.contextmanager
    def stopped(self):
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def connect(self):
        """Sooner or later: while the gateway is busy it takes nobody."""
        def connected():
            with contextlib.suppress(OSError, Cut):
                attacker = self.field.attacker()
                return attacker if attacker.is_known else attacker.sock.close()
        return wait_until(connected, PATIENCE, "a connection")

    def knock(self, stack):
        sock = socket.create_connection(("127.0.0.1", self.field.port), PATIENCE)
        stack.callback(sock.close)
        sock.sendall(hello(self.field.stack.ca))
        return sock

    def wave(self):
        with contextlib.ExitStack() as stack:
            inside = [stack.enter_context(self.connect()) for _ in range(CROWD)]
            with self.stopped():
                for one in inside:
                    one.send(b"".join(one.request(self.field.flag) for _ in range(REQUESTS)))
                newcomers = [self.knock(stack) for _ in range(NEWCOMERS)]
            for one in inside:
                self.judge(one)
            for newcomer in newcomers:
                with contextlib.suppress(ConnectionResetError):
                    if newcomer.recv(1):
                        continue
                self.closed += 1

    def judge(self, one):
        """Every request has an answer, also where the connection is told to go."""
        deadline = time.monotonic() + PATIENCE
        while len(one.ended) < REQUESTS and not one.is_closed and time.monotonic() < deadline:
            one.read(1)
        assert len(one.status) == REQUESTS and not one.reset
        self.status.update(one.status.values())
        for stream, status in one.status.items():
            assert status in (200, 503)
            assert status == 200 or dict(one.fields[stream])["retry-after"] == "1"


def test_57_a_worker_that_cannot_keep_up(own_field):
    field = own_field(limits={"turn": "1ms", "handshake_timeout": "1m", "accept_wait": "1m"})
    crowd = Crowd(field)

    def told(name, **labels):
        return field.stack.metrics().value(name, **labels)
    deadline = time.monotonic() + PATIENCE
    while not crowd.closed or not told("sluice_connections_sent_away_total"):
        assert time.monotonic() < deadline, (crowd.status, crowd.closed)
        crowd.wave()
    assert set(crowd.status) == {200, 503}, crowd.status
    assert told("sluice_requests_shed_total") >= crowd.status[503]
    assert told("sluice_connections_shed_total", by="overload") >= crowd.closed
    # It is over: whoever comes is taken, and gets good answers only.
    shed = told("sluice_requests_shed_total")
    with crowd.connect() as late:
        for _ in range(20):
            assert late.status[late.ask(field.flag)] == 200
    assert told("sluice_requests_shed_total") == shed
