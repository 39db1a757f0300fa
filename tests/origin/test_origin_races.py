"""Two at once: buyers for the last unit, keys of one buyer, payment and expiry."""
import collections
import concurrent.futures

import pytest

from one_origin import assert_problem, at_once, statuses
from run.process import wait_until


def test_one_key_ten_times_in_a_row_is_one_hold(origin):
    item, buyer = origin.item(5), origin.fresh("b")
    first, *rest = [origin.reserve(item, buyer, key="k1") for _ in range(10)]
    assert first.status == 201 and first.headers["idempotent-replayed"] is None
    for answer in rest:
        assert (answer.status, answer.json) == (200, first.json)
        assert answer.headers["idempotent-replayed"] == "true"
    assert origin.stock(item)["held"] == 1


def test_one_key_fifty_times_at_once_is_one_hold(origin):
    item, sale_buyer = origin.item(100), origin.fresh("b")
    sale = origin.sale(item)
    answers = at_once(50, lambda _: origin.reserve(item, sale_buyer, key="k", sale=sale))
    assert statuses(answers) == {201: 1, 200: 49}
    assert len({answer.body for answer in answers}) == 1
    assert origin.stock(item)["held"] == 1


def test_one_key_at_once_for_the_last_unit_is_one_hold_and_no_refusal(origin):
    """The twin that comes late finds the hold, not an empty item."""
    for _ in range(20):
        item, buyer = origin.item(1), origin.fresh("b")
        sale = origin.sale(item)
        answers = at_once(12, lambda _: origin.reserve(item, buyer, key="k", sale=sale))
        assert statuses(answers) == {201: 1, 200: 11}, [a.body for a in answers]


def test_two_buyers_with_one_key_have_two_holds(origin):
    item = origin.item(5)
    buyers = origin.fresh("b"), origin.fresh("b")
    holds = {origin.hold(item, buyer=buyer, key="the same") for buyer in buyers}
    assert len(holds) == 2 and origin.stock(item)["held"] == 2


def test_two_keys_of_one_buyer_at_limit_one_are_one_hold_a_hundred_times(origin):
    item = origin.item(500)
    sale = origin.sale(item, per_account=1)
    for number in range(100):
        answers = at_once(2, lambda k: origin.reserve(item, f"b{number}", key=f"k{k}", sale=sale))
        assert statuses(answers) == {201: 1, 403: 1}
        refused = next(answer for answer in answers if answer.status == 403)
        assert_problem(refused, 403, "buyer_limit")
        held = next(answer for answer in answers if answer.status == 201)
        assert refused.json["hold"] == held.json["hold"]
    assert origin.stock(item)["held"] == 100


def test_twenty_keys_of_one_buyer_at_limit_three_are_three_units(origin):
    item = origin.item(100)
    sale = origin.sale(item, per_account=3)
    answers = at_once(20, lambda k: origin.reserve(item, "eve", key=f"k{k}", sale=sale))
    assert statuses(answers) == {201: 3, 403: 17}


def test_ten_left_and_two_orders_of_eight_are_one_hold(origin):
    for _ in range(20):
        item = origin.item(10)
        answers = at_once(2, lambda _: origin.reserve(item, qty=8))
        assert statuses(answers) == {201: 1, 409: 1}
        refused = next(answer for answer in answers if answer.status == 409)
        assert_problem(refused, 409, "not_enough")
        assert refused.json["available"] == 2
        assert origin.stock(item)["available"] == 2


def test_fifty_attempts_for_one_unit_are_one_hold(origin):
    item = origin.item(1)
    answers = at_once(50, lambda _: origin.reserve(item))
    assert statuses(answers) == {201: 1, 409: 49}
    for answer in answers:
        if answer.status == 409:
            assert_problem(answer, 409, "all_held")
            assert answer.headers["retry-after"] and answer.headers["sluice-available"] == "0"
    hold = next(answer for answer in answers if answer.status == 201).json["hold"]
    assert origin.confirm(hold).status == 200
    assert statuses(at_once(50, lambda _: origin.reserve(item))) == {409: 50}
    assert_problem(origin.reserve(item), 409, "sold_out")


