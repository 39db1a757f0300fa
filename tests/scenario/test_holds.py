"""Holds by a pass: reserve, read, extend, release, pay, and what a pass is worth."""
import concurrent.futures
import datetime
import time

import pytest

from run.process import wait_until
from shopper import API, Shopper, decode_jwt

HOLD = {"hold", "sale", "qty", "state", "expires_at", "extended", "created_at", "replaces"}


def admitted(shop, sale, **more):
    buyer = shop.buyer(sale, **more)
    buyer.enter()
    return buyer


def assert_problem(answer, status, code):
    assert (answer.status, answer.json["code"]) == (status, code), answer


def test_hold_is_201_with_the_members_of_the_contract(shop):
    sale = shop.sale(units=2, hold_seconds=60)
    answer = admitted(shop, sale).hold()
    hold = answer.json
    assert answer.status == 201 and set(hold) >= HOLD, answer
    assert (hold["sale"], hold["qty"], hold["state"], hold["extended"], hold["replaces"]) == (
        sale, 1, "held", False, None)
    life = (datetime.datetime.fromisoformat(hold["expires_at"])
            - datetime.datetime.fromisoformat(hold["created_at"]))
    assert 59 <= life.total_seconds() <= 61
    assert "no-store" in answer.header("cache-control")
    stock = shop.stock(sale)
    assert (stock["available"], stock["held"], stock["sold"]) == (1, 1, 0)


def test_pass_becomes_a_holder_pass_to_the_end_of_the_hold(shop):
    sale = shop.sale(hold_seconds=100)
    buyer = admitted(shop, sale)
    before = decode_jwt(buyer.pass_)[1]
    answer = buyer.hold()
    after = decode_jwt(buyer.pass_)[1]
    assert after["use"] == "holder" and after["jti"] == before["jti"] and after["exp"] > before["exp"]
    end = datetime.datetime.fromisoformat(answer.json["expires_at"]).timestamp()
    assert abs(after["exp"] - end) <= 2


def test_without_a_pass_it_is_403(shop):
    sale = shop.sale()
    assert_problem(shop.buyer(sale).hold(), 403, "pass_required")


def test_waiting_is_no_pass(shop):
    sale = shop.sale(units=1)
    admitted(shop, sale)
    waiting = shop.buyer(sale)
    waiting.join()
    assert_problem(waiting.hold(), 403, "pass_required")


@pytest.mark.parametrize("key", [None, "", "x" * 129, "caf\u00e9", "tab\tbetween"])
def test_bad_idempotency_key_is_400(shop, key):
    buyer = admitted(shop, shop.sale())
    headers = buyer.headers()
    if key is not None:
        headers["idempotency-key"] = key
    answer = buyer.connection.post(f"{API}/sales/{buyer.sale}/holds", {"qty": 1}, headers)
    assert answer.status == 400, answer
    assert answer.json["code"] in ("idempotency_key_required", "bad_request")


@pytest.mark.parametrize("body", [
    "", "{", "[]", "null", '{"qty":0}', '{"qty":-1}', '{"qty":1.5}', '{"qty":"1"}', '{"qty":null}',
    '{"qty":1e3}', '{"qty":9007199254740993}', '{"qty":1,"qty":2}', '{"qty":1}x'])
def test_bad_body_is_400_and_asks_nobody(shop, body):
    buyer = admitted(shop, shop.sale())
    before = shop.stack.metrics().value("sluice_origin_requests_total", kind="hold")
    answer = buyer.connection.post(f"{API}/sales/{buyer.sale}/holds", body,
                                   buyer.headers(**{"idempotency-key": "k"}))
    assert_problem(answer, 400, "bad_request")
    assert shop.stack.metrics().value("sluice_origin_requests_total", kind="hold") == before


def test_large_body_is_413(shop):
    buyer = admitted(shop, shop.sale())
    answer = buyer.connection.post(f"{API}/sales/{buyer.sale}/holds", '{"qty":1' + " " * 100_000 + "}",
                                   buyer.headers(**{"idempotency-key": "k"}))
    assert_problem(answer, 413, "body_too_large")


