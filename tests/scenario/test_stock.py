"""The origin's stock and the life of a hold, asked straight."""
import concurrent.futures
import datetime

import pytest

from run.process import wait_until


@pytest.fixture
def item(shop):
    name = shop.fresh("i")
    shop.put_stock(name, 5)
    return name


def assert_problem(answer, status, code):
    assert (answer.status, answer.json["code"]) == (status, code), answer
    assert answer.headers["content-type"] == "application/problem+json"


def expired_hold(shop, item, qty=1):
    """A hold past its end; its sale gives it one second."""
    sale = shop.fresh("x")
    answer = shop.stack.origin.put(f"/v1/sales/{sale}", {
        "tenant": shop.tenant, "item": item, "opens_at": "2020-01-01T00:00:00Z",
        "hold_seconds": 1, "per_account": qty})
    assert answer.status in (200, 201), answer
    before = shop.stock(item)["available"]
    hold = shop.reserve(item, qty=qty, sale=sale).json["hold"]
    wait_until(lambda: shop.stock(item)["available"] == before, 10, "the hold is due")
    return hold


def test_stock_has_every_number_of_the_contract(shop, item):
    assert set(shop.stock(item)) >= {"total", "on_hand", "reserved", "available", "held", "sold",
                                     "shipped", "version"}


def test_numbers_follow_a_hold_through_its_life(shop, item):
    def numbers():
        stock = shop.stock(item)
        return tuple(stock[name] for name in
                     ("available", "held", "sold", "shipped", "on_hand", "reserved"))
    assert numbers() == (5, 0, 0, 0, 5, 0)
    hold = shop.reserve(item, qty=2).json["hold"]
    assert numbers() == (3, 2, 0, 0, 5, 2)
    shop.confirm(hold)
    assert numbers() == (3, 0, 2, 0, 5, 2)
    assert shop.verb(hold, "ship").status == 200
    assert numbers() == (3, 0, 2, 2, 3, 0)


def test_total_below_held_and_sold_is_409(shop, item):
    shop.confirm(shop.reserve(item, qty=2).json["hold"])
    shop.reserve(item)
    answer = shop.stack.origin.put(f"/v1/tenants/{shop.tenant}/items/{item}", {"total": 2})
    assert_problem(answer, 409, "conflict")
    assert shop.stack.origin.put(f"/v1/tenants/{shop.tenant}/items/{item}",
                                 {"total": 3}).status == 200
    assert shop.stock(item)["available"] == 0


@pytest.mark.parametrize("body", ["", "{}", '{"total":-1}', '{"total":1.5}', '{"total":"5"}', "[",
                                  '{"total":9223372036854775808}'])
def test_bad_stock_is_400(shop, body):
    answer = shop.stack.origin.put(f"/v1/tenants/shop/items/{shop.fresh('i')}", body)
    assert_problem(answer, 400, "bad_request")


def test_unknown_item_is_404(shop):
    assert_problem(shop.stack.origin.get("/v1/tenants/shop/items/nothing"), 404, "not_found")
    assert_problem(shop.reserve("nothing"), 404, "not_found")


def test_everything_needs_the_service_token(shop, item):
    calls = [("GET", f"/v1/tenants/shop/items/{item}"), ("PUT", f"/v1/tenants/shop/items/{item}"),
             ("GET", "/v1/snapshot"), ("GET", "/v1/sales"), ("GET", "/v1/invariant"),
             ("POST", f"/v1/tenants/shop/items/{item}/holds"), ("GET", "/v1/holds/x")]
    for method, path in calls:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
            answer = shop.stack.origin.call(method, path, None, headers, token=False)
            assert answer.status == 401, (method, path, headers, answer)
            assert answer.headers["www-authenticate"]


def test_health_and_metrics_need_none(shop):
    for path in ("/healthz", "/readyz", "/metrics"):
        assert shop.stack.origin.call("GET", path, token=False).status == 200


def test_journal_tells_each_step(shop, item):
    hold = shop.reserve(item).json["hold"]
    shop.confirm(hold)
    shop.verb(hold, "cancel")
    events = shop.stack.origin.get(f"/v1/holds/{hold}/events").json
    assert [(event["from"], event["to"]) for event in events] == [
        (None, "held"), ("held", "sold"), ("sold", "cancelled")]
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    assert all({"seq", "from", "to", "reason", "actor", "at"} <= set(event) for event in events)


def test_same_payment_notice_three_times_is_three_equal_200(shop, item):
    hold = shop.reserve(item).json["hold"]
    answers = [shop.confirm(hold, "pay-1") for _ in range(3)]
    assert [answer.status for answer in answers] == [200] * 3
    assert answers[0].json == answers[1].json == answers[2].json
    assert shop.stock(item)["sold"] == 1


@pytest.mark.parametrize("captured, payment", [(True, "refund"), (False, "void")])
def test_another_payment_of_a_sold_hold_is_given_back(shop, item, captured, payment):
    hold = shop.reserve(item).json["hold"]
    shop.confirm(hold, "pay-1")
    answer = shop.confirm(hold, "pay-2", captured)
    assert_problem(answer, 409, "already_sold")
    assert (answer.json["payment"], answer.json["state"]) == (payment, "sold")


