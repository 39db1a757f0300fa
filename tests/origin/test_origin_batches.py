"""Asks that gather behind a transaction and are decided together by the next one.

The item's row is locked from behind, so that the first ask is under way for as
long as the test likes; what comes meanwhile gathers in a known order."""
import concurrent.futures
import contextlib
import uuid

import pytest

from one_origin import Origin, assert_problem, at_once, statuses
from run.process import wait_until

# With a row locked, two of the connections wait for it.
PATIENT = {"lock_timeout": "60s", "statement_timeout": "60s", "connections": 8}


@pytest.fixture
def patient(make_origin):
    return make_origin(database=PATIENT, expiry={"enabled": False})


@pytest.fixture(scope="module")
def patient_for_many(shared_origin):
    origin = Origin(shared_origin.stack.postgres, database=PATIENT)
    try:
        yield origin.start()
    finally:
        origin.stop()


@pytest.fixture
def crowded(patient_for_many):
    """For crowds: one origin for all of them, with time for a busy machine."""
    yield patient_for_many
    assert patient_for_many.errors() == []
    verdict = patient_for_many.invariant()
    assert verdict["ok"] and verdict["violations"] == [], verdict


class Gathering:
    """Asks for one item, in order; their answers when the row is let go."""

    def __init__(self, origin, item, pool):
        self.origin, self.item, self.pool = origin, item, pool
        self.asked = []

    def ask(self, buyer=None, **more):
        waiting = self.origin.metric("sluice_batch_gathered")
        self.asked.append(self.pool.submit(self.origin.reserve, self.item, buyer, **more))
        wait_until(lambda: self.origin.metric("sluice_batch_gathered") == waiting + 1, 10,
                   "it has gathered")

    def answers(self):
        return [asked.result() for asked in self.asked]


def waits_for(origin, cursor):
    """How many wait for what this connection has locked."""
    return origin.sql("select count(*) from pg_stat_activity where %s = any "
                      "(pg_blocking_pids(pid))", cursor.connection.info.backend_pid)[0][0]


@contextlib.contextmanager
def gathering(origin, item, **first):
    """Locks the row, lets one ask run into it, gives the others to gather; their
    answers are there afterwards."""
    lock = "begin; select 1 from sluice.item where item = %s for update"
    with concurrent.futures.ThreadPoolExecutor(64) as pool, origin.database() as cursor:
        cursor.execute(lock, (item,))
        together = Gathering(origin, item, pool)
        together.cursor = cursor
        together.first = pool.submit(origin.reserve, item, **first)
        wait_until(lambda: waits_for(origin, cursor) == 1, 10, "the first one waits for the row")
        yield together
        cursor.execute("rollback")
        together.first = together.first.result()
        together.answers()


def sizes(origin):
    return (origin.metric("sluice_batch_size_count"), origin.metric("sluice_batch_size_sum"))


def test_a_prefix_in_order_of_arrival_is_granted_by_one_transaction(patient):
    item = patient.item(10)
    with gathering(patient, item) as together:
        for _ in range(15):
            together.ask()
    answers = together.answers()
    assert together.first.status == 201
    assert [answer.status for answer in answers] == 9 * [201] + 6 * [409]
    for answer in answers:
        assert answer.headers["sluice-available"] == "0"
        assert answer.headers["sluice-version"] == answers[0].headers["sluice-version"]
    for answer in answers[9:]:
        assert_problem(answer, 409, "all_held")
        assert answer.json["available"] == 0 and answer.headers["retry-after"]
    assert len({answer.json["hold"] for answer in answers[:9]}) == 9
    assert sizes(patient) == (2, 16)
    assert patient.sql("select count(distinct tx), count(*) from sluice.hold") == [(2, 10)]
    assert patient.sql("select count(*) from sluice.journal where hold is not null") == [(10,)]
    assert patient.invariant()["ok"]


