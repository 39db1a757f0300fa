"""A gateway to attack, and a good client beside each attack.

The gateway has one worker, so that attacker and good client share a loop, and short
times. Every test of this folder has the good client running: before the attack it is
measured in quiet, and during the attack it must meet no error and wait no longer than
the larger of 50 ms and four times its quiet p99 (a single answer: 500 ms). Where the build has no sanitizer
(those keep what is freed) the process may grow by 64 MiB, and has ten seconds to give
all but 8 MiB back.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

from attacker import Attacker
from run import config
from run.process import wait_until
from run.stack import BUILD, Stack
from shopper import API, Shop
from upstream import Upstream

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = os.path.join(BUILD, "test-runs")
SANITIZER_WORDS = ("AddressSanitizer", "LeakSanitizer", "runtime error:")
MIB = 1 << 20
SAMPLES = 20       # of the good client, during an attack; quiet ones come on top
MOST_WAIT = 0.05
WORST_WAIT = 0.5   # of a single answer
TIMES = {"handshake_timeout": "1s", "handshake_slow": "1s", "header_timeout": "1s",
         "body_timeout": "1s", "write_stall": "1s"}
OPTIONS = {"workers": 1, "limits": {**TIMES, "network_strikes": 0},
           "limiter": {"network_failures_per_minute": 1000000},
           "store": {"max_sales": 200, "max_numbers": 10000, "max_accounts": 10000}}
ROWS = []


def p99(seconds):
    """Of a few answers it is the second worst: one is the machine's (a thread that is
    put aside with a lock held, which no count of the kernel tells)."""
    return sorted(seconds)[-1 - max(1, len(seconds) // 100)]


class GoodClient:
    def __init__(self, **told):
        self.child = subprocess.Popen([sys.executable, os.path.join(HERE, "good.py")],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._say(json.dumps(told))
        self.quiet = []

    def _say(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def report(self):
        """(seconds of each answer, errors) since the last report."""
        self._say("")
        said = json.loads(self.child.stdout.readline())
        return said["seconds"], said["errors"]

    def collect(self, least):
        """The same, once there are at least so many."""
        seconds, errors = [], []

        def enough():
            more, wrong = self.report()
            seconds.extend(more)
            errors.extend(wrong)
            return len(seconds) >= least or errors
        wait_until(enough, 30, f"{least} answers for the good client")
        return seconds, errors

    def rest(self, least):
        seconds, errors = self.collect(least)
        assert not errors, str(errors)
        self.quiet = (self.quiet + seconds)[-100:]

    def close(self):
        if self.child.poll() is None:
            self.child.stdin.close()
            self.child.wait(15)
            self.child.stdout.close()


class Memory:
    """The resident size of a process, watched from a thread."""

    def __init__(self, pid):
        self.pid, self.allowed = pid, 64 * MIB
        self.before = self.now()
        self.most, self.is_over = self.before, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def now(self):
        with open(f"/proc/{self.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def _watch(self):
        while not self.is_over.wait(0.02):
            self.most = max(self.most, self.now())

    def stop(self):
        self.is_over.set()
        self.thread.join()

    @property
    def growth(self):
        return self.most - self.before

    def judge(self):
        assert self.growth < self.allowed, f"grew by {self.growth / MIB:.1f} MiB"
        wait_until(lambda: self.now() <= self.before + 8 * MIB, 10,
                   f"the process at {self.before / MIB:.1f} MiB again")


class Field:
    """A gateway to attack, its application, and the good client."""

    def __init__(self, **options):
        os.makedirs(RUNS, exist_ok=True)
        self.upstream = Upstream()
        build = os.environ.get("SLUICE_BUILD", BUILD)
        ours = config.laid_over(OPTIONS, {"upstreams": {"app": {"address": self.upstream.address}}})
        self.stack = Stack(tempfile.mkdtemp(prefix="attack-", dir=RUNS), build=build,
                           options={"gateway": config.laid_over(ours, options)})
        self.shop, self.good = Shop(self.stack), None

    def start(self):
        self.stack.start()
        self.shop.wait_open_line()
        self.sale = self.shop.sale(
            units=1, upstream="app", hold_seconds=1800, match=[{"host": None, "path": "/app", "prefix": True}],
            bypass=[{"host": None, "path": "/app/free", "prefix": True}])
        holder = self.shop.buyer(self.sale)
        holder.enter()
        assert holder.hold().status == 201
        self.waiting = self.shop.buyer(self.sale)
        assert self.waiting.join().status == 202  # for as long as the only unit is held
        self.flag, self.line = f"{API}/sales/{self.sale}", f"{API}/sales/{self.sale}/line"
        self.holds = f"{API}/sales/{self.sale}/holds"
        self.befriend()
        with open(f"/proc/{self.stack.gateway.pid}/maps") as maps:
            self.is_sanitized = "libasan" in maps.read()
        self.logged = 0
        return self

    def befriend(self):
        """Starts the good client, or a new one."""
        if self.good:
            self.good.close()
        self.waiting.connection = self.shop.connect()
        assert self.waiting.join().status == 202  # its ticket is fresh
        self.shop.close()
        self.good = GoodClient(url=self.stack.url, ca=self.stack.ca, paths=[self.flag, self.line],
                               headers={**self.waiting.headers(), "x-forwarded-for": "10.9.8.7"},
                               pid=self.stack.gateway.pid)

    def restart(self, options):
        """The gateway anew, with these options of its file, and the good client."""
        self.good.close()
        gateway = self.stack.gateway
        gateway.signal(15)
        assert gateway.wait(30) == 0
        self.stack.options["gateway"] = options
        self.stack.start_gateway()
        self.befriend()

    @property
    def port(self):
        return self.stack.nodes[0].port

    def attacker(self, **how):
        return Attacker(self.port, self.stack.ca, **how)

    def cuts(self, reason):
        return self.stack.metrics().value("sluice_connections_cut_total", reason=reason)

    def connections(self):
        return self.stack.metrics().value("sluice_connections")

    def refused(self):
        return self.stack.metrics().value("sluice_connections_refused_total")

    def nothing_waits(self):
        """Nobody's request is at the application, and none has part of its answer."""
        metrics = self.stack.metrics()
        return (metrics.value("sluice_requests_parked") == 0
                and metrics.value("sluice_exchanges_open") <= 1)  # the good client's

    def log_of(self, area):
        return [line for line in self.stack.gateway.log_text().splitlines()
                if f'"area":"{area}"' in line]

    def log_since(self):
        """What the gateway has written since the last call."""
        with open(self.stack.gateway.log, errors="replace") as log:
            log.seek(self.logged)
            text = log.read()
            self.logged = log.tell()
        return text

    def stop(self):
        if self.good:
            self.good.close()
        self.waiting.connection = self.shop.connect()
        assert self.waiting.join().status == 202  # its ticket is fresh
        self.shop.close()
        self.stack.stop()
        self.upstream.close()
        codes = {process.name: process.child.returncode for process in self.stack.processes()
                 if process.child}
        assert set(codes.values()) == {0}, str(codes)
        shutil.rmtree(self.stack.folder)


