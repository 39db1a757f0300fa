"""Faults behind the origin: lost connections, locks, deadlocks, broken rules."""
import concurrent.futures
import contextlib
import http.client
import re
import threading
import time

import psycopg2
import pytest

from one_origin import assert_problem
from run import config
from run.process import Failed, wait_until


def connections(origin):
    return origin.metric("sluice_pool_connections")


@contextlib.contextmanager
def buyers_at_work(origin, item, answers, count=6):
    """Buyers who hold one unit after another while the test does its harm. An
    answer is None where there was none."""
    stop = threading.Event()

    def buyer(number):
        round_ = 0
        while not stop.is_set():
            round_ += 1
            name, key = f"b{number}", f"k{round_}"
            try:
                answer = origin.reserve(item, name, key=key)
            except (OSError, http.client.HTTPException):
                answer = None
                stop.wait(0.05)
            answers.append((name, key, answer))
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        workers = [pool.submit(buyer, number) for number in range(count)]
        try:
            yield
        finally:
            stop.set()
        for worker in workers:
            worker.result()


def assert_nothing_acknowledged_is_lost(origin, item, answers):
    """Each key repeated gives the one true answer; then every key has its hold."""
    assert {answer.status for _, _, answer in answers if answer} <= {201, 503}
    assert any(answer and answer.status == 201 for _, _, answer in answers)
    for name, key, answer in answers:
        again = origin.reserve(item, name, key=key)
        if answer and answer.status == 201:
            assert (again.status, again.json) == (200, answer.json)
        else:
            assert again.status in (200, 201), again
    assert origin.stock(item)["held"] == len(answers)
    assert origin.invariant()["ok"]


def test_backends_killed_under_load_lose_nothing_acknowledged(make_origin):
    origin = make_origin(database={"connections": 8})
    item, answers = origin.item(100000), []
    with buyers_at_work(origin, item, answers):
        for _ in range(15):
            seen = len(answers)
            wait_until(lambda: len(answers) > seen + 5, 10, "buyers are at work")
            origin.sql("select pg_terminate_backend(pid) from pg_stat_activity "
                       "where application_name like 'sluice-origin stock' "
                       "and datname = current_database() limit 3")
    wait_until(lambda: connections(origin) == 8, 5, "all connections back")
    assert_nothing_acknowledged_is_lost(origin, item, answers)


def test_a_killed_database_loses_nothing_acknowledged(make_origin):
    origin = make_origin(server=True)
    item, answers = origin.item(100000), []

    def comes_up():
        try:
            origin.stack.postgres.start()
        except Failed:  # its last backends still hold the shared memory
            return False
        return True
    with buyers_at_work(origin, item, answers):
        wait_until(lambda: len(answers) > 60, 20, "buyers are at work")
        origin.stack.postgres.process.kill9()
        wait_until(comes_up, 30, "the database recovers")
        wait_until(origin.api.is_ready, 10, "ready again")
        seen = len(answers)
        wait_until(lambda: len(answers) > seen + 30, 20, "buyers go on")
    assert_nothing_acknowledged_is_lost(origin, item, answers)


def test_a_killed_origin_loses_nothing_acknowledged(make_origin):
    origin = make_origin()
    item, answers = origin.item(100000), []
    with buyers_at_work(origin, item, answers):
        for _ in range(3):
            seen = len(answers)
            wait_until(lambda: len(answers) > seen + 30, 20, "buyers are at work")
            origin.stack.origin_process.kill9()
            origin.stack.restart_origin()
    assert_nothing_acknowledged_is_lost(origin, item, answers)


def test_database_stopped_and_started(make_origin):
    origin = make_origin(server=True)
    item = origin.item(5)
    hold = origin.hold(item, buyer="ann", key="k")
    origin.stop_database()
    assert_problem(origin.reserve(item), 503, "paused")
    assert origin.api.get("/readyz").status == 503 and origin.api.get("/healthz").status == 200
    wait_until(lambda: origin.metric("sluice_pool_drops_total") > 24, 10, "three rounds of tries")
    away = [line for line in origin.errors() if "cannot be reached" in line["event"]]
    assert len(away) == 1, origin.errors()
    origin.stack.postgres.start()
    began = time.monotonic()
    wait_until(origin.api.is_ready, 5, "ready again")
    assert time.monotonic() - began < 3
    assert origin.reserve(item, "ann", key="k").json["hold"] == hold