def test_each_hold_of_a_batch_is_what_it_would_be_alone(patient):
    item = patient.item(10)
    sale = patient.sale(item, per_account=3, hold_seconds=77)
    fields = {"qty": 2, "sale": sale, "channel": 'a "b", {c}\\ \u00fc', "order_ref": "NULL",
              "pass_jti": "j-1"}
    alone = patient.reserve(item, "ann", **fields)
    with gathering(patient, item) as together:
        together.ask("bob", key='k "1"\\,{}', **fields)
        together.ask("cat")
    bob = together.answers()[0]
    assert patient.metric("sluice_batch_apart_total") == 0
    differs = ("hold", "buyer", "expires_at", "created_at")
    assert {k: v for k, v in bob.json.items() if k not in differs} == \
        {k: v for k, v in alone.json.items() if k not in differs}
    assert patient.read_hold(bob.json["hold"]) == bob.json
    columns = ("sale, qty, state, extended, line, request, round, pass_jti, channel, order_ref, "
               "replaces, payment_ref, expires_at - created_at")
    rows = patient.sql(f"select {columns} from sluice.hold where buyer in ('ann', 'bob')")
    assert len(rows) == 2 and rows[0] == rows[1]
    again = patient.reserve(item, "bob", key='k "1"\\,{}', **fields)
    assert (again.status, again.json) == (200, bob.json)
    events = [patient.api.get(f"/v1/holds/{answer.json['hold']}/events").json
              for answer in (alone, bob)]
    for event in (*events[0], *events[1]):
        del event["at"], event["seq"]
    assert events[0] == events[1]


def test_what_does_not_fit_is_refused_and_keeps_no_smaller_one_out(patient):
    item = patient.item(11)
    with gathering(patient, item) as together:
        for qty in (4, 4, 4, 2, 1):
            together.ask(qty=qty)
    assert [answer.status for answer in together.answers()] == [201, 201, 409, 201, 409]
    assert {answer.json["code"] for answer in together.answers() if answer.status == 409} \
        == {"all_held"}
    assert patient.stock(item)["available"] == 0 and patient.invariant()["ok"]


def test_a_refusal_tells_what_is_left_behind_the_batch(patient):
    item = patient.item(10)
    with gathering(patient, item) as together:
        for qty in (5, 7, 1):
            together.ask(qty=qty)
    granted, refused, last = together.answers()
    assert (granted.status, last.status) == (201, 201)
    assert_problem(refused, 409, "not_enough")
    assert refused.json["available"] == 3 and refused.headers["sluice-available"] == "3"


def test_one_key_in_one_batch_is_one_hold_and_its_repeats(patient):
    item = patient.item(2)
    with gathering(patient, item) as together:
        for _ in range(3):
            together.ask("ann", key="k")
        together.ask("ann", key="k", qty=2)
        together.ask("bob", key="k")
    first, *repeats, other, late = together.answers()
    assert first.status == 201 and first.headers["idempotent-replayed"] is None
    for repeat in repeats:
        assert (repeat.status, repeat.body) == (200, first.body)
        assert repeat.headers["idempotent-replayed"] == "true"
    assert_problem(other, 422, "idempotency_mismatch")
    assert_problem(late, 409, "all_held")
    assert sizes(patient) == (2, 6) and patient.stock(item)["held"] == 2


def test_a_key_that_got_nothing_is_free_for_the_next_in_the_batch(patient):
    item = patient.item(3)
    with gathering(patient, item) as together:
        together.ask("ann", key="k", qty=5)
        together.ask("ann", key="k", qty=2)
        together.ask("ann", key="k", qty=5)
    refused, held, other = together.answers()
    assert_problem(refused, 409, "all_held")
    assert held.status == 201
    assert_problem(other, 422, "idempotency_mismatch")


def test_known_keys_are_answered_in_a_batch(patient):
    item = patient.item(9)
    known = patient.reserve(item, "ann", key="k")
    with gathering(patient, item) as together:
        together.ask("ann", key="k")
        together.ask("ann", key="k", qty=2)
        together.ask("bob", headers={"Sluice-Replay-Only": "1"})
    again, other, only = together.answers()
    assert (again.status, again.body) == (200, known.body)
    assert_problem(other, 422, "idempotency_mismatch")
    assert_problem(only, 403, "pass_expired")
    assert patient.stock(item)["held"] == 2


