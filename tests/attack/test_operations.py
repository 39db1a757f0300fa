"""Faults around the gateway, beside a good client: full disk, dead origin, no room for
another connection, new certificates, broken files, restarts."""
import contextlib
import os
import subprocess
import threading
import time

import pytest

from attacker import *  # noqa: F403
from beside import beside
from h2client import H2
from run import config, keys
from run.process import wait_until
from shopper import Shopper


IDLE, LATE = 4, 3  # `idle` of the strict one; what a slow machine adds


# ---- room (rows 20, 21, 57) --------------------------------------------------------

def test_20_idle_and_much_used_connections(strict, strict_attack):
    """Idle is without a request, whatever else comes; one that has had its share is told
    to come back on another."""
    field, attack = strict, strict_attack
    with field.attacker() as idle, field.attacker() as pinging:
        idle.ask(field.flag)
        pinging.ask(field.flag)
        with contextlib.suppress(Cut):
            while not pinging.is_cut:
                assert time.monotonic() < pinging.began + IDLE + LATE
                pinging.send(frame(PING, 0, 0, bytes(8)))
                due = time.monotonic() + 0.1  # ten a second are honest, answers come sooner
                while time.monotonic() < due and not pinging.is_cut:
                    pinging.read(due - time.monotonic())
        seconds = idle.wait_cut(IDLE + LATE)
        assert idle.goaway[1] == pinging.goaway[1] == NO_ERROR and seconds >= IDLE
        attack.note(f"idle: GOAWAY NO_ERROR after {seconds:.1f} s")
    for _ in attack.goes_on(5):
        with field.attacker() as busy:
            with contextlib.suppress(Cut):
                while not busy.is_cut:
                    busy.send(b"".join(busy.request(field.flag) for _ in range(50)))
                    busy.wait(busy.stream - 2)
            assert busy.goaway[1] == NO_ERROR and len(busy.status) >= 2000
            assert set(busy.status.values()) == {200}
    attack.note("much used: GOAWAY NO_ERROR after 2000")


def test_21_idle_connections_cost_little(field, attack):
    """A hundred and fifty that have asked once. What OpenSSL keeps is in it."""
    before = attack.memory.now()
    idle = []
    try:
        while len(idle) < 150:
            attacker = field.attacker()
            idle.append(attacker)
            attacker.ask(field.flag)
        for _ in attack.goes_on(1):
            pass
        each = (attack.memory.now() - before) / len(idle) / 1024
        assert field.connections() == len(idle) + 1
    finally:
        for attacker in idle:
            attacker.sock.close()
    attack.note("not measured under a sanitizer" if field.is_sanitized else f"{each:.1f} KiB each")
    assert field.is_sanitized or each <= 20 + 4  # a page's share of what the first ones cost


def test_57_no_room_for_another_connection(strict, strict_attack):
    """Closed before its handshake; those inside go on, and when one leaves there is room."""
    field, attack = strict, strict_attack
    inside = [field.attacker() for _ in range(39)]
    try:
        refused = 0
        for _ in attack.goes_on():
            with pytest.raises(OSError):
                field.attacker()
            refused += 1
            for attacker in inside:
                attacker.ask(field.flag)
        assert field.stack.metrics().value("sluice_connections_refused_total") >= refused
        inside.pop().sock.close()
        wait_until(lambda: field.connections() == 39, 5, "room")
        with field.attacker() as next_one:
            next_one.ask(field.flag)
    finally:
        for attacker in inside:
            attacker.sock.close()
    attack.note(f"{refused} closed before the handshake")


def test_57_a_place_in_the_line_costs_no_connection(field, attack):
    """Who waits without a connection is a place in the map and nothing else. What is
    allowed above 64 bytes each has an end: verified tokens, pages of the map."""
    joined, before = 0, attack.memory.now()
    for _ in attack.goes_on(10):
        with H2(field.stack.url, field.stack.ca) as connection:
            tokens = [field.shop.token() for _ in range(100)]
            for at in range(0, 100, 50):
                streams = [connection.start("POST", field.line, {"authorization": f"Bearer {token}"})
                           for token in tokens[at:at + 50]]
                assert {connection.finish(stream).status for stream in streams} == {202}
            joined += len(tokens)
    wait_until(lambda: field.connections() == 1, 10, "nobody else there")
    grown = attack.memory.now() - before
    assert field.is_sanitized or grown < 4 * 1024 * 1024 + 64 * joined, grown
    attack.note(f"{joined} wait")


