"""A primary killed in the middle of a race, and its standby in its place."""
import os
import time

from race import Race, told
from run.process import wait_until

SOAK = bool(os.environ.get("SLUICE_SOAK"))
BUYERS, UNITS = (10_000, 100) if SOAK else (150, 40)


def test_a_race_goes_on_at_a_synchronous_standby(make_shop, expected_errors):
    """No sale that somebody was told of is missing, and the gate follows the timeline."""
    expected_errors += ["database", "pool", "postgres", "connection"]
    shop = make_shop(start=False, lone=True)
    stack = shop.stack
    stack.start_postgres()
    stack.start_standby()
    stack.start_origin()
    stack.start_gateway()
    race = Race(stack, buyers=BUYERS, units=UNITS)
    try:
        wait_until(lambda: race.holds() >= UNITS // 5 or not race.is_running(), 120, "holds")
        assert race.is_running(), race.said()
        stack.postgres.process.kill9()
        stack.promote_standby()
        promoted = time.monotonic()
        wait_until(stack.origin.is_ready, 30, "the origin found the new primary")
        assert not SOAK or time.monotonic() - promoted < 2
        report = race.wait()
    finally:
        race.end()
    assert (report["sold"], report["oversold"], report["unsold"]) == (UNITS, 0, 0), told(report)
    assert report["invariant_ok"] is True and report["max_units_per_account"] == 1, told(report)
    assert stack.postgres.psql("select count(*) from sluice.hold where state = 'sold'").stdout.strip() \
        == str(UNITS)
    (item,) = stack.origin.get("/v1/snapshot").json["items"]
    assert item["version"].startswith("2."), item
    wait_until(lambda: stack.metrics().value("sluice_gate_gap") == 0, 15, "the gate at the new numbers")
