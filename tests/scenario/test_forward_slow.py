"""Clients that ask for much and read nothing, beside one that reads."""
import os
import time

import h2.settings
import pytest

from h2client import H2
from run.process import wait_until
from upstream import MEDIUM, Upstream
from upstream11 import Upstream11

READERS = 80  # more than the places a worker has with an upstream: 64


@pytest.fixture(params=["h2c", "http/1.1"])
def own(make_shop, request):
    yield from make_own(make_shop, request.param, {})


@pytest.fixture
def narrow(make_shop, monkeypatch):
    # What is free counts as free: the sanitizer would keep 256 MB of it.
    options = os.environ.get("ASAN_OPTIONS", "")
    monkeypatch.setenv("ASAN_OPTIONS", f"{options}:quarantine_size_mb=1".lstrip(":"))
    yield from make_own(make_shop, "http/1.1", {"forward_unread_bytes": "8MiB"})


def make_own(make_shop, protocol, limits):
    made = Upstream() if protocol == "h2c" else Upstream11()
    shop = make_shop(options={"gateway": {"workers": 1, "limits": limits, "upstreams": {
        "app": {"address": made.address, "protocol": protocol, "request_timeout": "10s",
                "connect_timeout": "5s"}}}})
    name = shop.fresh("p")
    shop.path = f"/{name}"
    sale = shop.sale(upstream="app", match=[{"host": None, "path": f"/{name}/in", "prefix": True}],
                     bypass=[{"host": None, "path": f"/{name}", "prefix": True}])
    shop.wait_state(sale, "open")
    yield shop
    made.close()


def readers(shop, what):
    """Streams whose window stays shut, on a connection of their own."""
    connection = H2(shop.stack.url, shop.stack.ca)
    connection.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
    connection._flush()
    for _ in range(READERS):
        connection.start("GET", f"{shop.path}/{what}")
    return connection


def be_good(shop, times):
    """Each request answered, and soon."""
    slowest = 0
    with H2(shop.stack.url, shop.stack.ca) as good:
        for _ in range(times):
            began = time.monotonic()
            assert good.get(f"{shop.path}/fine").status == 200
            slowest = max(slowest, time.monotonic() - began)
    return slowest


def no_request_stays(shop):
    """A client that has gone without a word is noticed when it takes nothing for a while."""
    wait_until(lambda: shop.stack.metrics().value("sluice_requests_parked") == 0, 25,
               "nothing parked")


def cut(shop):
    return shop.stack.metrics().value("sluice_forward_cut_total")


def test_unread_answers_do_not_keep_the_places_of_others(own):
    slow = readers(own, "big")
    assert be_good(own, 100) < 8
    assert cut(own) >= READERS - 64
    # It is the readers that are told so, and only they.
    wait_until(lambda: slow.read_some(time.monotonic() + 5) or
               any(answer.reset is not None for answer in slow.responses.values()), 10, "a reset")
    slow.close()
    no_request_stays(own)


def test_answers_that_fit_keep_no_place(own):
    slow = readers(own, "medium")
    assert be_good(own, 30) < 5
    assert cut(own) == 0
    # Whoever reads late, but before half of limits.write_stall, still gets all of it.
    first = min(slow.responses)
    slow.h2.increment_flow_control_window(MEDIUM, first)
    slow._flush()
    answer = slow.finish(first, 10)
    assert answer.reset is None and len(answer.body) == MEDIUM
    slow.close()
    no_request_stays(own)


def test_unread_answers_together_have_a_ceiling(narrow):
    """400 answers of 200 KB would be 80 MB."""
    def resident():
        with open(f"/proc/{narrow.stack.gateway.child.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    be_good(narrow, 20)
    before = resident()
    slow = [readers(narrow, "medium") for _ in range(5)]
    assert be_good(narrow, 20) < 8
    assert resident() - before < 48 * 1024
    for connection in slow:
        connection.close()
    no_request_stays(narrow)
