"""Orders of several lines: all or nothing, one key, one limit."""
from one_origin import assert_problem


def test_replays_and_mismatch(origin):
    a, b, ann = origin.item(5), origin.item(5), origin.fresh("ann")
    first = origin.order([(a, 1), (b, 2)], ann, "k")
    again = origin.order([(a, 1), (b, 2)], ann, "k")
    assert (first.status, again.status) == (201, 200) and first.json == again.json
    assert again.headers["idempotent-replayed"] == "true"
    assert [hold["item"] for hold in first.json["holds"]] == [a, b]
    assert_problem(origin.order([(a, 1), (b, 1)], ann, "k"), 422, "idempotency_mismatch")
    assert_problem(origin.reserve(a, ann, key="k"), 422, "idempotency_mismatch")


def test_lines_of_one_item_count_together(origin):
    item = origin.item(1)
    assert_problem(origin.order([(item, 1), (item, 1)]), 409, "not_enough")
    assert origin.stock(item)["held"] == 0
    both = origin.order([(item, 1)])
    assert both.status == 201


def test_each_line_lives_by_itself(origin):
    a, b = origin.item(5), origin.item(5)
    holds = [hold["hold"] for hold in origin.order([(a, 1), (b, 2)]).json["holds"]]
    assert origin.confirm(holds[0]).status == 200
    assert origin.step(holds[1], "release").status == 200
    assert (origin.stock(a)["sold"], origin.stock(b)["available"]) == (1, 5)


def test_the_sales_limit_counts_its_own_item(origin):
    item, extra = origin.item(9), origin.item(9)
    sale = origin.sale(item, per_account=2)
    assert_problem(origin.order([(item, 3)], sale=sale), 403, "buyer_limit")
    order = origin.order([(item, 2), (extra, 4)], "ann", sale=sale)
    assert order.status == 201, order
    assert [hold["sale"] for hold in order.json["holds"]] == [sale, None]
    assert_problem(origin.order([(item, 1)], "ann", sale=sale), 403, "buyer_limit")
    assert_problem(origin.order([(extra, 1)], sale=sale), 400, "bad_request")


def test_fifty_lines_are_one_round_trip(origin):
    """Long names, the items in falling order, one of them twice: rows are locked by key."""
    items = sorted((f"{origin.fresh('i')}-{'x' * 44}" for _ in range(49)), reverse=True)
    for item in items:
        origin.put_total(item, 2)
    lines = [(item, 1) for item in [*items, items[0]]]

    def calls():
        return origin.sql(
            "select coalesce(sum(calls), 0)::int from pg_stat_statements join pg_database d "
            "on d.oid = dbid where datname = current_database() "
            "and query ~ '^/. sluice (reserve|batch|order|confirm|step|hold|item|sale)'")[0][0]
    before, asked = calls(), origin.metric("sluice_queries_total", tag="order")
    order = origin.order(lines, "ann", "fifty")
    assert order.status == 201 and len(order.json["holds"]) == 50, order
    assert calls() - before == 1
    assert origin.metric("sluice_queries_total", tag="order") - asked == 1
    assert [origin.stock(item)["available"] for item in (items[0], items[1])] == [0, 1]
    assert origin.order(lines, "ann", "fifty").json == order.json
    assert_problem(origin.order([*lines, lines[0]]), 400, "bad_request")
    assert_problem(origin.order(lines), 409, "all_held")  # the one that came twice is out
    assert origin.stock(items[1])["available"] == 1


def test_bad_lines_are_400(origin):
    for body in ({"buyer": "a"}, {"buyer": "a", "lines": []}, {"buyer": "a", "lines": [1]},
                 {"buyer": "a", "lines": [{"item": "x"}]},
                 {"buyer": "a", "lines": [{"item": "x y", "qty": 1}]},
                 {"buyer": "a", "lines": [{"item": "x", "qty": 1}] * 51}):
        answer = origin.api.post("/v1/tenants/shop/orders", body,
                                 headers={"Idempotency-Key": "k"})
        assert_problem(answer, 400, "bad_request")


def test_unknown_item_is_404_and_holds_nothing(origin):
    item = origin.item(5)
    assert_problem(origin.order([(item, 1), ("nothing-here", 1)]), 404, "not_found")
    assert origin.stock(item)["held"] == 0
