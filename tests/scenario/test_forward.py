"""What passes between a shopper and an application behind the gateway."""
import pytest

from run.process import wait_until
from shopper import Shopper
from upstream import BIG, Upstream

NAVIGATION = {"sec-fetch-mode": "navigate", "accept": "text/html"}


@pytest.fixture(scope="module")
def upstream():
    made = Upstream()
    yield made
    made.close()


@pytest.fixture
def own(make_shop, upstream):
    """A shop whose application is ours: (shop, sale, path, visitor inside)."""
    shop = make_shop(options={"gateway": {"upstreams": {
        "app": {"address": upstream.address, "request_timeout": "1s"},
        "gone": {"address": "127.0.0.1:1", "request_timeout": "1s"}}}})
    return shop


def enter(shop, units=5, upstream="app", **fields):
    name = shop.fresh("p")
    sale = shop.sale(units=units, upstream=upstream, identity="account",
                     match=[{"host": None, "path": f"/{name}", "prefix": True}],
                     bypass=[{"host": None, "path": f"/{name}/free", "prefix": True}], **fields)
    visitor = Shopper(shop.connect(), sale, shop.token(), mode="cookie")
    visitor.enter()
    return f"/{name}", visitor


def get(visitor, path, method="GET", body=None, **headers):
    return visitor.take(visitor.connection.request(method, path, visitor.headers(**headers), body))


def test_whole_story_of_a_forwarded_request(own, upstream):
    shop = own
    path, visitor = enter(shop)

    # What an application says is passed on, but not to whom it does not belong.
    first = get(visitor, f"{path}/public")
    assert first.status == 200 and f"__Host-sluice-pass-{visitor.sale}" in first.cookies
    assert first.header("cache-control") == "private, no-store" and first.header("age") is None
    again = get(visitor, f"{path}/public")
    assert again.header("cache-control") == "public, max-age=60" and again.header("age") == "5"
    for answer in (first, again):
        assert "__Host-sluice-x" not in answer.cookies and answer.cookies["mine"] == "1"
        assert answer.header("sluice-other") is None

    # Answers without a body stay without, HEAD keeps the length.
    for status in (204, 304):
        answer = get(visitor, f"{path}/{status}")
        assert (answer.status, answer.body) == (status, b"")
    head = get(visitor, f"{path}/x", method="HEAD")
    assert (head.status, head.body) == (200, b"") and int(head.header("content-length")) > 0

    # A body goes through whole, with the length of what came.
    answer = get(visitor, f"{path}/post", method="POST", body="y" * 200_000)
    seen, body = upstream.seen[-1]
    assert answer.status == 200 and body == b"y" * 200_000
    assert seen["content-length"] == "200000" and seen[":method"] == "POST"
    answer = get(visitor, f"{path}/post", method="POST", body="z" * 1_200_000)
    assert (answer.status, answer.json["code"]) == (413, "body_too_large")

    # The gate hears of stock, the shopper does not.
    answer = get(visitor, f"{path}/stock")
    assert answer.header("sluice-available") is None and answer.header("sluice-version") is None

    # Done: the pass is over at once.
    answer = get(visitor, f"{path}/done")
    assert answer.status == 200 and answer.header("sluice-done") is None
    assert visitor.hold().status == 403
    assert visitor.connection.get(f"{path}/x", visitor.headers(accept="application/json")).status == 202


def test_trouble_of_the_application_is_told_and_counted(own, upstream, expected_errors):
    shop = own
    path, visitor = enter(shop)
    for what, status, code in (("hang", 504, "gateway_timeout"), ("refuse", 502, "bad_gateway")):
        answer = get(visitor, f"{path}/{what}")
        assert (answer.status, answer.json["code"]) == (status, code), answer
    assert get(visitor, f"{path}/cut").reset is not None
    assert get(visitor, f"{path}/fine").status == 200
    assert shop.stack.metrics().value("sluice_forward_failed_total") == 3

    path, visitor = enter(shop, upstream="gone")
    answer = get(visitor, f"{path}/x")
    assert (answer.status, answer.json["code"]) == (503, "unavailable") and answer.header("retry-after")


def test_a_slow_reader_stops_the_application_and_a_gone_one_costs_nothing(own, upstream):
    shop = own
    path, visitor = enter(shop)
    before = upstream.sent
    stream = visitor.connection.start("GET", f"{path}/free/big")
    wait_until(lambda: upstream.sent > before, 5, "the first bytes")
    settled = []

    def stands():
        settled.append(upstream.sent)
        return len(settled) > 4 and settled[-1] == settled[-5]
    wait_until(stands, 10, "the application to be stopped")
    assert upstream.sent - before < BIG / 2
    answer = visitor.connection.finish(stream, 60)
    assert answer.status == 200 and len(answer.body) == BIG

    gone = shop.connect()
    gone.start("GET", f"{path}/free/big")
    gone.sock.close()
    gone.closed = True
    wait_until(lambda: shop.stack.metrics().value("sluice_requests_parked") == 0, 10,
               "nothing parked")
