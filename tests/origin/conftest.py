"""Origins for tests: one shared by all, and one of a test's own."""
import shutil

import pytest

from one_origin import Origin
from run.process import wait_until


def ended(origin):
    child = origin.stack.origin_process.child
    assert child is None or child.returncode == 0, origin.stack.origin_process.log_tail()
    shutil.rmtree(origin.stack.folder)


@pytest.fixture(scope="session")
def shared_origin():
    origin = Origin()
    try:
        origin.stack.start_lender()
        origin.stack.start_origin()
        yield origin
    finally:
        origin.stop()
    ended(origin)


@pytest.fixture
def origin(shared_origin):
    before = len(shared_origin.errors())
    yield shared_origin
    assert shared_origin.errors()[before:] == []
    verdict = shared_origin.invariant()
    assert verdict["ok"] and verdict["violations"] == [], verdict
    wait_until(lambda: shared_origin.metric("sluice_exchanges") <= 1, 5, "no request left behind")


@pytest.fixture
def make_origin(shared_origin):
    """Origins of a test's own, each on a database of its own: make_origin(
    database={…}). `server`: on a server of its own, too."""
    made = []

    def make(start=True, server=False, **options):
        lends = None if server else shared_origin.stack.postgres
        # --init makes more for an origin that relays than for others
        origin = Origin(lends, has_schema=start and "relay" not in options, **options)
        made.append(origin)
        return origin.start() if start else origin

    try:
        yield make
    finally:
        for origin in made:
            origin.stop()
    for origin in made:
        ended(origin)