# ---- behind (rows 58, 59) ----------------------------------------------------------

def test_58_origin_stopped(strict, strict_attack):
    """Answers within its time, none of them lost: the key gets its hold afterwards."""
    field, attack = strict, strict_attack
    sale = field.shop.sale(units=20)
    connection = field.shop.connect()
    buyers = [field.shop.buyer(sale, connection=connection) for _ in range(10)]
    for buyer in buyers:
        buyer.enter()
    field.stack.origin_process.pause()
    try:
        for number in attack.goes_on(20):
            for buyer in buyers:
                began = time.monotonic()
                answer = buyer.hold(key="again")
                assert answer.status == 503 and answer.header("retry-after"), answer
                assert time.monotonic() - began < 3
    finally:
        field.stack.origin_process.resume()
    for buyer in buyers:
        wait_until(lambda: buyer.hold(key="again").status in (200, 201), 15, "the hold in the end")
    assert field.shop.stock(sale)["held"] == 10
    field.shop.close()
    attack.note("503 in time; 10 of 10 keys held afterwards")


def test_59_application_that_refuses(strict, strict_attack):
    """Nobody listens: 503 at once, and not a connection attempt a request."""
    field, attack = strict, strict_attack
    sale = field.shop.sale(units=5, upstream="gone",
                           match=[{"host": None, "path": "/gone", "prefix": True}],
                           bypass=[{"host": None, "path": "/gone/free", "prefix": True}])
    asked, slowest = 0, 0
    for _ in attack.goes_on():
        with field.attacker() as attacker:
            for _ in range(5):
                began = time.monotonic()
                stream = attacker.ask("/gone/free/x")
                slowest = max(slowest, time.monotonic() - began)
                assert attacker.status[stream] in (502, 503), attacker.status
                asked += 1
    assert sale and slowest < 1.5
    attack.note(f"{asked} times 503, the slowest after {1000 * slowest:.0f} ms")


# ---- disk, files, keys (rows 60, 65, 67) -------------------------

def descriptors(field):
    return len(os.listdir(f"/proc/{field.stack.gateway.pid}/fd"))


def reload(field):
    """Sends SIGHUP and waits for what comes of it: (taken over, refused)."""
    def counts():
        metrics = field.stack.metrics()
        return (metrics.value("sluice_reloads_total"), metrics.value("sluice_reloads_refused_total"))
    before = counts()
    field.stack.gateway.signal(1)
    now = wait_until(lambda: counts() != before and counts(), 10, "a reload")
    return now[0] - before[0], now[1] - before[1]


def test_60_disk_full(strict, strict_attack):
    """Lines that cannot be written are dropped and counted; nothing waits for them."""
    field, node = strict, strict.stack.nodes[0]
    with open(node.file) as file:
        good = file.read()
    full = config.laid_over(field.stack.options["gateway"], {"log": {"file": "/dev/full"}})
    config.write(node.file, config.gateway(field.stack, node), full)
    assert reload(field) == (1, 0)
    try:
        for _ in strict_attack.goes_on():
            with field.attacker() as attacker:
                attacker.send(b"".join(attacker.request(field.flag) for _ in range(50)))
                attacker.wait(attacker.stream - 2)
                assert set(attacker.status.values()) == {200}
        dropped = field.stack.metrics().value("sluice_log_dropped_total")
    finally:
        with open(node.file, "w") as file:
            file.write(good)
        assert reload(field) == (1, 0)
    assert dropped >= 50
    strict_attack.note(f"{dropped:.0f} lines dropped")


def test_65_reloads_of_broken_files(strict, strict_attack):
    """The old configuration stays, and nothing is left behind."""
    field, attack = strict, strict_attack
    node = field.stack.nodes[0]
    with open(node.file) as file:
        good = file.read()
    reload(field)
    open_before = descriptors(field)
    broken = [good + "nonsense: 1\n", "", "{", good.replace("keys/", "none/"), "a: [1, 2\n" * 1000]
    done = 0
    for number in attack.goes_on(least=50):
        with open(node.file, "w") as file:
            file.write(broken[number % len(broken)])
        assert reload(field) == (0, 1)
        done += 1
    with open(node.file, "w") as file:
        file.write(good)
    assert reload(field) == (1, 0)
    wait_until(lambda: descriptors(field) <= open_before + 1, 5, f"{open_before} descriptors")
    attack.note(f"{done} refused, no descriptor lost")