def test_due_holds_are_resold_at_once_and_only_once(make_origin):
    """Twenty due holds, forty buyers, no worker: twenty get a unit."""
    origin = make_origin(expiry={"enabled": False})
    item = origin.item(20)
    for _ in range(20):
        origin.hold(item)
    origin.end_holds_of(item)
    answers = at_once(40, lambda _: origin.reserve(item))
    assert statuses(answers) == {201: 20, 409: 20}
    assert {a.json["code"] for a in answers if a.status == 409} == {"all_held"}
    assert origin.invariant()["ok"]
    expired = origin.sql("select count(*) from sluice.journal where to_state = 'expired'")
    assert expired == [(20,)]
    assert origin.errors() == []


def test_what_is_due_is_free_in_every_answer(make_origin):
    """Nobody may be told that nothing is left while a due hold only waits to be taken
    back: a gate that hears so lets those in front wait, after others were let in."""
    origin = make_origin(expiry={"enabled": False})
    item = origin.item(5)
    paid, given_back, late, *due = [origin.hold(item) for _ in range(5)]
    for hold in (late, *due):
        origin.end_hold_in(hold, -1)

    def left(answer, status):
        assert answer.status == status, answer
        return int(answer.headers["sluice-available"])

    assert left(origin.confirm(paid), 200) == 3
    assert left(origin.step(given_back, "release"), 200) == 4
    assert left(origin.reserve(item), 201) == 3
    assert left(origin.confirm(late, "late"), 201) == 2
    assert origin.stock(item)["available"] == 2
    assert origin.invariant()["ok"]


LANES, ROUNDS = 8, 63


@pytest.mark.parametrize("worker", [True, False])
def test_expiry_payment_and_the_next_buyer_in_the_same_instant(make_origin, worker):
    """A thousand rounds in both, each over one unit: at the end of a hold its
    payment and another buyer come together. One of them has the unit."""
    origin = make_origin(expiry={"enabled": worker, "interval": "10ms"})
    outcomes = collections.Counter()

    def lane(_):
        item = origin.item(1)
        for number in range(ROUNDS):
            hold = origin.hold(item)
            origin.end_hold_in(hold, number % 7)
            paid, taken = at_once(2, lambda who: origin.confirm(hold, f"p{number}") if who == 0
                                  else origin.reserve(item))
            stock = origin.stock(item)
            assert stock["available"] == 0 and stock["held"] + stock["sold"] == 1, stock
            outcomes[paid.status, taken.status] += 1
            if taken.status == 201:
                assert_problem(paid, 409, "hold_expired")
                assert (paid.json["state"], paid.json["payment"]) == ("expired", "void")
                assert origin.step(taken.json["hold"], "release").status == 200
            else:
                assert paid.status in (200, 201) and taken.status == 409, (paid, taken)
                assert origin.step(paid.json["hold"], "cancel").status == 200
            verdict = origin.invariant()
            assert verdict["ok"], verdict
    with concurrent.futures.ThreadPoolExecutor(LANES) as pool:
        list(pool.map(lane, range(LANES)))
    assert sum(outcomes.values()) == LANES * ROUNDS
    assert origin.errors() == []


def test_four_sweepers_release_each_hold_once(make_origin):
    origin = make_origin(expiry={"enabled": False})
    item = origin.item(200)
    for _ in range(100):
        origin.hold(item)
    origin.end_holds_of(item)

    def sweep(_):
        with origin.database() as cursor:
            cursor.execute("set sluice.prefix = 'a'; set sluice.timeline = '1'")
            total = 0
            while True:
                cursor.execute("select expired from sluice_api.expire(7)")
                count = cursor.fetchone()[0]
                total += count
                if count == 0:
                    return total
    assert sum(at_once(4, sweep)) == 100
    assert origin.stock(item)["available"] == 200
    assert origin.sql("select count(*), count(distinct hold) from sluice.journal "
                      "where to_state = 'expired'") == [(100, 100)]
    assert origin.invariant()["ok"]


