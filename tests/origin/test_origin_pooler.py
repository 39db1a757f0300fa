"""The origin behind PgBouncer in transaction mode: nothing stays in a session."""
import concurrent.futures

import pytest

from bouncer import Bouncer
from one_origin import assert_problem
from test_origin_database import assert_nothing_acknowledged_is_lost, buyers_at_work
from run.process import wait_until


@pytest.fixture
def pooled(shared_origin, make_origin):
    """On three server connections that are taken in turn, in a database whose own
    isolation is not ours."""
    bouncer = Bouncer(shared_origin.stack.postgres).start()
    origin = make_origin(start=False, database={"pooler": True})
    name = origin.url.rpartition("/")[2]
    shared_origin.stack.postgres.tell(
        f"alter database {name} set default_transaction_isolation = 'serializable'")
    origin.stack.database_url = bouncer.url_of(origin.url)
    try:
        origin.bouncer = bouncer
        yield origin.start()
        assert origin.invariant()["ok"]
        assert {line["event"] for line in origin.errors()} <= {
            "cannot be reached; trying again until it can"}
    finally:
        origin.stop()
        bouncer.stop()


def backends(origin):
    return origin.sql("select count(*) from pg_stat_activity where datname = current_database() "
                      "and pid <> pg_backend_pid() and backend_type = 'client backend'")[0][0]


def test_the_whole_life_of_holds_behind_a_pooler(pooled):
    item, other = pooled.item(6), pooled.item(5)
    sale = pooled.sale(item, per_account=3)
    hold = pooled.hold(item, buyer="ann", key="k", sale=sale)
    again = pooled.reserve(item, "ann", key="k", sale=sale)
    assert (again.status, again.json["hold"]) == (200, hold)
    assert pooled.step(hold, "extend").json["extended"] is True
    assert pooled.confirm(hold).json["state"] == "sold"
    assert pooled.step(hold, "ship").json["state"] == "shipped"
    assert_problem(pooled.step(hold, "cancel"), 409, "already_sold")
    assert pooled.order([(item, 2), (other, 5)], "ann", sale=sale).status == 201
    assert_problem(pooled.order([(item, 1), (other, 1)], "bob", sale=sale), 409, "all_held")
    assert_problem(pooled.reserve(item, "ann", sale=sale), 403, "buyer_limit")
    late = pooled.hold(item, buyer="cid", sale=sale)
    pooled.end_holds_of(item)
    wait_until(lambda: pooled.read_hold(late)["state"] == "expired", 20, "expired")
    assert pooled.confirm(late).status == 201
    events = pooled.api.get(f"/v1/holds/{hold}/events").json
    assert [event["to"] for event in events] == ["held", "held", "sold", "shipped"]
    rows = {row["item"]: row["available"] for row in pooled.snapshot().json["items"]}
    assert rows[item] == pooled.stock(item)["available"] == 4
    assert pooled.operate(sale, "pause", {"hard": True}).json["changed"] is True
    assert backends(pooled) <= 4  # three, and this test's


def test_a_race_behind_a_pooler(pooled):
    """Our level, our time limits, and no open transaction behind a refusal."""
    item = pooled.item(20)
    sale = pooled.sale(item)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: pooled.reserve(item, f"b{n % 30}", sale=sale), range(60)))
    held = [answer.json["hold"] for answer in answers if answer.status == 201]
    assert len(held) == 20 and pooled.stock(item)["held"] == 20
    assert {answer.json["code"] for answer in answers if answer.status != 201} <= {
        "all_held", "buyer_limit"}
    # A refusal that raises leaves its transaction to be rolled back.
    assert_problem(pooled.api.put(f"/v1/tenants/shop/items/{item}", {"total": 1}), 409, "conflict")
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        paid = list(pool.map(pooled.confirm, held))
    assert {answer.status for answer in paid} == {200} and pooled.stock(item)["sold"] == 20
    assert pooled.errors() == [] and pooled.metric("sluice_query_retries_total") == 0  # of serialization failures
    assert pooled.sql("select count(*) from pg_stat_activity where datname = current_database() "
                      "and state like 'idle in transaction%%'")[0][0] == 0


def test_a_lock_behind_a_pooler_takes_no_longer_than_ours_may(pooled):
    item = pooled.item(5)
    with pooled.database() as cursor:
        cursor.execute("begin; select 1 from sluice.item where item = %s for update", (item,))
        assert_problem(pooled.reserve(item, "ann", key="k"), 503, "paused")
        cursor.execute("rollback")
    assert pooled.reserve(item, "ann", key="k").status == 201
    pooled.sql("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
               "and datname = current_database()")
    wait_until(lambda: pooled.reserve(item, "bob", key="k").status in (200, 201), 20, "sold again")


def test_a_killed_pooler_loses_nothing_acknowledged(pooled):
    item, answers = pooled.item(100000), []
    with buyers_at_work(pooled, item, answers):
        for _ in range(2):
            seen = len(answers)
            wait_until(lambda: len(answers) > seen + 30, 20, "buyers are at work")
            pooled.bouncer.process.kill9()
            pooled.bouncer.start()
            wait_until(pooled.api.is_ready, 20, "ready again")
    assert_nothing_acknowledged_is_lost(pooled, item, answers)
