"""Hostile TLS and TCP clients: handshakes that do not end, fail or cost, connections
that break, descriptors that run out."""
import contextlib
import ctypes
import os
import resource
import socket
import ssl
import struct
import subprocess
import time

import pytest

from attacker import *  # noqa: F403
from beside import beside
from proxy import Proxy
from run.process import wait_until

SHAKE, LATE, SILENT = 1, 3, 2   # `handshake_timeout` here; the kernel keeps silent ones so long
ELSEWHERE = "127.1.0.1"         # another /24 than the good client's


def plain_socket(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), 10, source_address=(source, 0))


def is_closed_by_peer(sock, seconds=0.0):
    sock.settimeout(max(seconds, 0.001))
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def seconds_to_close(sock, most):
    began = time.monotonic()
    assert is_closed_by_peer(sock, most), f"not closed within {most} s"
    return time.monotonic() - began


def client_hello(alpn=("h2",), host="127.0.0.1"):
    context = ssl.create_default_context()
    context.set_alpn_protocols(list(alpn))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=host).do_handshake()
    return outgoing.read()


def s_client(field, *words, lines=""):
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{field.port}", "-CAfile",
                           field.stack.ca, *words], input=lines, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
    return done.stdout


# ---- handshakes (rows 23, 24, 25, 27, 28, 29, 30, 31) ----------------------------

@pytest.mark.parametrize("first, drips", [(b"", False), (b"\x16\x03\x01", False), (None, True),
                                          (b"GET / HTTP/1.1\r\n\r\n", False)],
                         ids=["silence", "three bytes", "drip", "plain HTTP"])
def test_23_handshake_that_does_not_end(field, attack, first, drips):
    """Fifty at a time. The kernel does not hand over those that say nothing."""
    for _ in attack.goes_on(1):
        hello = client_hello() if first is None else first
        socks = [plain_socket(field.port) for _ in range(50)]
        began = time.monotonic()
        for sock in socks:
            sock.sendall(hello[:1] if drips else hello)
        try:
            at = 1
            while drips and not is_closed_by_peer(socks[0]):
                assert time.monotonic() < began + SHAKE + LATE
                with contextlib.suppress(OSError):
                    socks[0].sendall(hello[at:at + 1])
                at += 1
                is_closed_by_peer(socks[0], 0.05)
            for sock in socks:
                assert is_closed_by_peer(sock, SHAKE + LATE + (0 if hello else SILENT + 1))
            attack.note(f"closed after {time.monotonic() - began:.1f} s")
        finally:
            for sock in socks:
                sock.close()


def test_23_network_of_failed_handshakes_is_closed(strict, strict_attack):
    """Twenty strikes close one network, and no other."""
    field, attack = strict, strict_attack
    failed = 0
    while field.stack.metrics().value("sluice_networks_closed_total") == 0:
        assert failed < 60, "never closed"
        for _ in range(5):
            with plain_socket(field.port, ELSEWHERE) as sock:
                sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
                assert is_closed_by_peer(sock, SHAKE + LATE)
                failed += 1
    assert failed >= 20
    attack.note(f"network closed after {failed} failed handshakes")
    before = field.stack.metrics().value("sluice_connections_shed_total", by="network")
    with plain_socket(field.port, ELSEWHERE) as sock:
        sock.sendall(client_hello())
        assert is_closed_by_peer(sock, 2)
    assert field.stack.metrics().value("sluice_connections_shed_total", by="network") > before
    with field.attacker() as neighbour:  # of the good client
        neighbour.ask(field.flag)

    def is_forgiven():
        with plain_socket(field.port, ELSEWHERE) as sock:
            sock.sendall(client_hello())
            sock.settimeout(2)
            try:
                return sock.recv(5)[:1] == b"\x16"
            except OSError:
                return False
    wait_until(is_forgiven, 10, "the network open again")


def test_24_flood_of_full_handshakes(field, attack):
    """Fifty at once, again and again: what cannot be done in time is shed, and the warm
    connection keeps its time."""
    before = field.stack.metrics().value("sluice_handshakes_total", resumed="no")
    began = time.monotonic()
    for _ in attack.goes_on(20, least=3):
        subprocess.run(["h2load", "-t1", "-c50", "-n50", f"{field.stack.url}{field.flag}"],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=30, check=True)
    shaken = field.stack.metrics().value("sluice_handshakes_total", resumed="no") - before
    assert shaken >= 50
    attack.note(f"{shaken:.0f} handshakes in {time.monotonic() - began:.1f} s")


