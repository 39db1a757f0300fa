"""TLS from outside: whose handshakes are served, tickets, certificates that change."""
import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import threading

import pytest

from h2client import H2
from run import keys
from run.process import wait_until
from shopper import API

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
LIMITS = {"workers": 2, "limits": {"handshake_slow": "300ms"}}


@pytest.fixture
def tls_shop(make_shop):
    return make_shop(options={"gateway": LIMITS})


def context_of(shop):
    context = ssl.create_default_context(cafile=shop.stack.ca)
    context.set_alpn_protocols(["h2"])
    return context


def half_open(shop, address):
    """A connection that has said the beginning of a ClientHello."""
    sock = socket.create_connection(("127.0.0.1", shop.stack.nodes[0].port), 10, (address, 0))
    with contextlib.suppress(OSError):
        sock.sendall(b"\x16\x03\x01")
    return sock


def is_closed(sock):
    sock.settimeout(10)
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True


def greet(shop, context, session=None):
    """A whole handshake and the server's first words: the socket, closed."""
    with socket.create_connection(("127.0.0.1", shop.stack.nodes[0].port), 10) as plain, \
            context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as sock:
        sock.sendall(PREFACE)
        assert sock.recv(9)[3] == 4
        sock.certificate = sock.getpeercert()
        sock.resumed, sock.ticket = sock.session_reused, sock.session
        return sock


def shed(shop, by):
    return shop.stack.metrics().value("sluice_connections_shed_total", by=by)


def test_one_network_of_half_open_connections_stops_nobody_else(tls_shop):
    sale = tls_shop.sale()
    with contextlib.ExitStack() as held:
        for number in range(200):
            held.enter_context(half_open(tls_shop, f"127.0.1.{1 + number % 250}"))
            if number % 10 == 0:
                with H2(tls_shop.stack.url, tls_shop.stack.ca) as good:
                    assert good.get(f"{API}/sales/{sale}", seconds=5).status == 200
        wait_until(lambda: tls_shop.stack.metrics().value("sluice_networks_closed_total") >= 1,
                   10, "the network is closed to")

        def is_shut():
            with half_open(tls_shop, "127.0.1.251") as late:
                late.settimeout(0.2)
                with contextlib.suppress(TimeoutError, ConnectionError):
                    return late.recv(1) == b"" and shed(tls_shop, "network") > 0
                return shed(tls_shop, "network") > 0
        wait_until(is_shut, 10, "its further connections are closed")
        for _ in range(20):
            with H2(tls_shop.stack.url, tls_shop.stack.ca) as good:
                assert good.get(f"{API}/sales/{sale}", seconds=5).status == 200
    assert shed(tls_shop, "overload") == 0


def test_a_crowd_behind_one_address_may_fail_now_and_then(tls_shop):
    context = context_of(tls_shop)
    for number in range(120):
        if number % 3 == 0:
            with half_open(tls_shop, "127.0.0.1") as bad:
                bad.shutdown(socket.SHUT_WR)
                assert is_closed(bad)
        greet(tls_shop, context)
    assert shed(tls_shop, "network") == 0


def openssl_client(shop, *words, request=b""):
    """What openssl's own client says of a connection."""
    return subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{shop.stack.nodes[0].port}",
         "-CAfile", shop.stack.ca, "-alpn", "h2", "-ign_eof", *words], input=request, timeout=30,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode(errors="replace")


def test_early_data_is_never_taken(tls_shop, tmp_path):
    session, early = str(tmp_path / "session"), tmp_path / "early"
    early.write_bytes(PREFACE)
    bad = b"x" * 100  # no preface: the connection ends
    assert "Max Early Data: 0" in openssl_client(tls_shop, "-sess_out", session, request=bad)
    said = openssl_client(tls_shop, "-sess_in", session, "-early_data", str(early), request=bad)
    assert "Reused" in said and "Early data was accepted" not in said, said


# -- tickets and certificates ---------------------------------------------