def test_67_a_new_ticket_key_in_the_middle_of_a_line(strict):
    """Places outlive it: the old key still opens, the new one signs; without the old
    one the place is found again by its account."""
    field, stack = strict, strict.stack
    with H2(stack.url, stack.ca) as connection:
        waiting = Shopper(connection, field.sale, field.shop.token("old-timer"))
        position = waiting.join().json["position"]
    fresh = keys.make_token(os.path.join(stack.folder, "keys"), "ticket2.key")

    def restart(files):
        field.good.close()
        stack.gateway.signal(15)
        assert stack.gateway.wait(30) == 0
        options = config.laid_over(stack.options["gateway"], {"tickets": {"keys": files}})
        stack.options["gateway"] = options
        stack.start_gateway()
        field.befriend()
    restart([fresh, stack.ticket_key])
    with beside(field, "test_67_a_new_ticket_key_in_the_middle_of_a_line") as attack:
        for _ in attack.goes_on(20):
            with H2(stack.url, stack.ca) as waiting.connection:
                answer = waiting.place()
                assert (answer.status, answer.json["position"]) == (202, position), answer
        attack.note("kept")
    old = waiting.ticket
    restart([fresh])
    with beside(field, "test_67_the_old_ticket_key_is_gone") as attack:
        for _ in attack.goes_on(3):
            with H2(stack.url, stack.ca) as waiting.connection:
                waiting.ticket = old
                assert waiting.place().status in (202, 404)
                assert waiting.join().json["position"] == position
        attack.note("found by the account")


# ---- the end (rows 63, 64) ---------------------------------------------------------

def test_63_64_drain(strict):
    """SIGTERM: a GOAWAY that names no stream, streams that come until the second one are
    served, all that was asked is answered, exit 0."""
    field = strict
    with beside(field, "test_63_64_drain") as attack:
        for _ in attack.goes_on(1):
            pass
        clients = [field.attacker() for _ in range(10)]
        for client in clients:
            client.ask(field.flag)
    # From here on the good client may be told to go, too.
    field.good.close()
    clients = [field.attacker() for _ in range(10)]
    for client in clients:
        client.ask(field.flag)
    field.stack.gateway.signal(15)
    served, between = 0, 0
    for client in clients:
        client.wait_cut(10)
        assert client.goaway == (2 ** 31 - 1, NO_ERROR), client.goaway
    for client in clients:
        client.goaway = None
        stream = client.ask(field.flag)
        assert client.status[stream] == 200
        between += 1
    for client in clients:
        client.wait_cut(10)
        assert client.goaway == (3, NO_ERROR), client.goaway
        client.wait_closed(10)
        served += set(client.status.values()) == {200}
        client.sock.close()
    assert field.stack.gateway.wait(30) == 0 and served == len(clients)
    field.stack.start_gateway()
    field.befriend()
    attack.note(f"{between} of {between} between the two GOAWAYs served; exit 0")


# ---- operators, names (rows 68, 70) ------------------------------------------------

def test_68_two_operators_at_once(field, attack):
    """Of changes to the same version one wins; the other is told 409 and changes nothing."""
    sale = field.shop.sale(units=5)
    path = f"/v1/sales/{sale}"
    won = 0
    for number in attack.goes_on(10):
        version = field.stack.origin.get(path).json["version"]
        statuses = []

        def change(seconds):
            statuses.append(field.stack.origin.patch(path, {"hold_seconds": seconds},
                                                     headers={"If-Match": f'"{version}"'}).status)
        threads = [threading.Thread(target=change, args=(60 + 10 * number + which,))
                   for which in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [200, 409, 409, 409], statuses
        won += 1
    attack.note(f"one of four, {won} times")


@pytest.mark.parametrize("address, code, told", [
    ("origin.invalid:80", 2, "origin.address"), ("localhost:80", 0, "localhost:80")])
def test_70_names_are_resolved_when_the_file_is_read(field, attack, address, code, told):
    """By whoever reads the file, not by a loop that serves: no resolver can hang one."""
    node = field.stack.nodes[0]
    file = os.path.join(field.stack.folder, "names.yaml")
    options = config.laid_over(field.stack.options["gateway"], {"origin": {"address": address}})
    config.write(file, config.gateway(field.stack, node), options)
    for _ in attack.goes_on(1):
        done = subprocess.run([field.stack.program("gateway/sluice"), "-t", "-c", file], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
        assert done.returncode == code and told in done.stdout, done
    attack.note(f"-t: {code}, {told}")
