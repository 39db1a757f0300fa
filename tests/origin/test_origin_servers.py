"""Several servers: which is the primary, and what becomes of the one that was."""
import re
import shutil

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
    other = make_origin(start=False, database={"connections": 2})
    other.url = other.stack.database_url = re.sub(
        r"@[^/]*/", f"@127.0.0.1:{free_port()},127.0.0.1:{server.port},127.0.0.1:{free_port()}/",
        other.url)
    other.start()
    wait_until(lambda: other.metric("sluice_pool_connections") == 2, 20, "all connections")
    assert other.reserve(other.item(1)).status == 201
    assert other.errors() == []


@pytest.fixture(scope="module")
def pair():
    """An origin on a primary with a standby behind it, which it reads from; for the
    tests below, in their order."""
    # Expiry writes by itself; a look at the invariant only reads.
    origin = Origin(expiry={"enabled": False}, invariant={"interval": "500ms"})
    try:
        origin.stack.start_postgres()
        origin.stack.start_standby(synchronous=False)
        origin.stack.options["origin"]["database"] = {"read_url": origin.stack.standby.url}
        origin.stack.start_origin()
        yield origin
    finally:
        origin.stop()
    shutil.rmtree(origin.stack.folder)
    assert origin.stack.origin_process.child.returncode == 0


def answered(pair, at):
    return pair.metric("sluice_reads_total", at=at)


def told(pair, item):
    """By a snapshot."""
    return next(row["version"] for row in pair.snapshot().json["items"] if row["item"] == item)


def by_number(version):
    return [int(part) for part in version.split(".")]


def read_from_standby(pair):
    """Waits until it is: after a refusal it has a rest."""
    seen = answered(pair, "standby")
    wait_until(lambda: pair.snapshot().status == 200 and answered(pair, "standby") > seen, 20,
               "the standby answers")


def asked(standby):
    """The last question of each connection to it."""
    return standby.tell("select string_agg(distinct query, ' ') from pg_stat_activity "
                        "where application_name like 'sluice-origin read%'")


def test_a_look_by_the_clock_goes_to_the_standby(pair):
    """Nobody has asked for the invariant."""
    wait_until(lambda: "/* sluice invariant */" in asked(pair.stack.standby), 30, "a look there")
    wait_until(lambda: pair.metric("sluice_invariant_looks_total") >= 1, 30, "it was answered")


def test_a_standby_answers_and_versions_never_go_back(pair):
    standby, item = pair.stack.standby, pair.item(100)
    sale, versions = pair.sale(item), []
    read_from_standby(pair)
    for number in range(20):
        hold = pair.hold(item, sale=sale)
        versions += [pair.stock(item)["version"], told(pair, item)]
        assert [row["to"] for row in pair.api.get(f"/v1/holds/{hold}/events").json] == ["held"]
    assert pair.invariant()["ok"]
    read_from_standby(pair)
    wait_until(lambda: pair.snapshot() and "/* sluice snapshot */" in asked(standby), 20, "a snapshot")

    # It lags: from now on the primary answers, and nothing is missed.
    standby.tell("select pg_wal_replay_pause()")
    wait_until(lambda: standby.tell("select pg_get_wal_replay_pause_state()") == "paused", 20,
               "the standby stands still")
    pair.hold(item, sale=sale)
    versions += [pair.stock(item)["version"], told(pair, item)]
    wait_until(lambda: pair.snapshot() and pair.metric("sluice_read_fallbacks_total", why="behind"),
               20, "asked in vain")
    standby.tell("select pg_wal_replay_resume()")
    read_from_standby(pair)
    versions += [told(pair, item)]

    # It is gone.
    standby.process.end()
    pair.hold(item, sale=sale)
    versions += [pair.stock(item)["version"], told(pair, item)]
    assert pair.invariant()["ok"]
    wait_until(lambda: pair.snapshot() and pair.metric("sluice_read_fallbacks_total", why="away"),
               20, "the loss was seen")
    standby.start()
    read_from_standby(pair)
    versions += [told(pair, item)]
    assert versions == sorted(versions, key=by_number)
    assert all(versions[i] == versions[i + 1] for i in range(0, 42, 2)), versions
    assert pair.errors() == []


def test_a_primary_that_takes_no_writes_is_left_for_the_promoted_standby(pair):
    primary, standby = pair.stack.postgres, pair.stack.standby
    item = pair.item(10)
    sale = pair.sale(item)
    hold = pair.hold(item, buyer="ann", key="k", sale=sale)
    assert told(pair, item) == pair.stock(item)["version"]
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
    read_from_standby(pair)  # which it is no more
    assert told(pair, item) == pair.stock(item)["version"]
    assert pair.metric("sluice_pool_servers_left_total") >= 1
    assert [line["event"] for line in pair.errors()] == [
        "cannot be reached; trying again until it can"]
    assert pair.invariant()["ok"]
