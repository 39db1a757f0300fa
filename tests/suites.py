"""tests/run after the packages are there: builds, runs each suite, adds up.

One suite runs by itself, and one can watch it. Several are jobs: suites that
mostly wait run side by side, and what keeps the cores busy (the builds with
sanitizers, lint) runs beside them at a low priority, so that it takes what they
leave. A job's output is shown when it has ended.

What failed is said once more before the last line, each with its reason, so that
the end of the output tells all of it.
"""
import collections
import concurrent.futures
import contextlib
import json
import os
import re
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "conf"))
from run import build  # noqa: E402
from run.process import Failed, port_range  # noqa: E402

BUILD = os.path.join(ROOT, "build")
ASAN = os.path.join(BUILD, "asan")
TSAN = os.path.join(BUILD, "tsan")
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", "-rf"]
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=99",
}


PROGRAMS = ("gateway/sluice", "gateway/sluicectl", "origin/sluice-origin",
            "loadgen/sluice-load")
# What fuzzing has found so far, run again (tests/fuzz/replay.c).
REPLAYS = sorted(f"tests/fuzz/replay_{name[5:-2]}" for name in os.listdir(f"{ROOT}/tests/fuzz")
                 if name.startswith("fuzz_") and name.endswith(".c"))
# A hundred programs with static libraries: gold links them in half the time. The
# sanitizers' builds are the longest: -O1, as their authors advise, and of the debugger's
# information only what their reports need.
LINKER = "-Dc_link_args=-fuse-ld=gold"
SANITIZED = [LINKER, "-Db_lundef=false", "-Doptimization=1", "-Dc_args=-g1"]
SETTINGS = {
    BUILD: [LINKER],
    ASAN: ["-Db_sanitize=address,undefined", *SANITIZED],
    TSAN: ["-Db_sanitize=thread", *SANITIZED],
}


# The unit tests that start threads; what else is threaded runs in races and faults.
THREADED = ("limiter", "log", "loop", "metrics", "store_memory")


PATIENCE = 6  # times longer than by itself a test may wait beside others before it hangs


def make(folder, *targets):
    """Builds the targets, or all of a folder, unit tests too, unless a job before did."""
    if os.environ.get("SLUICE_BUILT"):
        return
    build.make(folder, "-Dtests=true", *SETTINGS[folder], targets=targets)


FAULTS = []  # of this process: what failed, and why


def fault_of(name, why):
    """Notes one for the end: on one line, long reasons without their middle."""
    why = " ".join(why.split()) or "no reason given"
    FAULTS.append(f"{name}: {why if len(why) <= 2000 else f'{why[:1400]} […] {why[-600:]}'}")


def pytest(*paths, build_folder=BUILD, deadline=900, side_by_side=1, **env):
    """(passed, failed), from pytest's closing lines; a run without one has failed.
    `side_by_side` spreads the tests over so many runs, for tests that mostly wait."""
    env = {**os.environ, "SLUICE_BUILD": build_folder, "PYTHONDONTWRITEBYTECODE": "1",
           "SLUICE_PATIENCE": str(PATIENCE), **env}
    shares = [list(paths)]
    if side_by_side > 1:
        listed = subprocess.run([*PYTEST, "--collect-only", "-q", *paths], cwd=ROOT, env=env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        names = [f"tests/{line}" for line in listed.stdout.splitlines() if "::" in line]
        if listed.returncode != 0 or not names:
            print(listed.stdout, flush=True)
            fault_of(" ".join(paths), f"pytest lists no tests: {listed.stdout[-600:]}")
            return 0, 1
        shares = [names[start::side_by_side] for start in range(side_by_side)]
    end = time.monotonic() + deadline
    ports = [{**env, "SLUICE_PORTS": part} for part in port_shares(len(shares))]
    with concurrent.futures.ThreadPoolExecutor(len(shares)) as pool:
        counts = pool.map(lambda share, env: run_pytest(share, env, end), shares, ports)
        return tuple(map(sum, zip(*counts)))


def port_shares(count):
    """The ports of this job, so many parts of them."""
    ports = port_range()
    size = len(ports) // count
    return [f"{ports[part * size]}-{ports[part * size] + size}" for part in range(count)]


PYTESTS = []


def end_pytests(*_):
    """They end what they started and say what they found so far."""
    for child in PYTESTS:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)