def test_25_renegotiation_and_old_versions(field, attack):
    def shaken():
        return field.stack.metrics().value("sluice_handshakes_total")
    for _ in attack.goes_on(2):
        before = shaken()
        said = s_client(field, "-tls1_2", "-alpn", "h2", lines="R\n")
        # Data that is under way meanwhile is what the client hears instead of the alert.
        assert "RENEGOTIATING" in said and ("no renegotiation" in said.lower()
                                            or "unexpected record" in said), said[-800:]
        assert shaken() == before + 1
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            with pytest.raises((ssl.SSLError, ConnectionResetError)):
                tls_socket(field.port, field.stack.ca, versions=(version, version))
    attack.note("alert no_renegotiation; TLS 1.0 and 1.1 refused")


def key_updates(port, most):
    """As many as the peer takes: Python's own module cannot send them."""
    lib = ctypes.CDLL("libssl.so.3")
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(lib, name).restype = ctypes.c_void_p
    context = ctypes.c_void_p(lib.SSL_CTX_new(ctypes.c_void_p(lib.TLS_client_method())))
    lib.SSL_CTX_set_alpn_protos(context, b"\x02h2", 3)
    tls = ctypes.c_void_p(lib.SSL_new(context))
    with plain_socket(port) as sock:
        sock.settimeout(None)
        lib.SSL_set_fd(tls, sock.fileno())
        sent = 0
        if lib.SSL_connect(tls) == 1:
            while sent < most and lib.SSL_key_update(tls, 0) == 1 and lib.SSL_do_handshake(tls) == 1:
                sent += 1
    lib.SSL_free(tls)
    lib.SSL_CTX_free(context)
    return sent


def test_26_flood_of_key_updates(field, attack):
    """More than a hundred in a second, and the connection is over."""
    for _ in attack.goes_on(20):
        before = field.cuts("glitches")
        sent = key_updates(field.port, 2000)
        wait_until(lambda: field.cuts("glitches") > before, SHAKE + LATE, "the flood cut")
        attack.note(f"closed with {sent} sent")


def test_27_alpn_without_h2(field, attack):
    hello = client_hello()
    assert hello.count(b"\x00\x10\x00\x05\x00\x03\x02h2") == 1
    for _ in attack.goes_on(20):
        for alpn in ((), ("http/1.1",), ("h3", "http/1.0")):
            with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
                tls_socket(field.port, field.stack.ca, alpn=alpn)
        for broken in (b"\x00\x10\x00\x05\x00\x00\x02h2", b"\x00\x10\x00\x05\x00\x03\x00h2",
                       b"\x00\x10\x00\x05\x00\x03\x03h2", b"\x00\x10\x00\x05\xff\xff\x02h2"):
            with plain_socket(field.port) as sock:
                sock.sendall(hello.replace(b"\x00\x10\x00\x05\x00\x03\x02h2", broken))
                sock.settimeout(SHAKE + LATE)
                alert = sock.recv(7)
                assert alert[:1] == b"\x15" and alert[5:6] == b"\x02", alert
    attack.note("fatal alert at once")


def test_28_resumption_leaves_nothing(field, attack):
    context = ssl.create_default_context(cafile=field.stack.ca)
    context.set_alpn_protocols(["h2"])
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # its ticket comes with the handshake
    session, made, reused = None, 0, 0
    for _ in attack.goes_on(10):
        for _ in range(50):
            sock = socket.create_connection(("127.0.0.1", field.port), 10)
            with context.wrap_socket(sock, server_hostname="127.0.0.1", session=session) as tls:
                session = session or tls.session
                reused += tls.session_reused
                made += 1
    assert reused == made - 1
    attack.note(f"{made} connections, all but one resumed")