def test_one_buyer_in_one_batch_is_counted_one_after_the_other(patient):
    item = patient.item(20)
    sale = patient.sale(item, per_account=3)
    with gathering(patient, item) as together:
        for qty in (2, 2, 1, 1):
            together.ask("ann", qty=qty, sale=sale)
        together.ask("bob", qty=3, sale=sale)
        together.ask("ann")
    two, limit, one, full, bob, beside = together.answers()
    assert [two.status, one.status, bob.status, beside.status] == 4 * [201]
    for refused in (limit, full):
        assert_problem(refused, 403, "buyer_limit")
        assert refused.json["hold"] in (two.json["hold"], one.json["hold"])
    assert sizes(patient) == (2, 7)


def test_the_window_of_each_sale_is_kept_in_a_batch(patient):
    item, other = patient.item(20), patient.item(1)
    sales = {"closed": patient.sale(item, closes_at="2021-01-01T00:00:00Z"),
             "not_open": patient.sale(item, opens_at="2999-01-01T00:00:00Z"),
             "not_found": "no-such-sale", "bad_request": patient.sale(other)}
    hard = patient.sale(item)
    patient.operate(hard, "pause", {"hard": True})
    sales["paused"] = hard
    revoked = patient.sale(item, per_account=2)
    patient.operate(revoked, "revoke", {"account": "eve"})
    alone = {code: patient.reserve(item, "eve", sale=sale) for code, sale in sales.items()}
    alone["pass_revoked"] = patient.reserve(item, "eve", sale=revoked)
    with gathering(patient, item) as together:
        for sale in (*sales.values(), revoked):
            together.ask("eve", sale=sale)
        together.ask("bob", sale=revoked)
    *refused, bob = together.answers()
    assert bob.status == 201
    for code, answer in zip((*sales, "pass_revoked"), refused):
        assert (answer.status, answer.json["code"]) == (alone[code].status, code)
        assert {k: v for k, v in answer.json.items() if k != "available"} == \
            {k: v for k, v in alone[code].json.items() if k != "available"}


def test_refusals_of_an_empty_item_write_nothing(patient):
    item, other = patient.item(1), patient.item(1)
    with gathering(patient, item) as together:
        for _ in range(20):
            together.ask()
    assert statuses(together.answers()) == {409: 20}
    patient.hold(other)
    # Rows that were written and taken out again would have left their places.
    assert patient.sql("select ctid::text from sluice.hold order by ctid") == [("(0,1)",), ("(0,2)",)]
    assert patient.sql("select seq from sluice.journal where hold is not null order by 1") \
        == [(3,), (4,)]
    assert sizes(patient) == (3, 22)


def test_due_holds_are_taken_back_by_a_batch(patient):
    item = patient.item(6)
    for _ in range(5):
        patient.hold(item)
    patient.end_holds_of(item)
    with gathering(patient, item) as together:
        together.ask()
        together.ask()
    assert {answer.headers["sluice-available"] for answer in together.answers()} == {"3"}
    with gathering(patient, item) as together:
        for _ in range(4):
            together.ask()
    assert [answer.status for answer in together.answers()] == 2 * [201] + 2 * [409]
    assert patient.sql("select count(*) from sluice.journal where to_state = 'expired'") == [(5,)]
    assert patient.metric("sluice_hold_expired_total") == 5
    assert patient.invariant()["ok"]


def test_a_due_hold_in_other_hands_keeps_only_who_needs_it(patient):
    item = patient.item(3)
    due = patient.hold(item)
    patient.end_hold_in(due, 0)
    with patient.database() as decider:
        with gathering(patient, item) as together:
            decider.execute("begin; select 1 from sluice.hold where id = %s for update",
                            (due[-32:],))
            for _ in range(3):
                together.ask()
            together.cursor.execute("rollback")
            wait_until(lambda: together.asked[0].done(), 10, "the first of the batch")
            wait_until(lambda: waits_for(patient, decider) == 1, 10, "the second waits for the hold")
            assert not together.asked[1].done()
            decider.execute("rollback")
    assert [answer.status for answer in together.answers()] in ([201, 201, 409], [201, 409, 201])
    assert patient.metric("sluice_batch_again_total") >= 1
    assert patient.invariant()["ok"]


