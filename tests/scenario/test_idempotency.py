"""One key, one hold: repeats in a row and at once, by the gateway and straight."""
import concurrent.futures
import json
import uuid

from shopper import API


def parallel_posts(shop, requests, connections=5):
    """Sends (path, body, headers) triples over a few connections at once."""
    shares = [requests[index::connections] for index in range(connections)]
    opened = [shop.connect() for _ in shares]

    def run(pair):
        connection, share = pair
        streams = [connection.start("POST", path, headers, json.dumps(body))
                   for path, body, headers in share]
        return [connection.finish(stream) for stream in streams]
    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        return [answer for part in pool.map(run, zip(opened, shares)) for answer in part]


def hold_request(buyer, key, qty=1):
    return (f"{API}/sales/{buyer.sale}/holds", {"qty": qty},
            buyer.headers(**{"idempotency-key": key}))


def admitted(shop, sale, **more):
    buyer = shop.buyer(sale, **more)
    buyer.enter()
    return buyer


def test_one_key_ten_times_in_a_row_is_one_hold(shop):
    sale = shop.sale(units=20)
    buyer = admitted(shop, sale)
    first, *rest = [buyer.hold(key="ten times") for _ in range(10)]
    assert first.status == 201 and first.header("idempotent-replayed") is None
    for answer in rest:
        assert (answer.status, answer.json) == (200, first.json)
        assert answer.header("idempotent-replayed") == "true"
    assert shop.stock(sale)["held"] == 1


def test_one_key_fifty_times_at_once_is_one_hold(shop):
    sale = shop.sale(units=100)
    buyer = admitted(shop, sale)
    answers = parallel_posts(shop, [hold_request(buyer, "at once")] * 50)
    assert sorted(answer.status for answer in answers) == [200] * 49 + [201]
    assert len({json.dumps(answer.json, sort_keys=True) for answer in answers}) == 1
    assert shop.stock(sale)["held"] == 1


def test_two_shoppers_with_one_key_have_two_holds(shop):
    sale = shop.sale(units=5)
    first, second = admitted(shop, sale), admitted(shop, sale)
    holds = {buyer.hold(key="the same").json["hold"] for buyer in (first, second)}
    assert len(holds) == 2 and shop.stock(sale)["held"] == 2


def test_same_key_with_another_body_is_422(shop):
    buyer = admitted(shop, shop.sale(units=5, per_account=3))
    assert buyer.hold(qty=1, key="k").status == 201
    answer = buyer.hold(qty=2, key="k")
    assert (answer.status, answer.json["code"]) == (422, "idempotency_mismatch")


def test_same_body_spelled_otherwise_is_the_same(shop):
    buyer = admitted(shop, shop.sale())
    first = buyer.hold(key="k")
    again = buyer.connection.post(f"{API}/sales/{buyer.sale}/holds", '  { "qty" :\t1 }\n',
                                  buyer.headers(**{"idempotency-key": "k"}))
    assert (again.status, again.json["hold"]) == (200, first.json["hold"])


def test_a_refusal_is_not_remembered(shop):
    sale = shop.sale(units=1)
    buyer = admitted(shop, sale)
    other = shop.reserve(sale).json["hold"]
    assert buyer.hold(key="k").status == 409
    shop.verb(other, "release")
    assert buyer.hold(key="k").status == 201


def test_two_keys_of_one_buyer_at_limit_one_are_one_hold_a_hundred_times(shop):
    sale = shop.sale(units=300)
    for _ in range(100):
        buyer = shop.fresh("b")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(
                lambda key: shop.reserve(sale, buyer, key=key, sale=sale), ("one", "two")))
        assert sorted(answer.status for answer in answers) == [201, 403], answers
        refused = next(answer for answer in answers if answer.status == 403)
        assert refused.json["code"] == "buyer_limit"
    assert shop.stock(sale)["held"] == 100


def test_ten_left_and_two_orders_of_eight_are_one_hold(shop):
    item = shop.fresh("i")
    shop.put_stock(item, 10)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: shop.reserve(item, qty=8), range(2)))
    assert sorted(answer.status for answer in answers) == [201, 409]
    refused = next(answer for answer in answers if answer.status == 409)
    assert (refused.json["code"], refused.json["available"]) == ("not_enough", 2)
    assert shop.stock(item)["available"] == 2


def test_fifty_attempts_for_one_unit_are_one_hold_and_no_5xx(shop):
    item = shop.fresh("i")
    shop.put_stock(item, 1)
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: shop.reserve(item), range(50)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 49
    assert {answer.json["code"] for answer in answers if answer.status == 409} <= {
        "all_held", "sold_out"}
    stock = shop.stock(item)
    assert (stock["available"], stock["held"]) == (0, 1)


def test_the_origin_replays_a_key_straight(shop):
    item, key, buyer = shop.fresh("i"), uuid.uuid4().hex, shop.fresh("b")
    shop.put_stock(item, 3)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: shop.reserve(item, buyer, key=key), range(50)))
    assert sorted(answer.status for answer in answers) == [200] * 49 + [201]
    assert len({answer.json["hold"] for answer in answers}) == 1
    assert shop.stock(item)["held"] == 1
