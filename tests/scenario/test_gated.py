"""A sale's own paths: the page without a pass, straight through with one."""
import json

import pytest

from shopper import API, Shopper, decode_jwt

NAVIGATION = {"sec-fetch-mode": "navigate", "accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def gated_sale(shop, units=1, **fields):
    """A sale with a path of its own; its id is the path's first segment."""
    name = shop.fresh("p")
    sale = shop.sale(units=units, upstream="shop", identity=fields.pop("identity", "guest"),
                     match=[{"host": None, "path": f"/{name}", "prefix": True}],
                     bypass=[{"host": None, "path": f"/{name}/pay", "prefix": True}], **fields)
    return sale, f"/{name}"


def browser(shop, sale, token=None):
    return Shopper(shop.connect(), sale, token, mode="cookie")


def navigate(visitor, path, **headers):
    fields = visitor.headers(**NAVIGATION)
    return visitor.take(visitor.connection.get(path, {**fields, **headers}))


def fill(shop, sale):
    """Somebody else takes the only pass."""
    other = shop.guest(sale)
    other.enter()
    return other


def assert_page(answer, status):
    assert answer.status == status, answer
    assert answer.header("content-type").startswith("text/html")
    assert b"<html" in answer.body


def test_waiting_page_joins_and_tells_when_to_come_back(shop):
    sale, path = gated_sale(shop)
    fill(shop, sale)
    visitor = browser(shop, sale)
    answer = navigate(visitor, path)
    assert_page(answer, 202)
    assert visitor.cookies[f"__Host-sluice-{sale}"] and answer.header("retry-after")
    assert "private" in answer.header("cache-control") and "no-store" in answer.header("cache-control")
    assert visitor.place().json["state"] == "waiting"


def test_page_has_a_policy_and_asks_nobody_else(shop):
    sale, path = gated_sale(shop)
    fill(shop, sale)
    answer = navigate(browser(shop, sale), path)
    policy = answer.header("content-security-policy")
    assert "unsafe-inline" not in policy and "default-src 'none'" in policy
    assert b"http://" not in answer.body.replace(b"http://www.w3.org", b"")
    assert answer.header("x-content-type-options") == "nosniff"


def test_reloading_keeps_the_place(shop):
    sale, path = gated_sale(shop)
    fill(shop, sale)
    visitor, behind = browser(shop, sale), browser(shop, sale)
    navigate(visitor, path), navigate(visitor, path), navigate(behind, path)
    for _ in range(50):
        navigate(visitor, path)
    assert visitor.place().json["position"] == 1 and behind.place().json["position"] == 2


def test_json_is_answered_where_json_is_the_best_type(shop):
    sale, path = gated_sale(shop)
    fill(shop, sale)
    for accept, kind in (("application/json", "json"), ("application/json, text/html;q=0.8", "json"),
                         ("text/html,application/json;q=0.1", "html"),
                         ("text/html, application/json;q=0", "html")):
        answer = shop.connect().get(path, {"accept": accept, "sec-fetch-mode": "navigate"})
        assert answer.status == 202 and kind in answer.header("content-type"), (accept, answer)


def test_turn_is_claimed_by_navigation_and_forwarded(shop):
    sale, path = gated_sale(shop)
    visitor = browser(shop, sale, shop.token("walker"))
    answer = navigate(visitor, f"{path}/a/b?c=d")
    assert answer.status == 200, answer
    assert f"__Host-sluice-pass-{sale}" in visitor.cookies
    assert "no-store" in answer.header("cache-control")


def test_upstream_sees_our_fields_and_none_of_the_clients(shop):
    sale, path = gated_sale(shop)
    visitor = browser(shop, sale, shop.token("walker"))
    navigate(visitor, path)
    answer = visitor.connection.get(f"{path}/x?y=z", visitor.headers(**{
        "accept": "application/json", "sluice-account": "jane", "sluice-sale": "other",
        "forwarded": "for=6.6.6.6", "x-forwarded-host": "evil.test", "x-forwarded-proto": "http",
        "sluice-done": "1", "traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-01",
        "expect": "100-continue", "x_account": "2"}))
    assert answer.status == 200, answer
    seen = answer.json
    assert (seen["method"], seen["path"]) == ("GET", f"{path}/x?y=z")
    fields = {name.lower(): value for name, value in dict(seen["headers"]).items()}
    assert (fields["sluice-account"], fields["sluice-sale"]) == ("walker", sale)
    assert fields["sluice-pass"] == decode_jwt(visitor.cookies[f"__Host-sluice-pass-{sale}"])[1]["jti"] \
        or fields["sluice-pass"].count(".") == 2
    assert "6.6.6.6" not in fields["forwarded"] and "evil" not in json.dumps(fields)
    assert fields["x-forwarded-proto"] == "https"
    assert "expect" not in fields and "x_account" not in fields and "sluice-done" not in fields
    assert "__Host-sluice" not in fields.get("cookie", "")


def test_forged_fields_of_a_guest_are_stripped(shop):
    sale, path = gated_sale(shop)
    guest = fill(shop, sale)
    answer = guest.connection.get(path, guest.headers(**{"sluice-account": "jane"}))
    fields = {name.lower(): value for name, value in dict(answer.json["headers"]).items()}
    assert fields["sluice-account"] != "jane"


def test_prefix_ends_at_a_segment_border(shop):
    sale, path = gated_sale(shop)
    fill(shop, sale)
    connection = shop.connect()
    assert connection.get(path, NAVIGATION).status == 202
    assert connection.get(f"{path}/deep/er", NAVIGATION).status == 202
    assert connection.get(f"{path}?x=y", NAVIGATION).status == 202
    assert connection.get(f"{path}x", NAVIGATION).status == 404


def test_exact_rules_match_nothing_below(shop):
    name = shop.fresh("e")
    shop.sale(identity="guest", upstream="shop",
              match=[{"host": None, "path": f"/{name}", "prefix": False}])
    connection = shop.connect()
    assert connection.get(f"/{name}", NAVIGATION).status == 202
    assert connection.get(f"/{name}/x", NAVIGATION).status == 404


def test_bypass_is_forwarded_in_every_state_without_pass(shop):
    sale, path = gated_sale(shop)
    connection = shop.connect()
    for verb in (None, "pause", "close"):
        if verb:
            assert shop.operate(sale, verb, {"hard": True} if verb == "pause" else None).status == 200
            shop.wait_state(sale, "paused" if verb == "pause" else "closed")
        answer = connection.post(f"{path}/pay/notice", {"paid": True}, {"accept": "application/json"})
        assert answer.status == 200 and answer.json["method"] == "POST", (verb, answer)
        assert not answer.all("set-cookie")
    assert shop.stack.metrics().value("sluice_passes_issued_total", sale=sale) == 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_other_methods_without_pass_are_403_and_their_body_is_not_read(shop, method):
    sale, path = gated_sale(shop)
    answer = shop.connect().request(method, path, body="x" * 20_000)
    assert (answer.status, answer.json["code"]) == (403, "pass_required")


def test_options_is_204_and_head_takes_no_ticket(shop):
    sale, path = gated_sale(shop)
    connection = shop.connect()
    assert connection.request("OPTIONS", path).status == 204
    head = connection.request("HEAD", path, NAVIGATION)
    assert head.status == 202 and not head.body and not head.all("set-cookie")
    assert shop.stack.metrics().value("sluice_line_waiting", sale=sale) == 0


@pytest.mark.parametrize("headers", [
    {"sec-fetch-mode": "cors", "accept": "text/html"}, {"sec-fetch-mode": "no-cors"},
    {**NAVIGATION, "sec-purpose": "prefetch;prerender"}, {**NAVIGATION, "purpose": "prefetch"},
    {"accept": "image/avif,*/*"}])
def test_what_is_no_navigation_never_joins(shop, headers):
    sale, path = gated_sale(shop)
    answer = shop.connect().get(path, headers)
    assert answer.status == 202 and not answer.all("set-cookie")
    assert shop.stack.metrics().value("sluice_line_waiting", sale=sale) == 0


def test_scheduled_page_is_202_without_a_ticket(shop):
    sale, path = gated_sale(shop, opens_at="2099-01-01T00:00:00Z")
    answer = navigate(browser(shop, sale), path)
    assert_page(answer, 202)
    assert not answer.all("set-cookie")


@pytest.mark.parametrize("state", ["sold_out", "closed"])
def test_last_pages_are_public_without_cookie(shop, state):
    sale, path = gated_sale(shop)
    if state == "closed":
        shop.operate(sale, "close")
        shop.wait_state(sale, "closed")
    else:
        shop.sell_out(sale)
    visitor = browser(shop, sale)
    visitor.cookies = {"a": "b"}
    answer = navigate(visitor, path)
    assert_page(answer, 410)
    control = answer.header("cache-control")
    assert "public" in control and "no-store" not in control
    assert not answer.all("set-cookie")
    assert {part.strip().lower() for part in answer.header("vary").split(",")} == {
        "accept", "accept-language"}


def test_account_sale_without_account_is_a_401_page_with_the_way_to_sign_in(shop):
    sale, path = gated_sale(shop, identity="account", login_url="https://shop.test/login")
    answer = navigate(browser(shop, sale), path)
    assert_page(answer, 401)
    assert b"https://shop.test/login" in answer.body


def test_pass_alone_suffices_on_gated_pages(shop):
    sale, path = gated_sale(shop, identity="account", units=2)
    visitor = browser(shop, sale, shop.token())
    assert navigate(visitor, path).status == 200
    visitor.token = None
    assert navigate(visitor, path).status == 200


def test_hard_pause_stops_those_inside(shop):
    sale, path = gated_sale(shop)
    visitor = browser(shop, sale, shop.token())
    assert navigate(visitor, path).status == 200
    shop.operate(sale, "pause", {"hard": True})
    shop.wait_state(sale, "paused")
    assert_page(navigate(visitor, path), 503)


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1.evil.test"])
def test_hosts_not_served_are_421(shop, host):
    answer = shop.connect().get(f"{API}/sales", authority=host)
    assert (answer.status, answer.json["code"]) == (421, "misdirected")


def test_anything_else_is_404(shop):
    for path in ("/", "/favicon.ico", "/_sluice", "/_sluice/", "/_sluice/v1", "/_sluice/v2/sales",
                 "/v1/sales", "/metrics", "/readyz", "/healthz", "/_sluice/v1/sales/x/nothing"):
        answer = shop.connect().get(path)
        assert (answer.status, answer.json["code"]) == (404, "not_found"), path
