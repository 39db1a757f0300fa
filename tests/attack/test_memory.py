"""Clients that make the gateway hold more memory than it may have (row 61)."""
import contextlib
import os

import pytest

from attacker import *  # noqa: F403
from beside import MIB, Memory, beside
from run import config
from run.process import wait_until
from upstream import MEDIUM

ROOM = 128 * MIB  # above what the gateway needs at rest
HOARDERS, STREAMS = 10, 10   # each asks for so many answers, again and again
WAIT = 0.3  # giving memory back takes locks that answers wait for
PATIENT = {"limits": {"write_stall": "60s", "body_timeout": "60s", "idle": "60s",
                      "forward_unread_bytes": "1GiB"},
           "upstreams": {"app": {"max_in_flight": 1000, "read_ahead": "512KiB",
                                 "request_timeout": "60s",
                                 "unread_per_client": 10000}}}


class Own(Memory):
    """Without the pages of files, which the kernel takes back: what has a limit."""

    def now(self):
        with open(f"/proc/{self.pid}/statm") as statm:
            _, resident, files = map(int, statm.read().split()[:3])
        return (resident - files) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def narrow(strict, monkeypatch):
    """The gateway with so much room and no more, and with all patience."""
    field, before = strict, strict.stack.options["gateway"]
    if field.is_sanitized:  # it keeps what is freed, and gives it back late
        monkeypatch.setenv("ASAN_OPTIONS", os.environ.get("ASAN_OPTIONS", "")
                           + ":quarantine_size_mb=1:allocator_release_to_os_interval_ms=50")
    patient = config.laid_over(before, PATIENT)
    field.restart(patient)
    limit = (memory(field, "used_bytes") + ROOM) // 1024
    field.restart(config.laid_over(patient, {"limits": {"memory": f"{limit:.0f}KiB"}}))
    yield field
    field.restart(before)


def memory(field, what):
    return field.stack.metrics().value(f"sluice_memory_{what}")


def times(field, stage):
    return field.stack.metrics().value("sluice_memory_stages_total", stage=stage)


def hoard(field, attacker):
    """Asks for 2 MB and takes nothing; waits until the gateway has it, or has cut."""
    sent, cuts = field.upstream.sent, cut(field)
    with contextlib.suppress(OSError, Cut):
        attacker.send(b"".join(attacker.request("/app/free/medium") for _ in range(STREAMS)))
        wait_until(lambda: field.upstream.sent >= sent + STREAMS * MEDIUM or cut(field) > cuts, 10,
                   "the answers at the gateway")


def cut(field):
    return field.stack.metrics().value("sluice_connections_cut_total", reason="memory")


def is_served(field):
    try:
        with field.attacker() as late:
            return late.ask(field.flag)
    except (OSError, Cut):
        return False


def shed(field):
    return field.stack.metrics().value("sluice_connections_shed_total", by="memory")


def test_61_memory_runs_short(narrow, request):
    """Nobody new is let in, who asks for nothing is sent away, the dearest are cut; the
    process stays below its limit, and afterwards all are welcome again."""
    field = narrow
    limit, own = memory(field, "limit_bytes"), Own(field.stack.gateway.pid)
    with beside(field, request.node.name) as attack:
        attack.memory.allowed, attack.most_wait = limit, WAIT
        idle, hoarders = ([field.attacker(**how) for _ in range(n)] for n, how in (
            (5, {}), (HOARDERS, {"settings": [(INITIAL_WINDOW, BIG_WINDOW)], "rcvbuf": 4096,
                                 "gives": False})))
        try:
            for client in idle:
                client.ask(field.flag)
            for number in range(100 // STREAMS * HOARDERS):
                hoard(field, hoarders[number % HOARDERS])
                if cut(field) > 0 and not (is_served(field) and shed(field) == 0):
                    break
            assert shed(field) > 0, field.log_of("memory")
            assert 1 <= cut(field) < HOARDERS
            assert field.stack.metrics().value("sluice_idle_sent_away_total") >= len(idle)
            for client in idle:
                client.wait_cut(1)
                assert client.goaway[1] == NO_ERROR
            for _ in attack.goes_on(1):
                pass
        finally:
            for client in idle + hoarders:
                client.sock.close()
            own.stop()
        wait_until(lambda: memory(field, "stage") == 0, 10, "room again")
        wait_until(lambda: is_served(field), 10, "a new connection served")
        assert own.most < limit, (
            f"{own.most / MIB:.1f} of {limit / MIB:.1f} MiB", field.log_of("memory"))
        attack.note(f"{cut(field):.0f} of {HOARDERS} cut, at most {100 * own.most / limit:.0f} % "
                    f"of {limit / MIB:.0f} MiB")
    said = len([line for line in field.log_of("memory") if '"another stage"' in line])
    assert said >= 4
