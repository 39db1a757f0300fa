"""The flag: one public document a sale, cacheable, deaf to query and headers."""
import datetime
import re

import pytest

from shopper import API

FLAG = {"sale", "state", "sold_out", "opens_at", "closes_at", "left", "version", "as_of"}


def cache_seconds(answer):
    return int(re.search(r"s-maxage=(\d+)", answer.header("cache-control"))[1])


def test_open_sale_has_every_member_and_no_other(shop):
    sale = shop.sale()
    answer = shop.wait_state(sale, "open")
    assert set(answer.json) == FLAG
    assert answer.json["sale"] == sale and answer.json["sold_out"] is False
    assert answer.json["closes_at"] is None and answer.json["left"] is None
    for name in ("opens_at", "as_of"):
        assert datetime.datetime.fromisoformat(answer.json[name]).tzinfo


def test_headers_are_those_of_a_shared_document(shop):
    answer = shop.wait_state(shop.sale(), "open")
    control = answer.header("cache-control")
    assert "public" in control and "stale-while-revalidate=" in control
    assert "stale-if-error=" in control and cache_seconds(answer) == 1
    assert answer.header("age") is None and not answer.all("set-cookie")
    assert answer.header("access-control-allow-origin") == "*"
    assert answer.header("surrogate-key") == f"sluice sale-{answer.json['sale']}"
    assert "cookie" not in (answer.header("vary") or "").lower()
    assert answer.header("etag").startswith('"')
    assert answer.header("content-type").startswith("application/json")


@pytest.mark.parametrize("match", ["{etag}", "*", '"other", {etag}', "W/{etag}"])
def test_matching_etag_is_answered_304_without_body(shop, match):
    sale = shop.sale()
    first = shop.wait_state(sale, "open")
    answer = shop.connect().get(f"{API}/sales/{sale}",
                                {"if-none-match": match.format(etag=first.header("etag"))})
    assert (answer.status, answer.body) == (304, b"")
    assert answer.header("etag") == first.header("etag")
    assert answer.header("cache-control") == first.header("cache-control")


def test_other_etag_is_answered_in_full(shop):
    sale = shop.sale()
    answer = shop.connect().get(f"{API}/sales/{sale}", {"if-none-match": '"other"'})
    assert answer.status == 200 and answer.json["sale"] == sale


def test_head_has_the_headers_of_get_and_no_body(shop):
    sale = shop.sale()
    get = shop.wait_state(sale, "open")
    head = shop.connect().request("HEAD", f"{API}/sales/{sale}")
    assert (head.status, head.body) == (200, b"")
    assert head.header("etag") == get.header("etag")
    assert head.header("content-length") == str(len(get.body))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_other_methods_are_405(shop, method):
    answer = shop.connect().request(method, f"{API}/sales/{shop.sale()}")
    assert answer.status == 405 and answer.json["code"] == "method_not_allowed"
    assert "GET" in answer.header("allow")


def test_unknown_sale_is_a_404_problem(shop):
    answer = shop.connect().get(f"{API}/sales/nobody-made-this")
    assert answer.status == 404 and answer.json["code"] == "not_found"
    assert answer.header("content-type") == "application/problem+json"


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a" * 64, "a%20b", "%2e%2e", "a.b"])
def test_sale_outside_the_pattern_is_400(shop, name):
    answer = shop.connect().get(f"{API}/sales/{name}")
    assert answer.status == 400 and answer.json["code"] == "bad_request"


def test_query_and_headers_never_change_the_answer(shop):
    sale = shop.sale()
    plain = shop.wait_state(sale, "open")
    connection = shop.connect()
    odd = [("?x=1", {}), ("?sale=other", {"accept": "text/html"}),
           ("", {"accept": "application/xml;q=1, */*;q=0"}),
           ("", {"cookie": "__Host-sluice-x=1; a=b"}),
           ("", {"x-forwarded-host": "evil.test", "x-forwarded-proto": "http"}),
           ("", {"authorization": "Bearer nonsense"}), ("", {"accept-language": "de"}),
           ("", {"accept-encoding": "identity"}), ("", {"range": "bytes=0-1"})]
    for query, headers in odd:
        answer = connection.get(f"{API}/sales/{sale}{query}", headers)
        assert (answer.status, answer.body) == (200, plain.body), (query, headers)
        assert answer.header("etag") == plain.header("etag")
        assert not answer.all("set-cookie")


def test_version_and_as_of_stay_while_no_other_field_changes(shop):
    sale = shop.sale()
    first = shop.wait_state(sale, "open")
    shop.reserve(sale)
    second = shop.connect().get(f"{API}/sales/{sale}")
    assert (second.json["version"], second.json["as_of"]) == (
        first.json["version"], first.json["as_of"])


def test_exact_left_follows_stock(shop):
    sale = shop.sale(units=3, left="exact")
    first = shop.wait_flag(sale, lambda flag: flag["left"] == 3)
    shop.reserve(sale)
    second = shop.wait_flag(sale, lambda flag: flag["left"] == 2)
    assert second.json["version"] > first.json["version"]


def test_scheduled_sale_says_so(shop):
    sale = shop.sale(opens_at="2099-01-01T00:00:00Z")
    assert shop.wait_state(sale, "scheduled").json["sold_out"] is False


def test_prequeue_is_told(shop):
    sale = shop.sale(opens_at="2099-01-01T00:00:00Z", prequeue_at="2020-01-01T00:00:00Z")
    shop.wait_state(sale, "prequeue")


def test_all_held_is_not_sold_out(shop):
    sale = shop.sale(units=1)
    assert shop.reserve(sale).status == 201
    answer = shop.wait_state(sale, "all_held")
    assert answer.json["sold_out"] is False and cache_seconds(answer) == 1


def test_sold_out_keeps_five_seconds_and_is_undone_by_stock(shop):
    sale = shop.sale(units=1)
    shop.sell_out(sale)
    answer = shop.wait_state(sale, "sold_out")
    assert answer.json["sold_out"] is True and cache_seconds(answer) == 5
    shop.put_stock(sale, 2)
    assert shop.wait_state(sale, "open", seconds=3).json["sold_out"] is False


def test_closed_sale_says_so(shop):
    sale = shop.sale()
    assert shop.operate(sale, "close").status == 200
    assert cache_seconds(shop.wait_state(sale, "closed")) == 5


def test_sale_closes_by_its_own_clock(shop):
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
    sale = shop.sale(closes_at=soon.isoformat())
    shop.wait_state(sale, "closed")


def test_all_flags_are_one_cacheable_document(shop):
    sale = shop.sale()
    shop.wait_state(sale, "open")
    answer = shop.connect().get(f"{API}/sales")
    assert answer.status == 200 and "public" in answer.header("cache-control")
    flags = {flag["sale"]: flag for flag in answer.json["sales"]}
    assert set(flags[sale]) == FLAG
    assert shop.connect().get(
        f"{API}/sales", {"if-none-match": answer.header("etag")}).status in (200, 304)


def test_pass_keys_are_public(shop):
    answer = shop.connect().get(f"{API}/jwks.json")
    keys = answer.json["keys"]
    assert answer.status == 200 and keys and all("d" not in key and "k" not in key for key in keys)
    assert keys[0]["alg"] == "ES256" and keys[0]["kid"]
