"""The invariant by the clock, the journal played again, and what a violated rule does."""
import json

import pytest

from one_origin import assert_problem
from run.process import wait_until

FAST = {"invariant": {"interval": "50ms"}, "expiry": {"interval": "50ms"}}


@pytest.fixture
def damaged(origin):
    """damaged(sql, …): what the invariant says of a damage that nobody else sees."""
    hold = origin.hold(origin.item(7), buyer="ann")
    origin.confirm(hold)

    def look(statement):
        with origin.database() as cursor:
            cursor.execute("begin; set local session_replication_role = replica;"
                           " set local sluice.prefix = 'a'; set local sluice.timeline = '1'")
            cursor.execute(statement.replace("HOLD", f"'{hold[-32:]}'::uuid"))
            assert cursor.rowcount == 1, statement
            cursor.execute("select sluice_api.invariant()")
            verdict = json.loads(cursor.fetchone()[0])
            cursor.execute("rollback")
        assert verdict["ok"] is False
        return {violation["rule"] for violation in verdict["violations"]}
    return look


@pytest.mark.parametrize("statement, rule", [
    ("delete from sluice.journal where hold = HOLD and to_state = 'held'",
     "each event of a hold follows from the one before"),
    ("update sluice.journal set from_state = 'held', to_state = 'released' "
     "where hold = HOLD and to_state = 'sold'", "sold is the sum of the journal"),
    ("update sluice.journal set to_state = 'shipped' where hold = HOLD and to_state = 'sold'",
     "shipped is the sum of the journal"),
    ("update sluice.journal set from_state = null where hold = HOLD and to_state = 'sold'",
     "each event of a hold follows from the one before"),
    ("update sluice.hold set qty = 2 where id = HOLD", "the journal ends in the state of the hold"),
    ("update sluice.hold set state = 'cancelled' where id = HOLD",
     "the journal ends in the state of the hold"),
    ("delete from sluice.hold where id = HOLD", "the journal ends in the state of the hold"),
    ("delete from sluice.item i using sluice.hold h where h.id = HOLD and h.item = i.item",
     "total is the sum of the journal"),
    ("update sluice.item i set total = 8, available = 7 from sluice.hold h "
     "where h.id = HOLD and h.item = i.item", "total is the sum of the journal"),
    ("update sluice.item i set sold = 2, available = 5 from sluice.hold h "
     "where h.id = HOLD and h.item = i.item", "sold is the sum of holds"),
])
def test_the_journal_played_again_shows_the_damage(damaged, statement, rule):
    assert rule in damaged(statement)


def test_one_looks_for_all(origin):
    """Whoever asks first has the turn; the others are told what was found."""
    with origin.database() as cursor:
        cursor.execute("begin; update sluice.duty set until = now() where name = 'invariant'")
        turn = "select mine, wrong, took_ms, age_ms is not null from sluice_api.look_turn(60000, %s)"
        answers = []
        for may in (False, True, True):
            cursor.execute(turn, (may,))
            answers.append(cursor.fetchone()[0])
        assert answers == [False, True, False]
        cursor.execute("select sluice_api.look_done(3, 17, 60000)")
        cursor.execute(turn, (True,))
        assert cursor.fetchone() == (False, 3, 17, True)
        cursor.execute("select sluice_api.look_done(null, null, 60000)")
        cursor.execute(turn, (True,))
        assert cursor.fetchone() == (False, 3, 17, True)
        cursor.execute("rollback")


def test_by_the_clock_damage_is_seen_and_told(make_origin):
    origin = make_origin(**FAST)
    hold = origin.hold(origin.item(5))
    wait_until(lambda: origin.metric("sluice_invariant_looks_total") >= 2, 10, "two looks")
    assert origin.metric("sluice_invariant_violations") == 0 and not origin.errors()
    assert origin.metric("sluice_journal_unprotected") == 0
    origin.sql("update sluice.hold set qty = 2 where id = %s", hold[-32:])
    wait_until(lambda: origin.metric("sluice_invariant_violations") > 0, 10, "damage in the metrics")
    wait_until(origin.errors, 10, "an error line")
    assert "the invariant does not hold" in origin.errors()[0]["event"]
    assert hold in origin.errors()[0]["first"] or "sum of holds" in origin.errors()[0]["first"]
    origin.sql("update sluice.hold set qty = 1 where id = %s", hold[-32:])
    wait_until(lambda: origin.metric("sluice_invariant_violations") == 0, 10, "all is well again")
    assert origin.metric("sluice_invariant_failures_total") == 0


def test_a_violated_rule_pauses_its_item_until_an_operator_resumes(make_origin):
    """Met by a payment, and by the expiry worker in a batch with others; it lasts over a
    restart, and others go on."""
    origin = make_origin(**FAST)
    item, due, sound = origin.item(5), origin.item(5), origin.item(5)
    sale, hold, lost = origin.sale(item), origin.hold(item), origin.hold(sound)
    for _ in range(2):
        origin.hold(due)
    origin.sql("update sluice.item set held = 0, available = 5 where item = %s", item)
    assert_problem(origin.confirm(hold), 503, "paused")
    wait_until(lambda: origin.stock(item)["paused"] == "item_held_not_negative", 10, "paused")
    assert any(line["event"] == "a violated rule pauses the item" and line["item"] == item
               and line["rule"] == "item_held_not_negative" for line in origin.errors())
    assert origin.metric("sluice_check_violations_total") == 1
    origin.sql("update sluice.item set held = 1, available = 4 where item = %s", due)
    origin.sql("update sluice.hold set expires_at = clock_timestamp() where item = any (%s)",
               [due, sound])
    wait_until(lambda: origin.stock(due)["paused"], 10, "the worker pauses")
    wait_until(lambda: origin.sql("select state from sluice.hold where id = %s", lost[-32:])
               == [("expired",)], 10, "the others expire")
    wait_until(lambda: origin.metric("sluice_items_paused") == 2, 10, "the gauge")
    origin.stack.origin_process.kill9()
    origin.stack.restart_origin()
    assert_problem(origin.reserve(item, sale=sale), 503, "paused")
    assert_problem(origin.order([(sound, 1), (due, 1)]), 503, "paused")
    assert origin.reserve(sound).status == 201
    origin.sql("update sluice.item set held = 1, available = 4 where item = %s", item)
    origin.sql("update sluice.item set held = 2, available = 3 where item = %s", due)
    assert origin.operate(sale, "resume").json["changed"] is True
    assert origin.operate(origin.sale(due), "resume").json["changed"] is True
    assert origin.confirm(hold).status == 200 and origin.reserve(item).status == 201
    wait_until(lambda: origin.metric("sluice_items_paused") == 0, 10, "the gauge")
    wait_until(lambda: origin.stock(due)["held"] == 0, 10, "the worker takes it up again")
    assert origin.invariant()["ok"]


def test_a_role_that_could_change_the_journal_is_told(make_origin):
    origin = make_origin(start=False, **FAST)
    origin.stack.options["origin"]["database"] = {"url": origin.url}
    origin.stack.write_origin_file()
    origin.stack.init_file = origin.stack.origin_file
    origin.stack.init_database()
    origin.stack.restart_origin()
    wait_until(lambda: origin.metric("sluice_journal_unprotected") == 1, 10, "the gauge")
    told = [line for line in origin.log() if "may change the journal" in line["event"]]
    assert [line["level"] for line in told] == ["warn"]
