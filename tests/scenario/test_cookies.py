"""Cookies and headers that carry ticket and pass."""
import pytest

from shopper import API, Shopper


def attributes(field):
    return {part.strip().lower() for part in field.split(";")[1:]}


def join(shop, sale, headers=()):
    fields = {"authorization": f"Bearer {shop.token()}", **dict(headers)}
    return shop.connect().post(f"{API}/sales/{sale}/line", headers=fields)


def test_join_without_any_cookie_gets_cookies_and_members(shop):
    sale = shop.sale()
    answer = join(shop, sale)
    assert set(answer.cookies) == {f"__Host-sluice-{sale}", f"__Host-sluice-pass-{sale}"}
    assert answer.json["ticket"] == answer.cookies[f"__Host-sluice-{sale}"]
    assert answer.json["pass"] == answer.cookies[f"__Host-sluice-pass-{sale}"]


def test_cookies_are_host_bound_and_hidden_from_scripts(shop):
    for field in join(shop, shop.sale()).all("set-cookie"):
        have = attributes(field)
        assert {"secure", "httponly", "samesite=lax", "path=/"} <= have
        assert not any(part.startswith("domain") for part in have)


def test_client_with_cookies_gets_no_members(shop):
    sale = shop.sale()
    answer = join(shop, sale, {"cookie": "theme=dark"})
    assert not answer.json.get("ticket") and not answer.json.get("pass")
    assert f"__Host-sluice-{sale}" in answer.cookies


def test_client_with_the_header_gets_members_and_no_cookies(shop):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    waiting = shop.buyer(sale)
    waiting.join()
    answer = waiting.join(cookie="theme=dark")
    assert answer.json["ticket"] and not answer.all("set-cookie")


def test_cookie_and_header_that_differ_are_400(shop):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    one, two = shop.buyer(sale), shop.buyer(sale)
    one.join(), two.join()
    answer = one.place(cookie=f"__Host-sluice-{sale}={two.ticket}")
    assert (answer.status, answer.json["code"]) == (400, "bad_request")
    assert one.place(cookie=f"__Host-sluice-{sale}={one.ticket}").status == 202


@pytest.mark.parametrize("form", ["a=1; {name}={ticket}; b=2", "b=2;{name}={ticket}", '{name}="{ticket}"',
                                  "{name}={ticket}; c=x==", "a; {name}={ticket}", "=x; {name}={ticket}"])
def test_ticket_is_found_in_any_cookie_line(shop, form):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    waiting = shop.buyer(sale)
    waiting.join()
    cookie = form.format(name=f"__Host-sluice-{sale}", ticket=waiting.ticket)
    answer = shop.connect().get(f"{API}/sales/{sale}/line", {"cookie": cookie})
    assert (answer.status, answer.json["position"]) == (202, 1), answer


def test_ticket_is_found_when_cookies_come_as_separate_fields(shop):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    waiting = shop.buyer(sale)
    waiting.join()
    answer = shop.connect().get(f"{API}/sales/{sale}/line", [
        ("cookie", "a=1"), ("cookie", f"__Host-sluice-{sale}={waiting.ticket}"), ("cookie", "b=2")])
    assert answer.status == 202


@pytest.mark.parametrize("value", ["x", "%00", "=", "A" * 8000, "caf\u00e9"])
def test_garbage_in_the_cookie_is_a_new_place_never_5xx(shop, value):
    sale = shop.sale()
    answer = join(shop, sale, {"cookie": f"__Host-sluice-{sale}={value}"})
    assert answer.status == 200 and answer.cookies[f"__Host-sluice-{sale}"] not in ("", value)


def test_renewed_pass_comes_with_the_hold_as_cookie_or_header(shop):
    sale = shop.sale(units=5)
    app = shop.buyer(sale)
    app.enter()
    answer = app.hold()
    assert answer.header("sluice-pass") and not answer.all("set-cookie")
    browser = Shopper(shop.connect(), sale, shop.token(), mode="cookie")
    browser.enter()
    answer = browser.hold()
    assert f"__Host-sluice-pass-{sale}" in answer.cookies and not answer.header("sluice-pass")


def test_leaving_takes_the_cookies_back(shop):
    sale = shop.sale()
    browser = Shopper(shop.connect(), sale, shop.token(), mode="cookie")
    browser.enter()
    answer = browser.leave()
    assert answer.status == 204
