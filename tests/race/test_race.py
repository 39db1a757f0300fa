"""Sales held before crowds: exactly the stock is sold, whoever comes and goes."""
import os

import pytest

from race import assert_held, run_race, told

TIMES = 10 if os.environ.get("SLUICE_SOAK") else 1


def expired_holds(stack):
    return int(stack.postgres.psql("select count(*) from sluice.hold where state = 'expired'").stdout)


def test_small_race_sells_exactly_the_stock(own_shop):
    report = run_race(own_shop.stack, buyers=500, units=100)
    assert_held(report, 500, 100, passes=105)
    assert report["refused"] == 400 and report["max_units_per_account"] == 1


def test_one_unit_before_a_hundred(own_shop):
    assert_held(run_race(own_shop.stack, buyers=100, units=1), 100, 1, passes=1)


def test_more_units_than_buyers_serves_everybody(own_shop):
    report = run_race(own_shop.stack, buyers=50, units=80)
    assert (report["sold"], report["refused"], report["oversold"]) == (50, 0, 0), told(report)
    assert report["refused_while_free"] == 0 and report["invariant_ok"]


def test_units_of_those_who_never_pay_go_to_the_next(own_shop):
    report = run_race(own_shop.stack, buyers=300, units=60, unpaid=0.3, hold_seconds=2)
    assert_held(report, 300, 60)
    assert expired_holds(own_shop.stack) > 0


def test_units_come_back_also_with_the_expiry_worker_off(make_shop):
    shop = make_shop(options={"origin": {"expiry": {"enabled": False}}})
    report = run_race(shop.stack, buyers=300, units=60, unpaid=0.3, hold_seconds=2)
    assert_held(report, 300, 60)
    assert expired_holds(shop.stack) > 0


@pytest.mark.parametrize("crowd", [
    {"leavers": 0.2, "tabs": 3, "cheats": 0.2}, {"qty": "1..3", "arrival": "ramp"},
    {"arrival": "poisson", "sleepers": 0.1}, {"arrival": "prequeue", "unpaid": 0.1, "hold_seconds": 2}],
    ids=lambda crowd: "-".join(f"{name}={value}" for name, value in crowd.items()))
def test_every_kind_of_crowd_gets_exactly_the_stock(own_shop, crowd):
    report = run_race(own_shop.stack, buyers=300, units=60, **crowd)
    assert (report["sold"], report["oversold"], report["unsold"]) == (60, 0, 0), told(report)
    assert report["ok"] and report["fifo_inversions"] == 0 and report["invariant_ok"], told(report)


@pytest.mark.parametrize("number", range(TIMES))
def test_ten_thousand_buyers_and_a_hundred_units(own_shop, number):
    report = run_race(own_shop.stack, buyers=10_000, units=100, seed=number + 1)
    assert_held(report, 10_000, 100, passes=105)
    assert report["refused"] == 9_900, told(report)
