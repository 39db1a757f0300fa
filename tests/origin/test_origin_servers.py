"""Several servers: which is the primary, and what becomes of the one that was."""
import re

import pytest

from one_origin import Origin, assert_problem
from run.process import free_port, wait_until
from run.stack import ROOT


def test_the_table_of_the_docs_is_that_of_the_code():
    with open(f"{ROOT}/origin/fault.h") as header, open(f"{ROOT}/docs/origin.md") as docs:
        code = re.findall(r'X\("(\w*)", (\w+), (\w+), (\d+), \w+\)', header.read())
        told = re.findall(r"^\| (?:`(\w+)`|others) \|.*\| `(\w+)` \| (\w+) \| (\d+) \|$",
                          docs.read(), re.M)
    assert [(state, outcome, session.upper(), tries) for state, outcome, session, tries in told
            ] == code and len(code) > 10


def test_a_server_that_is_not_there_is_passed_by(origin, make_origin):
    server = origin.stack.postgres
    other = make_origin(start=False)
    other.url = other.stack.database_url = re.sub(
        r"@[^/]*/", f"@127.0.0.1:{free_port()},127.0.0.1:{server.port},127.0.0.1:{free_port()}/",
        other.url)
    other.start()
    wait_until(lambda: other.metric("sluice_pool_connections") == 8, 20, "all connections")
    assert other.reserve(other.item(1)).status == 201
    assert other.errors() == []


@pytest.fixture
def pair():
    """An origin on a primary with a standby behind it."""
    origin = Origin(expiry={"enabled": False})  # which writes by itself
    try:
        origin.stack.start_postgres()
        origin.stack.start_standby()
        origin.start()
        yield origin
    finally:
        origin.stop()
    assert origin.stack.origin_process.child.returncode == 0


def test_a_primary_that_takes_no_writes_is_left_for_the_promoted_standby(pair):
    primary, standby = pair.stack.postgres, pair.stack.standby
    item = pair.item(10)
    sale = pair.sale(item)
    hold = pair.hold(item, buyer="ann", key="k", sale=sale)
    before = pair.snapshot()
    assert [row["version"] for row in before.json["items"]] == [pair.stock(item)["version"]]
    timeline = int(pair.stock(item)["version"].split(".")[0])

    # Nobody writes; the server itself says so, and it is left with all connections.
    primary.tell("alter system set default_transaction_read_only = on", "select pg_reload_conf()")
    wait_until(lambda: pair.snapshot().status == 503, 10, "the old primary was left")
    assert_problem(pair.reserve(item, "ann", key="k"), 503, "paused")
    standby.promote()
    wait_until(pair.api.is_ready, 20, "serving again")

    again = pair.reserve(item, "ann", key="k", sale=sale)
    assert (again.status, again.json["hold"]) == (200, hold)
    assert pair.reserve(item, "bob", sale=sale).status == 201
    assert int(pair.stock(item)["version"].split(".")[0]) > timeline
    assert pair.metric("sluice_pool_servers_left_total") >= 1
    assert pair.metric("sluice_query_unknown_total") == 0
    assert [line["event"] for line in pair.errors()] == [
        "cannot be reached; trying again until it can"]
    assert pair.invariant()["ok"]