def test_started_before_its_database_and_before_its_schema(make_origin):
    origin = make_origin(start=False, server=True)
    origin.stack.write_origin_file()
    origin.stack.postgres.create()
    origin.stack.restart_origin(wait=False)
    wait_until(lambda: origin.errors(), 5, "a line about the database")
    assert_problem(origin.api.get("/readyz"), 503, "unavailable")
    origin.stack.postgres.start()
    role = re.match(r"postgresql://(\w+):(\w+)@", config.serving(origin.url))
    origin.sql(f"create role {role[1]} login password '{role[2]}'")
    wait_until(lambda: any("--init" in line["event"] for line in origin.errors()), 5,
               "a line about the schema")
    assert_problem(origin.api.get("/v1/sales"), 503, "paused")
    origin.stack.init_database()
    wait_until(origin.api.is_ready, 5, "ready")
    assert len(origin.errors()) == 2, origin.errors()


def test_a_lock_that_takes_too_long_is_503_and_the_key_stays_good(make_origin):
    origin = make_origin(database={"lock_timeout": "300ms"})
    item = origin.item(5)
    with origin.database() as cursor:
        cursor.execute("begin; select 1 from sluice.item where item = %s for update", (item,))
        began = time.monotonic()
        answer = origin.reserve(item, "ann", key="k")
        assert_problem(answer, 503, "paused")
        assert answer.headers["retry-after"] and 0.2 < time.monotonic() - began < 1.5
        assert origin.metric("sluice_query_retries_total") == 0
        cursor.execute("rollback")
    assert origin.reserve(item, "ann", key="k").status == 201
    assert origin.stock(item)["held"] == 1


def test_another_item_goes_on_while_one_is_locked(make_origin):
    """Locked rows of one item fill a pipeline; the others have theirs."""
    origin = make_origin(database={"lock_timeout": "1s"})
    item, other = origin.item(5), origin.item(500)
    with origin.database() as cursor:
        cursor.execute("begin; select 1 from sluice.item where item = %s for update", (item,))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            stuck = pool.submit(origin.reserve, item)
            time.sleep(0.1)
            assert origin.reserve(other).status in (201, 503)
            assert stuck.result().status == 503
        cursor.execute("rollback")
    assert origin.reserve(item).status == 201


def test_a_commit_that_fails_behind_its_rows_is_no_success(make_origin):
    origin = make_origin()
    item = origin.item(5)
    origin.sql("create function pg_temp.refuse() returns trigger language plpgsql as $$ begin "
               "raise exception 'not today' using errcode = '53100'; end $$")
    origin.sql("create constraint trigger refuse after insert on sluice.hold "
               "deferrable initially deferred for each row execute function pg_temp.refuse()")
    assert_problem(origin.reserve(item, "ann", key="k"), 503, "paused")
    origin.sql("drop trigger refuse on sluice.hold")
    assert origin.stock(item)["held"] == 0
    assert origin.reserve(item, "ann", key="k").status == 201


def test_a_deadlock_is_tried_again(make_origin):
    origin = make_origin(database={"lock_timeout": "4s", "statement_timeout": "5s"})
    first, second = sorted((origin.item(5), origin.item(5)))
    with origin.database() as cursor:
        cursor.execute("begin; select 1 from sluice.item where item = %s for update", (second,))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            order = pool.submit(origin.order, [(first, 1), (second, 1)])
            wait_until(lambda: origin.sql("select 1 from pg_stat_activity where wait_event_type = 'Lock' "
                                          "and datname = current_database()"), 5,
                       "the order waits for the second item")
            cursor.execute("select 1 from sluice.item where item = %s for update", (first,))
            cursor.execute("rollback")
            assert order.result().status == 201
    assert origin.metric("sluice_query_retries_total") >= 1
    assert origin.invariant()["ok"]


def test_a_broken_rule_pauses_the_item(make_origin):
    origin = make_origin()
    item = origin.item(5)
    sale = origin.sale(item)
    hold = origin.hold(item)
    origin.sql("update sluice.item set held = 0, available = 5 where item = %s", item)
    assert_problem(origin.step(hold, "release"), 503, "paused")
    wait_until(lambda: origin.read_sale(sale)["state"] == "paused", 5, "paused")
    assert_problem(origin.reserve(item, sale=sale), 503, "paused")
    assert origin.reserve(origin.item(1)).status == 201
    verdict = origin.invariant()
    assert verdict["ok"] is False and verdict["violations"]
    assert origin.metric("sluice_invariant_violations") > 0
    assert any("violated" in line["event"] for line in origin.errors())
    origin.sql("update sluice.item set held = 1, available = 4 where item = %s", item)
    assert origin.operate(sale, "resume").json["changed"] is True
    assert origin.reserve(item, sale=sale).status == 201 and origin.invariant()["ok"]