def test_a_buyer_whose_turn_is_taken_keeps_nobody_else(patient):
    item = patient.item(9)
    sale = patient.sale(item)
    with patient.database() as other:
        other.execute("begin; select pg_advisory_xact_lock(sluice_api.buyer_number(%s, %s, %s))",
                      ("shop", sale, "ann"))
        with gathering(patient, item) as together:
            for buyer in ("ann", "bob", "cat"):
                together.ask(buyer, sale=sale)
            together.cursor.execute("rollback")
            wait_until(lambda: all(asked.done() for asked in together.asked[1:]), 10, "the others")
            assert not together.asked[0].done()
            assert patient.reserve(item).status == 201
            other.execute("rollback")
    assert [answer.status for answer in together.answers()] == 3 * [201]
    assert patient.stock(item)["held"] == 5 and patient.invariant()["ok"]


def fail_for(origin, buyer, state):
    """Rows of this buyer raise an error of this SQLSTATE."""
    origin.sql(f"""
        create function sluice.poison() returns trigger language plpgsql as $$ begin
        if new.buyer = '{buyer}' then raise 'poison' using errcode = '{state}'; end if;
        return new; end $$;
        create trigger poison before insert on sluice.hold
        for each row execute function sluice.poison()""")


@pytest.mark.parametrize("state, status", [("P0001", 500), ("22003", 500), ("40001", 503),
                                           ("40P01", 503), ("53200", 503), ("SL001", 500)])
def test_one_who_fails_fails_alone(patient, state, status):
    item = patient.item(50)
    fail_for(patient, "eve", state)
    with gathering(patient, item) as together:
        for buyer in ("ann", "eve", "bob", "cat"):
            together.ask(buyer, key="k")
    assert [answer.status for answer in together.answers()] == [201, status, 201, 201]
    assert patient.metric("sluice_batch_apart_total") == 1
    patient.sql("drop trigger poison on sluice.hold")
    assert patient.reserve(item, "eve", key="k").status == 201
    assert patient.stock(item)["held"] == 5 and patient.invariant()["ok"]


def test_a_broken_rule_in_a_batch_pauses_the_item(patient):
    item = patient.item(50)
    fail_for(patient, "eve", "23514")
    with gathering(patient, item) as together:
        for buyer in ("ann", "bob", "eve"):
            together.ask(buyer)
    answers = together.answers()
    assert_problem(answers[2], 503, "paused")
    assert {answer.status for answer in answers[:2]} <= {201, 503}
    wait_until(lambda: patient.stock(item)["paused"], 5, "the item is paused")
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        assert {answer.status for answer in pool.map(lambda _: patient.reserve(item), range(9))} \
            == {503}
    assert patient.invariant()["ok"]


def test_a_lock_that_takes_too_long_is_503_for_each_and_no_key_is_spent(make_origin):
    origin = make_origin(database={**PATIENT, "lock_timeout": "5s"})
    item = origin.item(50)
    buyers = [origin.fresh("b") for _ in range(5)]
    with gathering(origin, item) as together:
        together.asked = [together.pool.submit(origin.reserve, item, buyer, key="k")
                          for buyer in buyers]
        wait_until(lambda: origin.metric("sluice_batch_gathered") == 5, 5, "all have gathered")
        wait_until(lambda: all(asked.done() for asked in together.asked), 15, "all are answered")
    for answer in (together.first, *together.answers()):
        assert_problem(answer, 503, "paused")
    assert origin.metric("sluice_batch_apart_total") == 0
    assert origin.stock(item)["held"] == 0
    assert [origin.reserve(item, buyer, key="k").status for buyer in buyers] == 5 * [201]


def test_an_outcome_nobody_knows_is_unknown_to_each(patient):
    item = patient.item(50)
    buyers = [patient.fresh("b") for _ in range(5)]
    lock = "begin; select 1 from sluice.item where item = %s for update"
    with patient.database() as second, concurrent.futures.ThreadPoolExecutor(1) as pool:
        with gathering(patient, item) as together:
            for buyer in buyers:
                together.ask(buyer, key="k")
            # Behind the first, before the batch.
            locked = pool.submit(second.execute, lock, (item,))
            wait_until(lambda: patient.sql(
                "select count(*) from pg_stat_activity where wait_event_type = 'Lock' "
                "and datname = current_database()") == [(2,)], 10, "next in line")
            together.cursor.execute("rollback")
            locked.result()
            wait_until(lambda: waits_for(patient, second) == 1, 10, "the batch waits for the row")
            patient.sql("select pg_terminate_backend(pid) from pg_stat_activity "
                        "where %s = any (pg_blocking_pids(pid))",
                        second.connection.info.backend_pid)
            wait_until(lambda: all(asked.done() for asked in together.asked), 10, "all answered")
            second.execute("rollback")
    for answer in together.answers():
        assert_problem(answer, 503, "paused")
        assert "not known" in answer.json["detail"]
    assert patient.stock(item)["held"] == 1
    again = [patient.reserve(item, buyer, key="k") for buyer in buyers]
    assert [answer.status for answer in again] == 5 * [201]
    assert patient.invariant()["ok"]