@pytest.mark.parametrize("verb, code", [("release", "hold_released")])
def test_payment_of_a_released_hold_is_409_even_with_stock_free(shop, item, verb, code):
    hold = shop.reserve(item).json["hold"]
    shop.verb(hold, verb)
    answer = shop.confirm(hold, captured=False)
    assert_problem(answer, 409, code)
    assert answer.json["payment"] == "void"


def test_payment_of_a_cancelled_hold_is_409(shop, item):
    hold = shop.reserve(item).json["hold"]
    shop.confirm(hold, "pay-1")
    assert shop.verb(hold, "cancel").status == 200
    answer = shop.confirm(hold, "pay-2", captured=True)
    assert_problem(answer, 409, "hold_cancelled")
    assert answer.json["payment"] == "refund"


def test_late_payment_takes_a_free_unit_anew_once(shop, item):
    hold = expired_hold(shop, item)
    first = shop.confirm(hold, "late")
    assert first.status == 201, first
    assert (first.json["state"], first.json["replaces"]) == ("sold", hold)
    again = shop.confirm(hold, "late")
    assert (again.status, again.json["hold"]) == (200, first.json["hold"])
    other = shop.confirm(hold, "other", captured=True)
    assert_problem(other, 409, "already_sold")
    assert other.json["payment"] == "refund"
    assert shop.stack.origin.get(f"/v1/holds/{hold}").json["state"] == "expired"
    assert shop.stock(item)["sold"] == 1


@pytest.mark.parametrize("captured, payment", [(True, "refund"), (False, "void")])
def test_late_payment_without_a_free_unit_is_hold_expired(shop, item, captured, payment):
    hold = expired_hold(shop, item)
    assert shop.reserve(item, qty=5).status == 201
    answer = shop.confirm(hold, captured=captured)
    assert_problem(answer, 409, "hold_expired")
    assert (answer.json["state"], answer.json["payment"]) == ("expired", payment)


def test_expiry_and_payment_in_the_same_instant_have_one_winner(shop):
    """Many holds end in one second; each is paid as near to its end as we can."""
    item, sale = shop.fresh("i"), shop.fresh("x")
    shop.put_stock(item, 1000)
    shop.stack.origin.put(f"/v1/sales/{sale}", {
        "tenant": shop.tenant, "item": item, "opens_at": "2020-01-01T00:00:00Z",
        "hold_seconds": 1})
    rounds = 1000 if shop.soak else 200

    def one_round(_):
        hold = shop.reserve(item, sale=sale).json
        end = datetime.datetime.fromisoformat(hold["expires_at"])
        wait_until(lambda: (end - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
                   < 0.004, 5, "the end of the hold")
        return hold["hold"], shop.confirm(hold["hold"], captured=False)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(one_round, range(rounds)))
    sold = 0
    for hold, answer in answers:
        state = shop.stack.origin.get(f"/v1/holds/{hold}").json["state"]
        assert (answer.status, state) in ((200, "sold"), (201, "expired")), (answer, state)
        sold += 1
    stock = shop.stock(item)
    assert (stock["sold"], stock["held"], stock["available"]) == (sold, 0, 1000 - sold)
    assert shop.invariant()["ok"]


@pytest.mark.parametrize("verbs, status, code", [
    (["release", "release"], 200, None), (["confirm", "cancel", "cancel"], 200, None),
    (["confirm", "ship", "ship"], 200, None), (["confirm", "release"], 409, "already_sold"),
    (["confirm", "ship", "cancel"], 409, "already_sold"), (["confirm", "ship", "release"], 409, "already_sold"),
    (["release", "ship"], 409, "hold_released"), (["release", "extend"], 409, "hold_released"),
    (["ship"], 409, "conflict"), (["cancel"], 409, "conflict"),
    (["confirm", "cancel", "release"], 409, "hold_cancelled")])
def test_steps_and_what_their_repeats_say(shop, item, verbs, status, code):
    hold = shop.reserve(item).json["hold"]
    for verb in verbs:
        answer = shop.confirm(hold, "pay") if verb == "confirm" else shop.verb(hold, verb)
    assert answer.status == status, answer
    if code:
        assert answer.json["code"] == code and answer.json["state"]


def test_due_holds_count_as_free_everywhere(shop):
    item = shop.fresh("i")
    shop.put_stock(item, 1)
    hold = expired_hold(shop, item)
    assert shop.reserve(item).status == 201
    assert shop.stack.origin.get(f"/v1/holds/{hold}").json["state"] == "expired"


def test_version_grows_with_each_change(shop, item):
    def version():
        timeline, number = str(shop.stock(item)["version"]).split(".")
        return int(timeline), int(number)
    seen = [version()]
    hold = shop.reserve(item).json["hold"]
    seen.append(version())
    shop.confirm(hold)
    seen.append(version())
    shop.put_stock(item, 6)
    seen.append(version())
    assert seen == sorted(set(seen))


def test_sold_out_and_all_held_are_told_apart(shop):
    item = shop.fresh("i")
    shop.put_stock(item, 1)
    hold = shop.reserve(item).json["hold"]
    assert_problem(shop.reserve(item), 409, "all_held")
    shop.confirm(hold)
    assert_problem(shop.reserve(item), 409, "sold_out")


def test_http2_by_prior_knowledge(shop):
    from h2client import H2
    with H2(shop.stack.origin.url) as connection:
        answer = connection.get("/v1/invariant",
                                {"authorization": f"Bearer {shop.stack.origin.token}"})
        assert answer.status == 200 and answer.json["ok"] is True