def test_one_payment_notice_three_times_at_once_is_three_equal_200(origin):
    item = origin.item(3)
    hold = origin.hold(item)
    answers = at_once(3, lambda _: origin.confirm(hold, "pay-1"))
    assert statuses(answers) == {200: 3} and len({answer.body for answer in answers}) == 1
    assert origin.stock(item)["sold"] == 1


def test_one_late_notice_ten_times_at_once_is_one_new_hold(make_origin):
    origin = make_origin(expiry={"enabled": False})
    item = origin.item(5)
    hold = origin.hold(item)
    origin.end_hold_in(hold, 0)
    answers = at_once(10, lambda _: origin.confirm(hold, "late"))
    assert statuses(answers) == {201: 1, 200: 9}
    assert len({answer.json["hold"] for answer in answers}) == 1
    assert origin.stock(item)["sold"] == 1 and origin.invariant()["ok"]


def test_two_payers_of_one_hold_have_one_sale(origin):
    for _ in range(20):
        item = origin.item(2)
        hold = origin.hold(item)
        answers = at_once(2, lambda who: origin.confirm(hold, f"pay-{who}", captured=True))
        assert statuses(answers) == {200: 1, 409: 1}
        refused = next(answer for answer in answers if answer.status == 409)
        assert_problem(refused, 409, "already_sold")
        assert refused.json["payment"] == "refund"


def test_release_and_payment_at_once_have_one_winner(origin):
    for _ in range(30):
        item = origin.item(1)
        hold = origin.hold(item)
        paid, released = at_once(2, lambda who: origin.confirm(hold) if who == 0
                                 else origin.step(hold, "release"))
        assert (paid.status, released.status) in ((200, 409), (409, 200)), (paid, released)
        loser = paid if paid.status == 409 else released
        assert loser.json["code"] in ("hold_released", "already_sold")


def test_total_moves_under_load_and_never_below_what_is_taken(origin):
    item = origin.item(40)

    def one(number):
        if number % 4:
            return origin.reserve(item)
        return origin.api.put(f"/v1/tenants/shop/items/{item}", {"total": 10 + number})
    answers = at_once(40, one)
    assert set(statuses(answers)) <= {200, 201, 409}
    stock = origin.stock(item)
    assert stock["held"] <= stock["total"]


def test_nobody_waits_for_a_due_hold_behind_the_item_row(make_origin):
    """A buyer who came too late for the last unit has the item's row; the due hold
    that would do is being decided about by someone who needs that row next."""
    origin = make_origin(expiry={"enabled": False})
    item = origin.item(2)
    origin.end_hold_in(origin.hold(item), 0)
    row = "update sluice.item set available = available {0} 1, held = held + 1 where item = %s"
    with origin.database() as decider, origin.database() as last, \
            concurrent.futures.ThreadPoolExecutor(1) as pool:
        def waits_for(cursor):
            return origin.sql("select count(*) from pg_stat_activity where %s = any "
                              "(pg_blocking_pids(pid))", cursor.connection.info.backend_pid)[0][0]
        decider.execute("begin; select id from sluice.hold where item = %s for update", (item,))
        last.execute("begin; update sluice.item set available = available - 1, held = held + 1 "
                     "where item = %s", (item,))
        reserved = pool.submit(origin.reserve, item)
        wait_until(lambda: waits_for(last), 10, "the reserve behind the last unit's buyer")
        last.execute("commit")
        wait_until(lambda: reserved.done() or waits_for(decider), 10, "what comes of it")
        decider.execute("set lock_timeout = '300ms'")
        decider.execute("update sluice.item set n = n where item = %s", (item,))
        decider.execute("rollback")
        assert reserved.result().status in (201, 503), reserved.result()
    assert origin.stock(item)["total"] == 2