def test_more_than_may_gather_is_503_and_the_rest_goes_on(make_origin):
    origin = make_origin(database=PATIENT, reserve={"gather_item_max": 3})
    item = origin.item(50)
    with gathering(origin, item) as together:
        for _ in range(3):
            together.ask()
        refused = origin.reserve(item)
        assert_problem(refused, 503, "paused")
        assert refused.headers["retry-after"]
        assert origin.reserve(origin.item(1)).status == 201
    assert [answer.status for answer in together.answers()] == 3 * [201]
    assert origin.metric("sluice_batch_refused_total") == 1
    assert origin.metric("sluice_batch_gathered") == 0


def test_all_items_together_gather_no_more_than_the_ceiling(make_origin):
    origin = make_origin(database=PATIENT, reserve={"gather_max": 3})
    first, second = origin.item(50), origin.item(50)
    with gathering(origin, first) as one, gathering(origin, second) as two:
        one.ask()
        one.ask()
        two.ask()
        assert_problem(origin.reserve(first), 503, "paused")
        assert_problem(origin.reserve(second), 503, "paused")
    assert {answer.status for answer in (*one.answers(), *two.answers())} == {201}


def test_a_batch_has_a_ceiling(make_origin):
    origin = make_origin(database=PATIENT, reserve={"batch_max": 4})
    item = origin.item(50)
    with gathering(origin, item) as together:
        for _ in range(10):
            together.ask()
    assert {answer.status for answer in together.answers()} == {201}
    assert sizes(origin) == (4, 11)
    assert origin.sql("select count(*) from sluice.hold group by tx order by 1") \
        == [(1,), (2,), (4,), (4,)]


def test_more_items_than_can_be_watched_are_decided_one_by_one(make_origin):
    origin = make_origin(database=PATIENT, reserve={"items_max": 1})
    first, second = origin.item(5), origin.item(5)
    with gathering(origin, first) as together:
        together.ask()
        answers = [origin.reserve(second) for _ in range(8)]
        assert statuses(answers) == {201: 5, 409: 3}
    assert origin.metric("sluice_batch_beyond_total") == 8
    assert origin.invariant()["ok"]


def test_an_item_may_be_decided_one_by_one(patient):
    item = patient.item(20, batch="off")
    assert patient.stock(item)["batch"] == "off"
    with gathering(patient, item) as together:
        for _ in range(5):
            together.ask()  # the first answer tells
    assert patient.sql("select count(distinct tx), count(*) from sluice.hold") == [(6, 6)]
    assert patient.metric("sluice_batch_again_total") == 0, "none was put into a batch"
    assert patient.put_total(item, 20)["batch"] == "off"
    assert patient.put_total(item, 20, batch="on")["batch"] == "on"
    with gathering(patient, item) as together:
        for _ in range(5):
            together.ask()
    assert patient.sql("select count(distinct tx), count(*) from sluice.hold") == [(8, 12)]
    answer = patient.api.put(f"/v1/tenants/shop/items/{item}", {"total": 20, "batch": "maybe"})
    assert_problem(answer, 400, "bad_request")
    assert answer.json["field"] == "batch"


# ---- released together, and by more than one origin ----


BOTH = pytest.mark.parametrize("batch", ["on", "off"])


@BOTH
def test_ninety_nine_left_and_a_hundred_ask(crowded, batch):
    item = crowded.item(99, batch=batch)
    answers = at_once(100, lambda _: crowded.reserve(item))
    assert statuses(answers) == {201: 99, 409: 1}
    assert len({answer.json["hold"] for answer in answers if answer.status == 201}) == 99