def reload(shop, name="sluice_reloads_total"):
    before = shop.stack.metrics().value(name)
    shop.stack.nodes[0].process.signal(1)
    wait_until(lambda: shop.stack.metrics().value(name) == before + 1, 10, name)


def test_tickets_are_good_with_every_worker_and_after_reloads(tls_shop):
    context, resumed = context_of(tls_shop), 0
    ticket = greet(tls_shop, context).ticket
    for number in range(100):
        if number % 20 == 10:
            reload(tls_shop)
        sock = greet(tls_shop, context, ticket)
        ticket, resumed = sock.ticket, resumed + sock.resumed
    assert resumed >= 99
    assert tls_shop.stack.metrics().value("sluice_handshakes_total", resumed="yes") >= 99


def second_certificate(stack):
    """Another one by the same CA: (certificate, key)."""
    folder = os.path.join(stack.folder, "second")
    os.makedirs(folder, exist_ok=True)
    first = os.path.dirname(stack.certificate)
    for name in ("ca.pem", "ca.key", "server.ext"):
        shutil.copy(os.path.join(first, name), folder)
    key = keys.make_ec_key(folder, "server.key")
    keys.openssl("req", "-new", "-key", "server.key", "-subj", "/CN=localhost",
                 "-out", "server.csr", folder=folder)
    keys.openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                 "-set_serial", "77", "-days", "30", "-sha256", "-extfile", "server.ext",
                 "-out", "server.pem", folder=folder)
    return os.path.join(folder, "server.pem"), key


def contents(paths):
    return [open(path, "rb").read() for path in paths]


def install(stack, pair):
    for path, text in zip((stack.certificate, stack.server_key), pair):
        with open(path + ".new", "wb") as out:
            out.write(text)
        os.replace(path + ".new", path)


class Callers(threading.Thread):
    """Connects anew all the time, whole handshakes and resumed ones in turn."""

    def __init__(self, shop):
        super().__init__()
        self.shop, self.stop, self.errors, self.done = shop, threading.Event(), [], 0
        self.serials = set()

    def run(self):
        context, ticket = context_of(self.shop), None
        while not self.stop.is_set():
            try:
                sock = greet(self.shop, context, ticket)
                ticket = sock.ticket if ticket is None else None
                self.serials.add(sock.certificate["serialNumber"])
                self.done += 1
            except (OSError, AssertionError) as why:
                self.errors.append(repr(why))


def test_certificates_change_a_hundred_times_under_load(tls_shop):
    stack = tls_shop.stack
    pairs = [contents((stack.certificate, stack.server_key)), contents(second_certificate(stack))]
    with H2(stack.url, stack.ca) as old:
        assert old.get(f"{API}/sales").status == 200
        callers = [Callers(tls_shop) for _ in range(2)]
        for caller in callers:
            caller.start()
        try:
            for number in range(100):
                install(stack, pairs[(number + 1) % 2])
                reload(tls_shop)
        finally:
            for caller in callers:
                caller.stop.set()
                caller.join()
        assert old.get(f"{API}/sales").status == 200
    assert not [error for caller in callers for error in caller.errors]
    assert sum(caller.done for caller in callers) >= 100
    assert len(set.union(*(caller.serials for caller in callers))) == 2


def test_a_pair_that_does_not_fit_is_refused_and_the_old_one_stays(tls_shop, expected_errors):
    expected_errors.append("reload refused, the old configuration stays")
    stack, context = tls_shop.stack, context_of(tls_shop)
    good = contents((stack.certificate, stack.server_key))
    serial = greet(tls_shop, context).certificate["serialNumber"]
    install(stack, (good[0], contents(second_certificate(stack))[1]))
    reload(tls_shop, "sluice_reloads_refused_total")
    assert greet(tls_shop, context).certificate["serialNumber"] == serial
    install(stack, good)
    reload(tls_shop)
    assert greet(tls_shop, context).certificate["serialNumber"] == serial