def test_29_no_early_data(field, attack):
    for _ in attack.goes_on(2):
        said = s_client(field, "-alpn", "h2", "-tls1_3", "-ign_eof", lines="x")
        assert "New Session Ticket arrived" in said and "Max Early Data: 0" in said, said[-1500:]
    attack.note("max_early_data 0")


def test_30_name_that_is_not_ours(field, attack):
    """The certificate is the same whatever the name; the request is 421."""
    context = ssl.create_default_context(cafile=field.stack.ca)
    context.set_alpn_protocols(["h2"])
    context.check_hostname = False
    names = ["evil.test", "127.0.0.2", "a" * 63 + ".test"]
    for turn in attack.goes_on(20, least=len(names)):
        name = names[turn % len(names)]
        sock = socket.create_connection(("127.0.0.1", field.port), 10)
        with context.wrap_socket(sock, server_hostname=name) as tls, field.attacker() as attacker:
            assert any(value == "127.0.0.1" for _, value in tls.getpeercert()["subjectAltName"])
            attacker.authority = name
            stream = attacker.ask(field.line)  # flags are the same for all, whoever asks where
            assert attacker.status[stream] == 421
    attack.note("421")


def test_31_failed_handshakes_hurt_no_other(field, attack):
    """Every way to fail leaves errors behind in OpenSSL's queue; good ones go on."""
    hello = client_hello()
    cuts = [hello[:60] + bytes(200), hello + b"\x16\x03\x03\x00\x04\x00\x00\x00\x00",
            b"\x15\x03\x01\x00\x02\x02\x28", hello[:9] + b"\xff" * 60, b"\x16\x03\x01\xff\xff" + bytes(90)]
    failed = 0
    with field.attacker() as friend:
        for _ in attack.goes_on(least=3):
            for broken in cuts * 4:
                with plain_socket(field.port) as sock:
                    with contextlib.suppress(OSError):
                        sock.sendall(broken)
                        sock.shutdown(socket.SHUT_WR)
                    is_closed_by_peer(sock, SHAKE + LATE)
                    failed += 1
            friend.ask(field.flag)
    assert failed >= 40
    attack.note(f"{failed} failed")


# ---- connections that break (row 32) ---------------------------------------------

def break_off(attacker):
    attacker.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    attacker.sock.close()


ROUNDS = 5000 if os.environ.get("SLUICE_SOAK") else 10


@pytest.mark.parametrize("what", ["flag", "big", "hang"])
def test_32_reset_in_the_middle(field, attack, what):
    """While it is written, while the application has not answered, after a byte or none."""
    path = field.flag if what == "flag" else f"/app/free/{what}"
    made = 0
    for _ in attack.goes_on(least=ROUNDS):
        for waits in (False, True):
            attacker = field.attacker(settings=[(INITIAL_WINDOW, BIG_WINDOW)])
            attacker.send(b"".join(attacker.request(path) for _ in range(20)))
            if waits:
                attacker.read(0.05)
            break_off(attacker)
            made += 1
    wait_until(lambda: field.stack.metrics().value("sluice_requests_parked") == 0, 15,
               "nothing parked")
    attack.note(f"{made} broken off")


def test_32_half_closed_streams_are_finished(field, attack):
    for _ in attack.goes_on(50):
        with field.attacker() as attacker:
            attacker.send(b"".join(attacker.request(path) for path in (field.flag, "/app/free/x") * 5))
            with socket.socket(fileno=os.dup(attacker.sock.fileno())) as same:
                same.shutdown(socket.SHUT_WR)
            attacker.wait_closed(5)
            assert set(attacker.status) == set(range(1, 20, 2)), attacker.status
            assert set(attacker.status.values()) == {200}
            assert attacker.ended == set(attacker.status)
    attack.note("all answered, then closed")


# ---- descriptors (row 33) --------------------------------------------------------

