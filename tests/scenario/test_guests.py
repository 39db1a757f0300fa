"""Guests: named by cookie, ticket or pass; their first contact is 202."""
import pytest

from run.process import wait_until
from shopper import Shopper, decode_jwt


@pytest.fixture
def sale(shop):
    return shop.sale(units=2, identity="guest")


def test_first_contact_is_202_back_in_a_second(shop, sale):
    answer = shop.guest(sale).join()
    assert (answer.status, answer.json["poll_after_ms"]) == (202, 1000), answer
    assert answer.header("retry-after") == "1" and answer.json["ticket"]


def test_second_contact_is_admitted(shop, sale):
    guest = shop.guest(sale)
    guest.join()
    answer = guest.enter()
    assert answer.json["state"] == "admitted" and guest.hold().status == 201
    assert decode_jwt(guest.pass_)[1]["sub"]


def test_each_first_contact_is_a_guest_of_its_own(shop, sale):
    subs = set()
    for _ in range(2):
        guest = shop.guest(sale)
        guest.enter()
        subs.add(decode_jwt(guest.pass_)[1]["sub"])
    assert len(subs) == 2


def test_the_ticket_in_the_header_names_the_guest(shop, sale):
    guest = shop.guest(sale)
    guest.enter()
    again = shop.guest(sale)
    again.ticket = guest.ticket
    answer = again.join()
    assert answer.status == 200
    assert decode_jwt(again.pass_)[1]["jti"] == decode_jwt(guest.pass_)[1]["jti"]


def test_the_cookie_names_the_guest(shop, sale):
    browser = Shopper(shop.connect(), sale, mode="cookie")
    browser.join()
    assert browser.cookies
    browser.enter()
    other_tab = Shopper(shop.connect(), sale, mode="cookie")
    other_tab.cookies = dict(browser.cookies)
    assert other_tab.join().status == 200
    assert shop.stack.metrics().value("sluice_passes_outstanding", sale=sale) == 1


def test_a_guest_who_never_returns_delays_the_line_by_two_seconds_at_most(shop):
    sale = shop.sale(units=1, identity="guest")
    for _ in range(10):
        shop.guest(sale).join()
    late = shop.guest(sale)
    late.join()
    late.enter(seconds=8)


def test_an_account_token_is_taken_too(shop, sale):
    buyer = shop.buyer(sale, account="member")
    assert buyer.join().status == 200
    assert decode_jwt(buyer.pass_)[1]["sub"] == "member"


def test_guest_joins_of_one_address_are_limited(shop):
    sale = shop.sale(units=1, identity="guest")
    connection = shop.connect(always={"x-forwarded-for": shop.address()})
    answers = [Shopper(connection, sale).join() for _ in range(300)]
    assert {answer.status for answer in answers} == {202, 429}
    assert 200 <= sum(answer.status == 202 for answer in answers) <= 260
    limited = next(answer for answer in answers if answer.status == 429)
    assert limited.json["code"] == "rate_limited" and limited.header("retry-after")
    assert Shopper(shop.connect(), sale).join().status == 202


@pytest.mark.parametrize("spoof", ["6.6.6.6", "not an address", "6.6.6.6, 7.7.7.7"])
def test_rotating_the_left_of_x_forwarded_for_escapes_nothing(shop, spoof):
    sale = shop.sale(units=1, identity="guest")
    address = shop.address()
    connection = shop.connect(always={"x-forwarded-for": f"{spoof}, {address}"})
    answers = [Shopper(connection, sale).join() for _ in range(300)]
    assert 429 in {answer.status for answer in answers}


def test_waiting_guests_are_counted_once(shop):
    sale = shop.sale(units=1, identity="guest")
    first = shop.guest(sale)
    first.enter()
    second = shop.guest(sale)
    second.join()
    for _ in range(5):
        second.join()
    wait_until(lambda: shop.stack.metrics().value("sluice_line_waiting", sale=sale) == 1, 5,
               "one waiting")