class Attack:
    """What one test did and what came of it."""

    def __init__(self, field, name):
        self.field, self.name = field, name
        self.memory = Memory(field.stack.gateway.pid)
        self.noted, self.seconds, self.errors = [], [], []
        self.most_wait = MOST_WAIT

    def note(self, text):
        """For the table: how the attacker was cut."""
        self.noted.append(text)

    def goes_on(self, most=200, least=1):
        """Numbers, for repeating an attack until the good client has seen enough of it."""
        for number in range(max(most, least)):
            seconds, errors = self.field.good.report()
            self.seconds += seconds
            self.errors += errors
            if number >= least and (len(self.seconds) >= SAMPLES or errors):
                return
            yield number

    def judge(self):
        good = self.field.good
        seconds, errors = good.collect(max(1, SAMPLES - len(self.seconds)))
        self.seconds += seconds
        self.errors += errors
        assert not self.errors, str(self.errors)
        waited, allowed = p99(self.seconds), max(self.most_wait, 4 * p99(good.quiet))
        if waited > allowed:  # is it the machine? Then it is slow without the attack too
            good.rest(2 * SAMPLES)
            allowed = max(self.most_wait, 4 * p99(good.quiet[-2 * SAMPLES:]))
        assert waited <= allowed and max(self.seconds) <= max(WORST_WAIT, 4 * self.most_wait), (
            f"the good client waited {waited * 1000:.0f} ms, allowed {allowed * 1000:.0f}, "
            f"quiet {sorted(round(s * 1000, 1) for s in good.quiet)[-5:]}, "
            f"attacked {sorted(round(s * 1000, 1) for s in self.seconds)[-5:]}")


@contextlib.contextmanager
def humble():
    """The attacker's own hunger for the processor is not what is measured."""
    os.setpriority(os.PRIO_PROCESS, 0, 5)
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)


@contextlib.contextmanager
def beside(field, name):
    """The good client, the memory and the log around an attack."""
    field.good.rest(SAMPLES // 2)
    attack = Attack(field, name)
    try:
        with humble():
            yield attack
        attack.judge()
    finally:
        attack.memory.stop()
        text = field.log_since()
    assert field.stack.gateway.is_alive(), field.stack.gateway.log_tail()
    assert not [word for word in SANITIZER_WORDS if word in text], text
    if not field.is_sanitized:
        attack.memory.judge()
    # The attacker is gone; the good client remains.
    field.shop.close()
    wait_until(lambda: field.connections() == 1, 15, "all but one connection gone")
    ROWS.append((name, attack.noted, 1000 * p99(field.good.quiet),
                 1000 * p99(attack.seconds), 1000 * max(attack.seconds), len(attack.seconds),
                 None if field.is_sanitized else attack.memory.growth / MIB))