def test_malformed_is_400_even_when_sold_out(shop):
    sale = shop.sale(units=1)
    shop.sell_out(sale)
    answer = shop.buyer(sale).connection.post(f"{API}/sales/{sale}/holds", "{",
                                              {"idempotency-key": "k"})
    assert_problem(answer, 400, "bad_request")


def test_sold_out_is_409_from_memory(shop):
    sale = shop.sale(units=1)
    shop.sell_out(sale)
    before = shop.stack.metrics().value("sluice_origin_requests_total", kind="hold")
    for _ in range(5):
        assert_problem(shop.buyer(sale).hold(), 409, "sold_out")
    assert shop.stack.metrics().value("sluice_origin_requests_total", kind="hold") == before


@pytest.mark.parametrize("fields", [{"opens_at": "2099-01-01T00:00:00Z"},
                                    {"opens_at": "2099-01-01T00:00:00Z",
                                     "prequeue_at": "2020-01-01T00:00:00Z"}])
def test_before_the_opening_it_is_409_not_open(shop, fields):
    assert_problem(shop.buyer(shop.sale(**fields)).hold(), 409, "not_open")


def test_after_the_close_it_is_410(shop):
    sale = shop.sale()
    shop.operate(sale, "close")
    shop.wait_state(sale, "closed")
    assert_problem(shop.buyer(sale).hold(), 410, "closed")


def test_pass_of_another_account_is_no_pass(shop):
    sale = shop.sale()
    owner, other = admitted(shop, sale), shop.buyer(sale)
    other.pass_ = owner.pass_
    assert_problem(other.hold(), 403, "pass_required")
    assert owner.hold().status == 201


def test_forged_passes_of_one_address_are_limited_and_others_are_free(shop):
    sale = shop.sale()
    good, bad = admitted(shop, sale), shop.buyer(
        sale, connection=shop.connect(always={"x-forwarded-for": shop.address()}))
    statuses = []
    for number in range(120):
        bad.pass_ = good.pass_[:-5] + f"{number:05}"
        statuses.append(bad.hold().status)
    assert set(statuses) == {403, 429} and statuses[-1] == 429
    assert good.hold().status == 201


@pytest.mark.parametrize("second", ["kb", "ka"])
def test_two_keys_in_one_request_are_400(shop, second):
    buyer = admitted(shop, shop.sale())
    answer = buyer.connection.finish(buyer.connection.start(
        "POST", f"{API}/sales/{buyer.sale}/holds",
        [*buyer.headers().items(), ("idempotency-key", "ka"), ("idempotency-key", second)],
        b'{"qty":1}'))
    assert_problem(answer, 400, "bad_request")
    assert buyer.hold(key="ka").status == 201


def test_pass_of_another_sale_is_no_pass(shop):
    here, there = shop.sale(), shop.sale()
    buyer = admitted(shop, here, account="mover")
    buyer.sale = there
    assert_problem(buyer.hold(), 403, "pass_required")


def test_pass_without_account_token_is_401_on_every_holds_path(shop):
    sale = shop.sale()
    buyer = admitted(shop, sale)
    hold = buyer.hold().json["hold"]
    buyer.token = None
    for answer in (buyer.hold(), buyer.read_hold(hold), buyer.extend(hold), buyer.release(hold)):
        assert_problem(answer, 401, "account_required")
        assert answer.header("www-authenticate").startswith("Bearer")


def test_changed_pass_is_refused(shop):
    buyer = admitted(shop, shop.sale())
    head, body, signature = buyer.pass_.split(".")
    swap = "B" if signature[5] != "B" else "C"
    buyer.pass_ = f"{head}.{body}.{signature[:5]}{swap}{signature[6:]}"
    assert_problem(buyer.hold(), 403, "pass_required")


def test_limit_of_the_account_is_403_at_the_second_hold(shop):
    buyer = admitted(shop, shop.sale())
    assert buyer.hold().status == 201
    assert_problem(buyer.hold(), 403, "buyer_limit")