def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_33_no_descriptors_left(field, attack):
    """The open ones are served, new ones closed, and it costs next to nothing."""
    pid = field.stack.gateway.pid
    hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
    used = len(os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 10, hard))
    errors = field.stack.metrics().value("sluice_accept_errors_total")
    hello, socks, began, cost = client_hello(), [], time.monotonic(), processor_seconds(pid)
    try:
        for _ in range(200):
            socks.append(plain_socket(field.port))
            with contextlib.suppress(OSError):
                socks[-1].sendall(hello)
        for _ in attack.goes_on(1):
            pass
        wait_until(lambda: sum(map(is_closed_by_peer, socks)) >= 20, 20, "some told by a close")
        seconds = time.monotonic() - began
        cost = processor_seconds(pid) - cost
    finally:
        for sock in socks:
            sock.close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
    lines = field.stack.gateway.log_text().count('"cannot accept"')
    assert 1 <= lines <= seconds + 2, (lines, seconds)

    def is_served():  # those who had waited too long are closed first
        try:
            with field.attacker() as late:
                return late.ask(field.flag)
        except OSError:
            return False
    wait_until(is_served, 10, "a new connection served")
    assert field.stack.metrics().value("sluice_accept_errors_total") > errors
    attack.note(f"{100 * cost / seconds:.0f} % of a processor, {lines} log lines in {seconds:.0f} s")
    assert cost / seconds < (0.5 if field.is_sanitized else 0.25)


def test_33_descriptors_are_kept_back(strict):
    """With 64 in all, clients get about half: the origin can be connected to anew while
    they take what they can."""
    stack, node = strict.stack, strict.stack.nodes[0]
    argv = node.process.argv

    def restart(words):
        strict.good.close()
        node.process.signal(15)
        assert node.process.wait(30) == 0
        node.process.argv = words
        stack.start_gateway()
        strict.befriend()
    restart(["prlimit", "--nofile=64:64", *argv])
    try:
        with beside(strict, "test_33_descriptors_are_kept_back") as attack:
            hello = client_hello()
            socks = [plain_socket(strict.port, ELSEWHERE) for _ in range(100)]
            try:
                for sock in socks:
                    with contextlib.suppress(OSError):
                        sock.sendall(hello)
                wait_until(lambda: strict.refused() > 0, 10, "some refused")
                stack.origin_process.end()
                stack.restart_origin()
                name = strict.shop.sale(wait=False)
                wait_until(lambda: stack.metrics().value("sluice_available", sale=name) > 0, 20,
                           "what the new origin knows")
                for _ in attack.goes_on(1):
                    pass
            finally:
                for sock in socks:
                    sock.close()
            assert stack.metrics().value("sluice_accept_errors_total") == 0
            attack.note(f"{strict.refused():.0f} refused; the origin heard again meanwhile")
    finally:
        restart(argv)


# ---- the kernel's part (rows 34, 35) ---------------------------------------------

def test_34_backlog(field, attack):
    """SYN floods are the kernel's; the queue behind it is as long as it allows."""
    with open("/proc/sys/net/core/somaxconn") as somaxconn:
        most = min(4096, int(somaxconn.read()))
    rows = subprocess.run(["ss", "-Hltn", f"sport = :{field.port}"], stdout=subprocess.PIPE,
                          text=True, check=True).stdout.split()
    assert int(rows[2]) == most, rows
    for _ in attack.goes_on(1):
        pass
    attack.note(f"{most}")


def test_35_bad_way(field, attack):
    """200 ms there and back, then pieces, then nothing at all."""
    proxy = Proxy(f"127.0.0.1:{field.port}")
    try:
        proxy("delay", 100)
        with Attacker(proxy.port, field.stack.ca) as far:
            far.authority = f"127.0.0.1:{field.port}"
            for _ in attack.goes_on():
                stream = far.ask(field.flag)
                assert far.status[stream] == 200
            proxy("clear")
            proxy("drip", 4000)
            stream = far.ask(field.flag)
            assert far.status[stream] == 200
            before = field.cuts("timeout")
            proxy("clear")
            proxy("stall", "down")
            far.send(frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW, BIG_WINDOW))
                     + frame(WINDOW, 0, 0, number(BIG_WINDOW - 65535))
                     + b"".join(far.request("/app/free/big") for _ in range(5)))
            began = time.monotonic()
            wait_until(lambda: field.cuts("timeout") > before or field.nothing_waits(),
                       SHAKE + LATE + 2, "the stalled one cut, or its streams given up")
            attack.note(f"stalled way: over after {time.monotonic() - began:.1f} s")
            proxy("clear")
    finally:
        proxy.close()