@BOTH
@pytest.mark.parametrize("buyers", [50, 200])
def test_many_for_one_unit(crowded, batch, buyers):
    item = crowded.item(1, batch=batch)
    answers = at_once(buyers, lambda _: crowded.reserve(item))
    assert statuses(answers) == {201: 1, 409: buyers - 1}
    assert {answer.json["code"] for answer in answers if answer.status == 409} == {"all_held"}


@BOTH
def test_a_thousand_buyers_of_one_to_five_units(crowded, batch):
    item = crowded.item(1000, batch=batch)
    sale = crowded.sale(item, per_account=5)

    def buy(number):
        return 1 + number % 5, crowded.reserve(item, qty=1 + number % 5, sale=sale)
    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        answers = list(pool.map(buy, range(1000)))
    held = sum(qty for qty, answer in answers if answer.status == 201)
    stock = crowded.stock(item)
    assert (stock["held"], stock["available"]) == (held, 1000 - held)
    assert {answer.status for _, answer in answers} == {201, 409}
    smallest = min(qty for qty, answer in answers if answer.status == 409)
    assert stock["available"] < smallest, "what is left was too little for all who were refused"
    assert crowded.sql("select sum(qty) from sluice.hold where item = %s", item) == [(held,)]
    if batch == "on":
        count, = crowded.sql("select count(distinct tx) from sluice.hold where item = %s", item)[0]
        assert count < len([answer for _, answer in answers if answer.status == 201])


@BOTH
def test_two_keys_of_one_buyer_at_once(crowded, batch):
    item = crowded.item(500, batch=batch)
    sale = crowded.sale(item, per_account=1)
    for _ in range(25):
        name = crowded.fresh("b")
        answers = at_once(8, lambda k: crowded.reserve(item, f"{name}-{k % 4}",
                                                      key=f"k{k // 4}", sale=sale))
        assert statuses(answers) == {201: 4, 403: 4}
    assert crowded.stock(item)["held"] == 100


@BOTH
def test_orders_in_opposite_order_race_batches(crowded, batch):
    first, second = crowded.item(4000, batch=batch), crowded.item(4000, batch=batch)
    sale = crowded.sale(first, per_account=1000)

    def one(number):
        buyer = f"b{number % 7}"
        if number % 4 == 0:
            return crowded.order([(first, 1), (second, 2)], buyer, sale=sale)
        if number % 4 == 1:
            return crowded.order([(second, 1), (first, 2)], buyer, sale=sale)
        return crowded.reserve(first if number % 4 == 2 else second, buyer,
                              sale=sale if number % 4 == 2 else None)
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(one, range(400)))
    assert statuses(answers) == {201: 400}
    assert crowded.stock(first)["held"] == crowded.stock(second)["held"] == 400


def test_batches_of_two_origins_share_one_item(make_origin):
    one, two = make_origin(database=PATIENT), make_origin(start=False, database=PATIENT)
    two.url = two.stack.database_url = one.url
    two.start()
    item = one.item(150)
    sale = one.sale(item, per_account=2)
    answers = at_once(120, lambda number: (one, two)[number % 2].reserve(
        item, f"b{number // 4}", qty=1 + number % 2, key=uuid.uuid4().hex, sale=sale))
    assert set(statuses(answers)) == {201, 403}
    held = sum(answer.json["qty"] for answer in answers if answer.status == 201)
    # One and two units, two and one: each of thirty buyers gets as many as two.
    assert held == one.stock(item)["held"] and 30 <= held <= 60
    worst = one.sql("select max(units) from (select sum(qty) as units from sluice.hold "
                    "group by buyer) b")
    assert worst[0][0] <= 2
    assert one.invariant()["ok"] and two.errors() == []


def test_a_fresh_database_is_looked_at_again_once_it_has_holds(make_origin):
    """Plans that sessions made on empty tables may walk through all holds of the
    tenant; they are made anew when the table is analysed."""
    origin = make_origin()
    item = origin.item(1000)

    def looks():
        return origin.sql("select analyze_count from pg_stat_user_tables "
                          "where schemaname = 'sluice' and relname = 'hold'")[0][0]
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: origin.reserve(item), range(199)))
        assert looks() == 0
        answers += pool.map(lambda _: origin.reserve(item), range(101))
    assert statuses(answers) == {201: 300}
    wait_until(lambda: looks() == 1, 10, "the table is analysed")
    assert origin.metric("sluice_queries_total", tag="learn") == 1
