"""Programs killed, stopped and cut off in the middle of a race: exactly the stock is sold."""
import os
import time

import pytest

from proxy import Proxy
from race import Race, assert_held, told
from run.process import Failed, wait_until

SOAK = bool(os.environ.get("SLUICE_SOAK"))
BUYERS, UNITS = (10_000, 100) if SOAK else (1_000, 100)


@pytest.fixture
def race(request):
    made = []

    def start(stack, **options):
        made.append(Race(stack, **{"buyers": BUYERS, "units": UNITS, **options}))
        return made[-1]
    yield start
    for each in made:
        each.end()


def in_the_middle(race, holds=UNITS // 5):
    """Waits until some units are held and the race still runs."""
    wait_until(lambda: race.holds() >= holds or not race.is_running(), 120, "holds in the race")
    assert race.is_running(), race.said()


def stop_for(program, seconds):
    program.pause()
    stopped = time.monotonic()
    wait_until(lambda: time.monotonic() - stopped >= seconds, seconds + 5, "the stop is over")
    program.resume()


def assert_sold_exactly(report, stack, passes=None):
    assert (report["sold"], report["oversold"], report["unsold"]) == (UNITS, 0, 0), told(report)
    assert report["invariant_ok"] is True and report["max_units_per_account"] == 1, told(report)
    if passes:
        assert report["passes_issued"] <= passes, told(report)
    sold = stack.postgres.psql("select count(*) from sluice.hold where state in ('sold', 'shipped')")
    assert int(sold.stdout) == UNITS, sold.stdout


def test_gateway_killed_and_restarted(own_shop, race, expected_errors):
    stack = own_shop.stack
    running = race(stack)
    in_the_middle(running)
    stack.gateway.kill9()
    stack.start_gateway()
    assert_sold_exactly(running.wait(), stack, passes=105)


def test_origin_killed_and_restarted(own_shop, race, expected_errors):
    stack = own_shop.stack
    running = race(stack)
    in_the_middle(running)
    stack.origin_process.kill9()
    stack.restart_origin()
    assert_sold_exactly(running.wait(), stack, passes=105)


def test_both_killed_again_and_again(own_shop, race, expected_errors):
    stack = own_shop.stack
    running = race(stack)
    for share in (1, 2, 3):
        in_the_middle(running, holds=UNITS * share // 5)
        stack.gateway.kill9()
        stack.origin_process.kill9()
        stack.restart_origin()
        stack.start_gateway()
    assert_sold_exactly(running.wait(), stack)


def test_database_stopped_and_then_killed(lone_shop, race, expected_errors):
    expected_errors += ["database", "pool", "postgres", "connection"]
    stack = lone_shop.stack
    running = race(stack)
    in_the_middle(running)
    before = running.holds()
    stop_for(stack.postgres, 30 if SOAK else 3)
    wait_until(lambda: running.holds() > before or not running.is_running(), 60, "further holds")
    stack.postgres.process.kill9()

    def is_started():
        """False while backends of the killed server still hold its memory."""
        try:
            stack.postgres.start()
        except Failed as why:
            assert "still in use" in str(why), why
            return False
        return True
    wait_until(is_started, 60, "the database runs again")
    assert_sold_exactly(running.wait(), stack)


def test_origin_stopped_for_a_while(own_shop, race, expected_errors):
    expected_errors += ["cannot be reached; trying again"]
    stack = own_shop.stack
    running = race(stack)
    in_the_middle(running)
    stop_for(stack.origin_process, 30 if SOAK else 5)
    assert_sold_exactly(running.wait(), stack, passes=105)


def test_answers_of_the_origin_cut_off(make_shop, race, expected_errors):
    shop = make_shop(start=False)
    stack = shop.stack
    stack.start_postgres()
    stack.start_origin()
    proxy = Proxy(stack.origin.url.partition("://")[2])
    try:
        stack.origin_url = f"http://{proxy.address}"
        stack.start_gateway()
        running = race(stack)
        for cut in (100, 1000, 5000):
            in_the_middle(running, holds=1)
            proxy("cut", cut, "down")
            wait_until(lambda: proxy("stats")["cut"] > 0 or not running.is_running(), 60, "a cut")
        proxy("clear")
        assert_sold_exactly(running.wait(), stack)
    finally:
        proxy.close()


@pytest.fixture
def proxies():
    """Proxies by target; asked for first, they outlive the stack that needs them."""
    made = []

    def start(target):
        made.append(Proxy(target))
        return made[-1]
    yield start
    for each in made:
        each.close()


def test_answers_of_the_database_cut_off(proxies, make_shop, race, expected_errors):
    """The outcome of a COMMIT is unknown then; the key brings the one true answer."""
    expected_errors += ["database", "pool", "postgres", "connection"]
    shop = make_shop(start=False)
    stack = shop.stack
    stack.start_postgres()
    proxy = proxies(f"127.0.0.1:{stack.postgres.port}")
    stack.database_url = stack.postgres.url.replace(f":{stack.postgres.port}/", f":{proxy.port}/")
    stack.start_origin()
    stack.start_gateway()
    running = race(stack)
    for _ in range(3):
        in_the_middle(running, holds=1)
        proxy("cut", 500, "down")
        wait_until(lambda: proxy("stats")["cut"] > 0 or not running.is_running(), 60, "a cut")
        proxy("drop")
    proxy("clear")
    assert_sold_exactly(running.wait(), stack)


def test_slow_way_between_gateway_and_origin(make_shop, race):
    shop = make_shop(start=False)
    stack = shop.stack
    stack.start_postgres()
    stack.start_origin()
    proxy = Proxy(stack.origin.url.partition("://")[2])
    try:
        stack.origin_url = f"http://{proxy.address}"
        stack.start_gateway()
        proxy("delay", 100)
        assert_held(race(stack, buyers=500).wait(), 500, UNITS, passes=105)
    finally:
        proxy.close()
