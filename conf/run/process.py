"""One program that we started: its pid, its log, its end.

A process is known by pid and start time together, so that a pid which the
kernel has given to somebody else is never signalled.
"""
import contextlib
import fcntl
import os
import signal
import socket
import random
import subprocess
import time


class Failed(Exception):
    """Something did not come up, or a command failed; the text is for people."""


# Deadlines here only catch what hangs. A machine that does much else beside needs
# longer ones, so many times.
PATIENCE = float(os.environ.get("SLUICE_PATIENCE", "1"))


def wait_until(question, seconds, what, promised=False):
    """Asks until the answer is true and returns it; Failed at the deadline. One that
    was promised by the programs is theirs, however busy the machine is."""
    seconds *= 1 if promised else PATIENCE
    deadline, pause = time.monotonic() + seconds, 0.02
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise Failed(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(pause)
        pause = min(pause * 1.3, 0.2)  # asking costs those who are asked


def port_range():
    """Below the range of outgoing connections. SLUICE_PORTS=FIRST-END narrows it: who
    runs side by side must not be given the port that the other is about to take."""
    first, _, end_ = os.environ.get("SLUICE_PORTS", "20000-32000").partition("-")
    return range(int(first), int(end_))


@contextlib.contextmanager
def locked(path, when_busy):
    """Holds the lock of this file; asks `when_busy` first when somebody else has it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            when_busy()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


GIVEN = {"last": None}


def free_port():
    """A TCP port nobody listens on, and one not given away a moment ago."""
    ports = port_range()
    if GIVEN["last"] not in ports:
        GIVEN["last"] = random.choice(ports)
    for _ in ports:
        port = GIVEN["last"] = ports[(GIVEN["last"] + 1 - ports[0]) % len(ports)]
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise Failed(f"found no free port between {ports[0]} and {ports[-1]}")


def start_time(pid):
    """The start time of a living process in clock ticks, None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def is_alive(pid, started):
    return started is not None and start_time(pid) == started


def end(pid, started, first, grace_seconds=15 * PATIENCE):
    """Ends a process that may be no child of ours: politely, then surely."""
    for sign, seconds in ((first, grace_seconds), (signal.SIGKILL, 5)):
        if not is_alive(pid, started):
            return
        try:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, sign)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + seconds
        while is_alive(pid, started) and time.monotonic() < deadline:
            reap(pid)
            time.sleep(0.02)


def reap(pid):
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


class Process:
    """A child with its output in a log file; starting again appends to it."""

    def __init__(self, name, argv, log, user=None, env=None, cwd=None,
                 end_signal=signal.SIGTERM):
        self.name, self.argv, self.log = name, [str(a) for a in argv], log
        self.user, self.env, self.cwd, self.end_signal = user, env, cwd, end_signal
        self.child, self.started = None, None

    def start(self):
        if self.is_alive():
            raise Failed(f"{self.name} is running already")
        identity = {}
        if self.user:
            identity = {"user": self.user, "group": self.user, "extra_groups": []}
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(self.env or {})}, cwd=self.cwd,
                start_new_session=True, **identity)
        self.started = start_time(self.child.pid)
        return self

    @property
    def pid(self):
        return self.child.pid if self.child else None

    def is_alive(self):
        return self.child is not None and self.child.poll() is None

    def signal(self, sign):
        if not self.is_alive():
            raise Failed(f"{self.name} is not running:\n{self.log_tail()}")
        os.kill(self.pid, sign)

    def kill9(self):
        self.signal(signal.SIGKILL)
        self.child.wait(10 * PATIENCE)

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def wait(self, seconds):
        """The exit code."""
        seconds *= PATIENCE
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} has not ended after {seconds:.0f} s") from None

    def end(self, first=None):
        if self.child is not None:
            end(self.pid, self.started, first or self.end_signal)
            self.child.poll()

    def log_text(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                return log.read()
        except OSError:
            return ""

    def log_tail(self, lines=15):
        return "\n".join(self.log_text().splitlines()[-lines:])

    def wait_ready(self, question, seconds):
        """Waits for the question to be true; a process that ends is a failure."""
        def ready_or_dead():
            return not self.is_alive() or question()
        try:
            wait_until(ready_or_dead, seconds, f"{self.name} ready")
        except Failed as late:
            raise Failed(f"{late}\n{self.log_tail()}") from None
        if not self.is_alive():
            raise Failed(f"{self.name} ended with {self.child.returncode}:\n{self.log_tail()}")