def test_released_hold_gives_unit_and_allowance_back(shop):
    sale = shop.sale(units=1)
    buyer = admitted(shop, sale)
    hold = buyer.hold().json["hold"]
    answer = buyer.release(hold)
    assert (answer.status, answer.json["state"]) == (200, "released")
    assert shop.stock(sale)["available"] == 1
    assert buyer.release(hold).status == 200
    shop.wait_state(sale, "open")
    buyer.pass_ = None
    buyer.enter()
    assert buyer.hold().status == 201


def test_per_account_units_may_be_taken_at_once(shop):
    sale = shop.sale(units=5, per_account=3)
    buyer = admitted(shop, sale)
    assert_problem(buyer.hold(qty=4), 403, "buyer_limit")
    answer = buyer.hold(qty=3)
    assert (answer.status, answer.json["qty"]) == (201, 3)


def test_not_enough_says_what_is_available(shop):
    sale = shop.sale(units=3, per_account=3)
    buyer = admitted(shop, sale)
    assert shop.reserve(sale, qty=1).status == 201
    answer = buyer.hold(qty=3)
    assert_problem(answer, 409, "not_enough")
    assert answer.json["available"] == 2


def test_all_held_keeps_the_pass_and_says_when_to_come_back(shop):
    sale = shop.sale(units=1)
    buyer = admitted(shop, sale)
    other = shop.reserve(sale).json["hold"]
    answer = buyer.hold()
    assert_problem(answer, 409, "all_held")
    assert int(answer.header("retry-after")) >= 1
    shop.verb(other, "release")
    assert buyer.hold().status == 201


def test_further_hold_is_told_why_there_is_none(shop):
    """The gate has no room for it: sold out, or more than an account may have."""
    sale = shop.sale(units=2, per_account=3)
    buyer = admitted(shop, sale)
    bought = buyer.hold(qty=2).json["hold"]
    assert_problem(buyer.hold(), 409, "all_held")
    assert_problem(buyer.hold(qty=4), 403, "buyer_limit")
    assert shop.confirm(bought).status == 200
    shop.wait_state(sale, "sold_out")
    assert_problem(buyer.hold(), 409, "sold_out")


def test_extension_comes_once_and_repeats_itself(shop):
    sale = shop.sale(hold_seconds=60, extend_seconds=30)
    buyer = admitted(shop, sale)
    hold = buyer.hold().json
    first, again = buyer.extend(hold["hold"]), buyer.extend(hold["hold"])
    assert (first.status, again.status) == (200, 200) and first.json == again.json
    assert first.json["extended"] is True
    grown = (datetime.datetime.fromisoformat(first.json["expires_at"])
             - datetime.datetime.fromisoformat(hold["expires_at"]))
    assert grown.total_seconds() == 30


def test_own_hold_is_readable_without_a_pass_and_foreign_ones_are_404(shop):
    sale = shop.sale()
    buyer = admitted(shop, sale)
    hold = buyer.hold().json
    buyer.pass_ = buyer.ticket = None
    assert buyer.read_hold(hold["hold"]).json == hold
    other = shop.buyer(sale)
    for answer in (other.read_hold(hold["hold"]), other.extend(hold["hold"]),
                   other.release(hold["hold"]), buyer.read_hold("nothing")):
        assert_problem(answer, 404, "not_found")


def test_confirmed_hold_is_sold_and_final(shop):
    sale = shop.sale()
    buyer = admitted(shop, sale)
    hold = buyer.hold().json["hold"]
    answer = shop.confirm(hold)
    assert (answer.status, answer.json["state"]) == (200, "sold")
    assert buyer.read_hold(hold).json["state"] == "sold"
    assert_problem(buyer.release(hold), 409, "already_sold")
    assert_problem(buyer.extend(hold), 409, "already_sold")


def test_expired_hold_goes_to_the_next_in_line(shop):
    sale = shop.sale(units=1, hold_seconds=1)
    first, second = shop.buyer(sale), shop.buyer(sale)
    first.enter()
    hold = first.hold().json["hold"]
    second.join()
    second.enter(seconds=15)
    assert second.hold().status == 201
    assert first.read_hold(hold).json["state"] == "expired"


CLOCK_SKEW_S = 2  # that the gateway's clock may stand behind the database's, which is ours


