"""Private stacks for tests: PostgreSQL, origin and gateway with real TLS.

`shop` shares one stack over all tests of a session; `own_shop` is a fresh one
for a test that stops, kills or reconfigures something, `lone_shop` one whose
PostgreSQL may be stopped too. After each test the
connections are gone, the invariant holds, and no log has an unexpected error.
"""
import json
import os
import shutil
import signal
import tempfile
import uuid

import pytest

from run.postgres import Postgres
from run.process import wait_until
from run.stack import BUILD, Stack
from shopper import Shop

PROGRAMS = os.environ.get("SLUICE_BUILD", BUILD)
RUNS = os.path.join(BUILD, "test-runs")
# tests/suites.py ends a run so; who starts us in the background may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
SANITIZER_WORDS = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "ThreadSanitizer")


def tell_fault(report):
    """For the end of the whole run (tests/suites.py): the test and all of the reason."""
    path = os.environ.get("SLUICE_FAULTS")
    if path and report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        why = crash.message if crash else report.longreprtext
        phase = getattr(report, "when", "call")
        with open(path, "a") as faults:
            faults.write(json.dumps([report.nodeid + ("" if phase == "call" else f" ({phase})"),
                                     why]) + "\n")


pytest_runtest_logreport = pytest_collectreport = tell_fault


# Room for a sale a test; nobody there has a crowd.
MANY_SALES = {"gateway": {"origin": {"request_timeout": "20s"},  # on a busy machine
                          "store": {"max_sales": 1000, "max_numbers": 10000, "max_accounts": 10000}}}


def make_stack(**more):
    os.makedirs(RUNS, exist_ok=True)
    return Stack(tempfile.mkdtemp(prefix="stack-", dir=RUNS), build=PROGRAMS, **more)


class Logs:
    """What the programs of a stack have written since the mark."""

    def __init__(self, stack):
        self.processes = [node.process for node in stack.nodes] + [stack.origin_process]
        self.marks = {}
        self.mark()

    def mark(self):
        self.marks = {process.log: len(process.log_text()) for process in self.processes}

    def lines(self):
        for process in self.processes:
            for line in process.log_text()[self.marks[process.log]:].splitlines():
                yield process.name, line

    def errors(self):
        for name, line in self.lines():
            if any(word in line for word in SANITIZER_WORDS):
                yield f"{name}: {line}"
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and entry.get("level") == "error":
                yield f"{name}: {line}"

    def wait_error(self, words, seconds=10):
        """Of an outage that has to be told."""
        return wait_until(lambda: [line for line in self.errors() if words in line], seconds,
                          f"an error line with {words!r}")


def check_after(shop, logs, expected_errors=()):
    """What must be true after every test."""
    stack = shop.stack
    shop.close()
    errors = [line for line in logs.errors() if not any(word in line for word in expected_errors)]
    assert not errors, "\n".join(errors)
    if not stack.origin_process.is_alive() or not stack.postgres.process.is_alive():
        return
    wait_until(stack.origin.is_ready, 15, "the origin ready")
    invariant = shop.invariant()
    assert invariant["ok"] and not invariant["violations"], json.dumps(invariant)
    assert stack.origin.metrics().value("sluice_invariant_violations") == 0
    if stack.gateway.is_alive():
        wait_until(lambda: stack.metrics().value("sluice_connections") == 0, 15,
                   "the connections gauge at zero")


@pytest.fixture
def expected_errors():
    """Words of log lines that a test provokes on purpose: append to it."""
    return []


@pytest.fixture(scope="session")
def shared_stack():
    stack = make_stack(options=MANY_SALES)
    try:
        Shop(stack.start()).wait_open_line()
        yield stack
    finally:
        stack.stop()
    codes = {process.name: process.child.returncode for process in stack.processes()}
    assert set(codes.values()) == {0}, str(codes)
    shutil.rmtree(stack.folder)


@pytest.fixture
def shop(shared_stack, expected_errors):
    shop, logs = Shop(shared_stack), Logs(shared_stack)
    yield shop
    check_after(shop, logs, expected_errors)


@pytest.fixture(scope="session")
def postgres():
    """One server for all stacks that do not stop it; each has its own database."""
    os.makedirs(RUNS, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="postgres-", dir=RUNS)
    lender = Stack(folder, nodes=0, build=PROGRAMS, postgres=Postgres(folder, max_connections=300))
    try:
        lender.start_lender()
        yield lender.postgres
    finally:
        lender.stop()
        shutil.rmtree(folder)


@pytest.fixture
def make_shop(request, expected_errors):
    """Makes shops on stacks of their own: make_shop(options={"gateway": {…}}).
    `lone`: with a PostgreSQL of its own too, that the test may stop."""
    made = []

    def make(start=True, lone=False, **more):
        if not lone:
            name = f"t{uuid.uuid4().hex}"
            more["postgres"] = request.getfixturevalue("postgres").with_database(name)
        stack = make_stack(**more)
        shop = Shop(stack)
        made.append(shop)
        if start:
            stack.start()
            shop.wait_open_line()
        shop.logs = Logs(stack)
        return shop

    try:
        yield make
        for shop in made:
            check_after(shop, shop.logs, expected_errors)
            shop.stack.stop()
            shutil.rmtree(shop.stack.folder)
    finally:
        for shop in made:
            shop.close()
            shop.stack.stop()


@pytest.fixture
def own_shop(make_shop):
    return make_shop()


@pytest.fixture
def lone_shop(make_shop):
    return make_shop(lone=True)