def test_the_journal_is_append_only(origin):
    origin.hold(origin.item(3))
    for text in ("update sluice.journal set qty = 7", "delete from sluice.journal",
                 "truncate sluice.journal"):
        with pytest.raises(psycopg2.Error, match="append only"):
            origin.sql(text)
    origin.sql("update sluice.journal set relayed_at = now() where relayed_at is null")
    with pytest.raises(psycopg2.Error, match="append only"):
        origin.sql("update sluice.journal set relayed_at = null")


@pytest.mark.parametrize("change", [
    "available = available - 6", "held = held + 1", "sold = -1, available = available + 1",
    "shipped = 1", "total = total + 1", "held = -1, sold = 1"])
def test_the_schema_refuses_impossible_numbers(origin, change):
    item = origin.item(5)
    with pytest.raises(psycopg2.errors.CheckViolation):
        origin.sql(f"update sluice.item set {change} where item = %s", item)


def test_init_again_and_at_once_changes_nothing(make_origin):
    origin = make_origin()
    item = origin.item(5)
    hold = origin.hold(item)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: origin.stack.init_database(), range(4)))
    assert origin.read_hold(hold)["state"] == "held"
    assert origin.reserve(item).status == 201
    assert origin.invariant()["ok"]


def test_init_refuses_a_newer_schema(make_origin):
    origin = make_origin()
    origin.sql("insert into sluice.schema_version (version) values (999)")
    with pytest.raises(Exception, match="newer"):
        origin.stack.init_database()


def test_queries_say_what_they_are_for(origin):
    origin.hold(origin.item(2))
    rows = origin.sql("select application_name, query from pg_stat_activity "
                      "where application_name like 'sluice-origin%%' "
                      "and datname = current_database()")
    assert len(rows) == 8 and all(query.startswith("/* sluice ") for _, query in rows), rows
    assert {name for name, _ in rows} == {"sluice-origin stock", "sluice-origin sales",
                                          "sluice-origin scan"}
    assert origin.metric("sluice_pool_held_seconds_total", tag="reserve") > 0
    assert origin.metric("sluice_pool_held_seconds_bucket", tag="reserve", le="+Inf"
                         ) == origin.metric("sluice_queries_total", tag="reserve") > 0


def test_isolation_is_ours_whatever_the_server_says(make_origin):
    origin = make_origin()
    name, = origin.sql("select current_database()")[0]
    origin.sql(f"alter database {name} set default_transaction_isolation = 'serializable'")
    origin.stack.origin_process.end()
    origin.stack.restart_origin()
    item = origin.item(30)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: origin.reserve(item), range(30)))
    assert {answer.status for answer in answers} == {201}
    assert origin.metric("sluice_query_retries_total") == 0


@pytest.mark.parametrize("connections, depth", [(1, 1), (2, 1), (3, 2), (4, 256)])
def test_any_pool_does_everything(make_origin, connections, depth):
    origin = make_origin(database={"connections": connections, "pipeline_depth": depth,
                                   "statement_timeout": "30s"})
    items = [origin.item(30) for _ in range(3)]
    sale = origin.sale(items[0], per_account=9)

    def one(number):
        if number % 10 == 9:
            return (origin.snapshot() if number % 20 == 9 else origin.api.get("/v1/invariant"))
        return origin.reserve(items[number % 3], sale=sale if number % 3 == 0 else None)
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(one, range(90)))
    assert {answer.status for answer in answers} == {200, 201}
    assert sum(origin.stock(item)["held"] for item in items) == 81
    assert origin.metric("sluice_pool_waiting") == 0


def test_more_than_may_wait_is_503_and_nothing_is_held(make_origin):
    origin = make_origin(database={"connections": 3, "pipeline_depth": 1, "max_waiting": 2,
                                   "lock_timeout": "1s"}, reserve={"batch_max": 1})
    item = origin.item(100)
    with origin.database() as cursor:
        cursor.execute("begin; select 1 from sluice.item where item = %s for update", (item,))
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _: origin.reserve(item), range(20)))
        cursor.execute("rollback")
    assert {answer.status for answer in answers} == {503}
    assert origin.metric("sluice_query_refused_total") >= 10
    assert origin.stock(item)["held"] == 0 and origin.reserve(item).status == 201
