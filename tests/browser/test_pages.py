"""What people see, in a real browser; screenshots go to build/screenshots."""
import os

import pytest

from chrome import Chrome
from run.stack import BUILD

SHOTS = os.path.join(BUILD, "screenshots")


@pytest.fixture(scope="module")
def running_chrome():
    chrome = Chrome()
    yield chrome
    chrome.close()


@pytest.fixture
def chrome(shop, running_chrome):
    """After `shop`, so that the pages end before the connections are counted."""
    yield running_chrome
    running_chrome.close_pages()


@pytest.fixture
def gated(shop):
    """A sale of one unit with a page of its own: (sale, url)."""
    def make(units=1, **fields):
        path = "/" + shop.fresh("page")
        sale = shop.sale(units=units, **{
            "identity": "guest", "upstream": "shop",
            "match": [{"host": None, "path": path, "prefix": True}], **fields})
        return sale, shop.stack.url + path
    return make


def assert_decent(page):
    """Title, language, one heading, fits a narrow screen, no complaint."""
    assert page.ask("document.title.length > 0") and page.ask("document.documentElement.lang")
    assert page.ask("document.querySelectorAll('h1').length") == 1
    assert page.ask("document.querySelector('meta[name=viewport]') !== null")
    assert page.ask("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.complaints() == []


def test_waiting_page_shows_the_place_and_enters_by_itself(shop, chrome, gated):
    sale, url = gated()
    other = shop.guest(sale)
    other.enter()
    page = chrome.page()
    page.go(url)
    page.screenshot(f"{SHOTS}/waiting.png")
    assert_decent(page)
    assert "1" in page.text() and page.ask("document.querySelector('[aria-live],[role=status]') !== null")
    cookies = page.cookies()
    assert cookies[f"__Host-sluice-{sale}"]["httpOnly"] and cookies[f"__Host-sluice-{sale}"]["secure"]
    assert other.leave().status == 204
    page.wait("document.querySelector('h1') && !document.querySelector('[aria-live],[role=status]')", 60)
    page.screenshot(f"{SHOTS}/inside.png")
    assert f"__Host-sluice-pass-{sale}" in page.cookies()


def test_waiting_page_works_without_script(shop, chrome, gated):
    sale, url = gated()
    other = shop.guest(sale)
    other.enter()
    page = chrome.page(script=False)
    page.go(url)
    other.leave()
    page.wait("document.querySelector('h1') && !document.querySelector('[aria-live],[role=status]')", 90)
    assert f"__Host-sluice-pass-{sale}" in page.cookies()


def test_waiting_page_fits_a_phone(shop, chrome, gated):
    sale, url = gated()
    shop.guest(sale).enter()
    page = chrome.page(width=320, height=568)
    page.go(url)
    page.screenshot(f"{SHOTS}/waiting-phone.png")
    assert_decent(page)


@pytest.mark.parametrize("state, word", [("sold_out", "sold out"), ("closed", "closed"),
                                         ("paused", "pause"), ("not_open", "open")])
def test_every_other_page_says_what_is(shop, chrome, gated, state, word):
    sale, url = gated(opens_at="2099-01-01T00:00:00Z" if state == "not_open" else "2020-01-01T00:00:00Z")
    if state == "sold_out":
        shop.sell_out(sale)
    elif state in ("closed", "paused"):
        shop.operate(sale, {"closed": "close", "paused": "pause"}[state])
        shop.wait_state(sale, state)
    page = chrome.page()
    page.go(url)
    page.screenshot(f"{SHOTS}/{state}.png")
    assert_decent(page)
    assert word in page.text().lower()


def test_page_turns_to_sold_out_while_one_waits(shop, chrome, gated):
    sale, url = gated()
    shop.guest(sale).enter()
    page = chrome.page()
    page.go(url)
    shop.sell_out(sale)
    page.wait("document.body.innerText.toLowerCase().includes('sold out')", 60)


def test_account_sale_asks_to_sign_in(chrome, gated):
    _, url = gated(identity="account", login_url="https://127.0.0.1/login")
    page = chrome.page()
    page.go(url)
    page.screenshot(f"{SHOTS}/sign-in.png")
    assert_decent(page)
    assert page.ask("document.querySelector('a[href=\"https://127.0.0.1/login\"]') !== null")


def test_flag_is_shown_by_a_browser(shop, chrome, gated):
    sale, _ = gated()
    page = chrome.page()
    page.go(f"{shop.stack.url}/_sluice/v1/sales/{sale}")
    assert '"state":"open"' in page.text().replace(" ", "")
