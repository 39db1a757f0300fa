"""What the comparison and the overload run share as commands: how they begin, say
where they ran, and end."""
import os
import platform
import resource
import signal
import subprocess
import sys

from run import build
from run.process import Failed, locked


def say(text):
    print(text, file=sys.stderr, flush=True)


def version(kind, folder):
    program, option = kind.version
    path = os.path.join(folder, program) if "/" in program else program
    done = subprocess.run([path, option], text=True, timeout=20, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    words = done.stdout.splitlines()[0].replace("/", " ").split()
    number = next((word for word in words if word[:1].isdigit()), "?")
    return f"{kind.name} {number}"


def machine():
    with open("/proc/cpuinfo") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return {"cpu": models[0] if models else platform.machine(), "cores": os.cpu_count(),
            "kernel": platform.release()}


def alone(folder):
    """Two at once would spoil each other's figures, and use the same folder."""
    def busy():
        raise Failed("another comparison is running here")
    return locked(f"{folder}.lock", busy)


def raise_limits():
    """The most open files that an ordinary user may have, for thousands of connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def stop_on_signal(signo, _frame):
    raise SystemExit(128 + signo)


def stop_on_signals():
    for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signo, stop_on_signal)


def prepare(folder, programs):
    """Builds them where they are not, or are old."""
    is_new = not os.path.exists(os.path.join(folder, "build.ninja"))
    build.make(folder, *(["-Dtests=false"] if is_new else []), targets=programs)
    raise_limits()


def verdict(command, result, is_checked):
    """The exit code, and on standard error why it is not 0."""
    for fault in result["faults"]:
        say(f"{command}: {fault}")
    missed = [said["bound"] for said in result["bounds"] if not said["kept"]]
    if is_checked and missed:
        say(f"{command}: missed: {'; '.join(missed)}")
    return 1 if result["faults"] or (is_checked and missed) else 0
