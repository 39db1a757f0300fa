"""More requests than may wait for an application: 503 with a time to come back, while
those that wait for nobody are answered."""
import pytest

from h2client import H2
from run.process import wait_until
from shopper import API
from upstream import Upstream

WAITING = 4
RST_STREAM, CANCEL = 3, 8


@pytest.fixture
def small(make_shop):
    """Four requests may wait; what lies below /name is forwarded."""
    made = Upstream()
    shop = make_shop(options={"gateway": {
        "workers": 1, "limits": {"requests_waiting": WAITING},
        "upstreams": {"app": {"address": made.address, "request_timeout": "1m"}}}})
    name = shop.fresh("p")
    shop.path = f"/{name}"
    sale = shop.sale(upstream="app", bypass=[{"host": None, "path": shop.path, "prefix": True}])
    shop.flag_path = f"{API}/sales/{sale}"
    shop.wait_state(sale, "open")
    yield shop
    made.close()


def parked(shop):
    return shop.stack.metrics().value("sluice_requests_parked")


def test_what_would_have_to_wait_past_the_ceiling_is_503(small):
    with H2(small.stack.url, small.stack.ca) as asking, H2(small.stack.url, small.stack.ca) as other:
        waiting = [asking.start("GET", f"{small.path}/hang") for _ in range(WAITING)]
        wait_until(lambda: parked(small) == WAITING, 10, "the application asked")
        for connection in (asking, other):
            refused = connection.get(f"{small.path}/fine")
            assert refused.status == 503 and refused.header("retry-after") == "1", refused
            assert refused.json["code"] == "unavailable"
            assert connection.get(small.flag_path).status == 200  # waits for nobody
        assert small.stack.metrics().value("sluice_requests_not_parked_total") == 2
        for stream in waiting:
            asking.send_frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4, "big"))
        wait_until(lambda: parked(small) == 0, 10, "nobody waiting")
        assert other.get(f"{small.path}/fine").status == 200