def run_pytest(words, env, end):
    faults = tempfile.NamedTemporaryFile("r", prefix="faults-")
    # -vv: what is compared is told whole
    child = subprocess.Popen([*PYTEST, "-vv", *words], cwd=ROOT, stdin=subprocess.DEVNULL,
                             env={**env, "SLUICE_FAULTS": faults.name},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", start_new_session=True)
    PYTESTS.append(child)
    watch = threading.Timer(max(1, end - time.monotonic()), child.send_signal, [signal.SIGINT])
    watch.start()
    closing, last = "", collections.deque(maxlen=12)
    for line in child.stdout:
        print(line, end="", flush=True)
        last.append(line)
        if re.match(r"=+ .* in [\d.]+s", line):
            closing = line
    code = child.wait()
    watch.cancel()
    told = [json.loads(line) for line in faults]
    for name, why in told:
        fault_of(f"tests/{name}", why)

    def count(word):
        found = re.search(rf"(\d+) {word}", closing)
        return int(found[1]) if found else 0
    failed = count("failed") + count("errors?")
    if not failed and code != 0:
        failed = 1
    if failed > len(told):
        fault_of(f"pytest {words[0]}", f"ended with {code}, its last words: {' '.join(last)}")
    return count("passed"), failed


CASE = re.compile(r"^\[ +(OK|FAILED) +\] (\w+)$", re.MULTILINE)
ASSERTED = re.compile(r"^\[ +ERROR +\] --- (.*?) error: Failure!", re.MULTILINE | re.DOTALL)
CRASHED = re.compile(r"^SUMMARY: .*|.*runtime error: .*|.*Assertion `.*", re.MULTILINE)


def program_faults(build_folder, program, text, cases):
    """Of a unit test program that failed: its cases, or its end and the case it was in."""
    name = f"{build_folder} {program['name'].rpartition(' ')[2]}"
    bad = [case for case, word in cases.items() if word == "FAILED"]
    whys = ASSERTED.findall(text)
    for number, case in enumerate(bad):
        fault_of(f"{name} {case}", whys[number] if len(whys) == len(bad) else "; ".join(whys))
    if not bad:
        began = re.findall(r"^\[ +RUN +\] (\w+)", text, re.MULTILINE)
        fault_of(f"{name} {began[-1] if began else ''}".rstrip(),
                 f"{program['result']}, exit {program['returncode']} after "
                 f"{program['duration']:.0f} s: {'; '.join(CRASHED.findall(text)) or text[-600:]}")


def meson_test(folder, *programs):
    """(passed, failed) of the cmocka cases of these unit test programs, or of all."""
    subprocess.run(["meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs",
                    "-t", str(PATIENCE), *programs],
                   cwd=ROOT, stdin=subprocess.DEVNULL, env={**os.environ, **SANITIZERS})
    passed = failed = 0
    with open(os.path.join(folder, "meson-logs", "testlog.json")) as log:
        for line in log:
            program = json.loads(line)
            text = (program.get("stdout") or "") + (program.get("stderr") or "")
            cases = dict((name, word) for word, name in CASE.findall(text))
            bad = sum(word == "FAILED" for word in cases.values())
            passed += len(cases) - bad
            if program["result"] != "OK":
                bad = max(bad, 1)
                program_faults(os.path.relpath(folder, ROOT), program, text, cases)
            elif not cases:
                passed += 1
            failed += bad
    if passed + failed == 0:
        fault_of(folder, f"meson test {' '.join(programs)} ran nothing")
        return 0, 1
    return passed, failed


def threaded_tests():
    return [f"tests/unit/test_{name}" for name in THREADED]


def lint():
    make(BUILD, *PROGRAMS)  # clang reads headers that the build makes
    return pytest("tests/lint", "-q")


def unit():
    make(BUILD)
    make(ASAN)
    make(TSAN, *threaded_tests())
    counts = [meson_test(BUILD, "--suite", "unit"), meson_test(ASAN, "--suite", "unit"),
              meson_test(TSAN, *THREADED),
              pytest("tests/proxy")]
    return tuple(map(sum, zip(*counts)))


def integration():
    make(ASAN, *PROGRAMS)
    return pytest("tests/scenario", "tests/origin", build_folder=ASAN, side_by_side=4, **SANITIZERS)


def conformance():
    make(ASAN, *PROGRAMS)
    return pytest("tests/conformance", build_folder=ASAN, **SANITIZERS)


# What may cost memory is attacked without a sanitizer too, which keeps what is freed.
COSTLY = ("bomb or never_read or thousand or never_acknowledged or 14 or 21 or 24 or 28 or 32"
          " or 57_a or 61")


def attack():
    make(ASAN, *PROGRAMS)
    make(BUILD, *PROGRAMS)
    counts = [pytest("tests/attack", build_folder=ASAN, side_by_side=3, **SANITIZERS),
              pytest("tests/attack", "-k", COSTLY, side_by_side=3)]
    return tuple(map(sum, zip(*counts)))


def race():
    make(BUILD, *PROGRAMS)
    return pytest("tests/race", side_by_side=3)


def fault():
    make(BUILD, *PROGRAMS)
    return pytest("tests/fault", side_by_side=3)


def browser():
    make(BUILD, *PROGRAMS)
    return pytest("tests/browser")


def fuzz():
    make(ASAN, *PROGRAMS, *REPLAYS)
    counts = [meson_test(ASAN, "--suite", "fuzz"),
              pytest("tests/fuzz", build_folder=ASAN, side_by_side=2, **SANITIZERS)]
    return tuple(map(sum, zip(*counts)))


def soak():
    make(BUILD, *PROGRAMS)
    return pytest("tests/race", "tests/fault", "tests/origin/test_origin_cuts.py",
                  "tests/attack/test_wire.py", deadline=10 ** 6, SLUICE_SOAK="1")


SUITES = {suite.__name__: suite for suite in (lint, unit, integration, conformance, attack, race,
                                              fault, browser, fuzz)}
ON_REQUEST = {"soak": soak}


def programs():
    make(BUILD)
    return 0, 0


def sanitizers():
    make(ASAN)
    make(TSAN, *threaded_tests())
    return 0, 0


BUILDS = {"programs": programs, "sanitizers": sanitizers}
# What a job waits for, of those that run at all. The races, faults and browsers
# need no sanitizer and begin while it is being built; the rest comes after them.
UNSANITIZED = ("race", "fault", "browser", "soak")
MEASURING = ("attack",)  # its good client's times: after all others but lint, which gives way


def after(name):
    if name == "programs":
        return ()
    if name in UNSANITIZED or name == "sanitizers":
        return ("programs",)
    if name == "lint":
        return ("programs", "sanitizers")  # nobody waits for it
    if name in MEASURING:
        return ("programs", "sanitizers", *(set(SUITES) - {*MEASURING, "lint"}))
    return ("programs", "sanitizers", *UNSANITIZED)


# Much is to wait for the one; nothing for the other.
POLITE = {"sanitizers": 10, "lint": 19}
PORTS, PORTS_A_JOB = 20000, 1200


def cpu_seconds():
    """Of this process and of all it has waited for, and they for."""
    return sum(used.ru_utime + used.ru_stime
               for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def run_suite(name):
    print(f"\n== {name}", flush=True)
    began, used = time.monotonic(), cpu_seconds()
    try:
        passed, failed = {**SUITES, **ON_REQUEST, **BUILDS}[name]()
    except (Failed, OSError, ValueError) as why:
        print(f"{name}: {why}", flush=True)
        fault_of(name, str(why))
        passed, failed = 0, 1
    print(f"== {name}: {passed} passed, {failed} failed, {time.monotonic() - began:.0f} s, "
          f"CPU {cpu_seconds() - used:.0f} s", flush=True)
    return passed, failed


def be_polite(nice):
    """Where sessions are scheduled as groups, the group's priority counts too."""
    os.setsid()
    os.nice(nice)
    try:
        with open("/proc/self/autogroup", "w") as group:
            group.write(str(nice))
    except OSError:
        pass


class Job:
    """A suite or a build in a process of its own."""

    def __init__(self, name):
        self.name, self.output = name, tempfile.TemporaryFile("w+", errors="replace")
        first = PORTS + [*SUITES, *ON_REQUEST, *BUILDS].index(name) % 10 * PORTS_A_JOB
        env = {**os.environ, "SLUICE_PORTS": f"{first}-{first + PORTS_A_JOB}"}
        if name not in BUILDS:
            env["SLUICE_BUILT"] = "1"
        print(f"-- {name} begins", flush=True)
        self.child = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--job", name], env=env,
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
            preexec_fn=(lambda: be_polite(POLITE[name])) if name in POLITE else None)

    def result(self):
        """Shows what it said: (passed, failed)."""
        self.output.seek(0)
        said = self.output.read()
        print(said, end="", flush=True)
        FAULTS.extend(re.findall(rf"^{TOLD}(.*)", said, re.MULTILINE))
        closing = re.findall(rf"^== {self.name}: (\d+) passed, (\d+) failed", said, re.MULTILINE)
        if closing:
            return tuple(map(int, closing[-1]))
        fault_of(self.name, f"ended with {self.child.returncode} and no count: {said[-600:]}")
        return 0, 1


def run_jobs(suites):
    """Yields (passed, failed) of each job; a job whose build failed counts as failed."""
    builds = ["programs"]
    if set(suites) - {*UNSANITIZED, "lint"}:
        builds.append("sanitizers")
    waiting = [*builds, *suites]
    running, broken = [], set()
    try:
        while waiting or running:
            for name in [name for name in waiting
                         if not any(job in after(name) for job in
                                    [*waiting, *(job.name for job in running)])]:
                waiting.remove(name)
                if broken & set(after(name)):
                    print(f"\n== {name}: not run, its build failed", flush=True)
                    broken.add(name)
                    fault_of(name, "not run, its build failed")
                    yield 0, 1
                else:
                    running.append(Job(name))
            for job in [job for job in running if job.child.poll() is not None]:
                running.remove(job)
                counts = job.result()
                if job.name in BUILDS and counts[1]:
                    broken.add(job.name)
                yield counts
            time.sleep(0.1)
    finally:
        for job in running:
            job.child.terminate()
        for job in running:
            job.child.wait()


TOLD = "-- failed: "


def tell_faults():
    for fault_line in FAULTS:
        print(f"{TOLD}{fault_line}", flush=True)


@contextlib.contextmanager
def patterns():
    """A folder for conf/run/pattern.py that all suites share, where the database's user
    may enter it."""
    folder = tempfile.mkdtemp(prefix="sluice-patterns-", dir="/var/tmp")
    os.chmod(folder, 0o711)
    os.environ.update(SLUICE_PATTERNS=folder, SLUICE_PATTERNS_PASSWORD=secrets.token_hex(16))
    try:
        yield
    finally:
        shutil.rmtree(folder)


def main():
    if sys.argv[1:2] == ["--job"]:
        signal.signal(signal.SIGTERM, end_pytests)
        failed = run_suite(sys.argv[2])[1]
        tell_faults()
        return 1 if failed else 0
    # as an exit, so that jobs end and what is shared goes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    names = sys.argv[1:] or list(SUITES)
    unknown = [name for name in names if name not in SUITES and name not in ON_REQUEST]
    if unknown:
        print(f"tests/run: no suite {', '.join(unknown)}; there are: "
              f"{' '.join([*SUITES, *ON_REQUEST])}", file=sys.stderr)
        return 2
    with patterns():
        counts = ([run_suite(names[0])] if len(names) == 1
                  else list(run_jobs(list(dict.fromkeys(names)))))
    passed, failed = map(sum, zip(*counts))
    print(flush=True)
    tell_faults()
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