def test_expired_pass_is_403_for_a_new_key_and_repeats_the_old_one(shop):
    # long enough that a busy machine gets to the hold and to a look at the pass in force
    sale = shop.sale(units=5, hold_seconds=8, first_use_seconds=8, pass_seconds=8)
    buyer = admitted(shop, sale)
    first = buyer.hold(key="mine")
    assert first.status == 201, first
    end = decode_jwt(buyer.pass_)[1]["exp"]
    last_good_at = None

    def is_over():
        nonlocal last_good_at
        asked_at = time.time()
        answer = buyer.hold(qty=2)  # more than it may have: asks, and changes nothing
        if answer.status == 403 and answer.json["code"] == "buyer_limit":
            last_good_at = asked_at
            return False
        assert_problem(answer, 403, "pass_expired")
        return True
    wait_until(is_over, 25, "the end of the pass")
    assert time.time() >= end, "the pass was over before its exp"
    assert last_good_at, "the pass was never seen in force"
    assert last_good_at <= end + CLOCK_SKEW_S + 1, "the pass outlived its exp"
    again = buyer.hold(key="mine")
    assert (again.status, again.json["hold"]) == (200, first.json["hold"]), again
    assert again.header("idempotent-replayed") == "true"


def test_hard_pause_refuses_a_good_pass(shop):
    sale = shop.sale()
    buyer = admitted(shop, sale)
    shop.operate(sale, "pause", {"hard": True})
    shop.wait_state(sale, "paused")
    answer = buyer.hold()
    assert_problem(answer, 503, "paused")
    assert answer.header("retry-after")
    shop.operate(sale, "resume")
    shop.wait_state(sale, "open")
    assert buyer.hold().status == 201


def test_soft_pause_lets_a_good_pass_hold(shop):
    sale = shop.sale()
    buyer = admitted(shop, sale)
    shop.operate(sale, "pause")
    shop.wait_state(sale, "paused")
    assert buyer.hold().status == 201


def test_revoked_account_is_refused_within_a_second(shop):
    sale = shop.sale()
    buyer = admitted(shop, sale, account="bad-bot")
    assert shop.operate(sale, "revoke", {"account": "bad-bot"}).status == 200

    def is_refused():
        answer = buyer.hold()
        return answer.status == 403 and answer.json["code"] in ("pass_revoked", "pass_required",
                                                                "buyer_limit")
    wait_until(is_refused, 1.5, "revoked", promised=True)


def test_hundred_parallel_claims_of_one_account_are_one_pass(shop):
    sale = shop.sale(units=50)
    connections = [shop.connect() for _ in range(4)]
    token = shop.token("tabs")

    def claim(connection):
        streams = [connection.start("POST", f"{API}/sales/{sale}/line",
                                    {"authorization": f"Bearer {token}"}) for _ in range(25)]
        return [connection.finish(stream) for stream in streams]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = [answer for part in pool.map(claim, connections) for answer in part]
    passes = {decode_jwt(answer.json["pass"])[1]["jti"] for answer in answers}
    assert len(answers) == 100 and len(passes) == 1
    assert shop.stack.metrics().value("sluice_passes_outstanding", sale=sale) == 1


def test_no_more_passes_than_units_are_outstanding(shop):
    sale = shop.sale(units=3)
    states = [shop.buyer(sale).join().json["state"] for _ in range(8)]
    assert states.count("admitted") == 3 and states.count("waiting") == 5
    metrics = shop.stack.metrics()
    assert metrics.value("sluice_passes_outstanding", sale=sale) == 3
    assert metrics.value("sluice_passes_issued_total", sale=sale) == 3


def test_overbook_issues_more_passes_than_units(shop):
    sale = shop.sale(units=2, overbook=1.5)
    states = [shop.buyer(sale).join().json["state"] for _ in range(5)]
    assert states.count("admitted") == 3


def test_pass_in_a_cookie_counts_as_one_in_the_header(shop):
    sale = shop.sale()
    buyer = Shopper(shop.connect(), sale, shop.token(), mode="cookie")
    buyer.enter()
    assert f"__Host-sluice-pass-{sale}" in buyer.cookies
    assert buyer.hold().status == 201
