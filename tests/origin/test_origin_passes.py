"""The origin looks at passes too; windows, rounds and revocations."""
import datetime
import time

import pytest

from one_origin import assert_problem


@pytest.fixture
def sale(origin):
    return origin.sale(origin.item(5), per_account=2)


@pytest.fixture
def ann(origin):
    """A buyer of the test's own: keys are known for each buyer."""
    return origin.fresh("ann")


def item_of(origin, sale):
    return origin.read_sale(sale)["item"]


def take(origin, sale, buyer="jane", key=None, replay_only=False, pass_=None, **claims):
    shown = pass_ or origin.pass_for(sale, claims.pop("sub", buyer), **claims)
    headers = {"Sluice-Pass": shown}
    if replay_only:
        headers["Sluice-Replay-Only"] = "1"
    return origin.reserve(item_of(origin, sale), buyer, sale=sale, key=key, headers=headers)


def test_a_good_pass_reserves_and_is_converted(origin, sale):
    assert take(origin, sale, jti="the-pass").status == 201
    converted = origin.snapshot().json["converted"]
    assert [c for c in converted if c["jti"] == "the-pass"]


@pytest.mark.parametrize("claims", [
    {"sub": "bob"}, {"aud": "another-sale"}, {"iss": "somebody"}, {"typ": "JWT"},
    {"rnd": None}, {"exp": None}])
def test_a_pass_that_is_not_ours_is_403(origin, sale, claims):
    assert_problem(take(origin, sale, **claims), 403, "pass_required")


def test_a_pass_of_another_key_is_403(origin, sale):
    good = origin.pass_for(sale, "jane")
    head, body, signature = good.split(".")
    for bad in (f"{head}.{body}.{signature[::-1]}", f"{head}.{body}.", "x", ""):
        assert_problem(take(origin, sale, pass_=bad or " "), 403, "pass_required")


def test_an_expired_pass_is_403_and_may_repeat_its_key(origin, sale, ann):
    now = int(time.time())
    assert take(origin, sale, ann, key="k1").status == 201
    assert_problem(take(origin, sale, ann, key="k2", exp=now - 5), 403, "pass_expired")
    again = take(origin, sale, ann, key="k1", exp=now - 300, replay_only=True)
    assert again.status == 200 and again.headers["idempotent-replayed"] == "true"
    assert_problem(take(origin, sale, ann, key="k2", exp=now - 300, replay_only=True), 403,
                   "pass_expired")
    assert_problem(take(origin, sale, ann, key="k1", exp=now - 1200, replay_only=True), 403,
                   "pass_expired")


def test_replay_only_never_holds(origin, sale):
    assert_problem(take(origin, sale, replay_only=True), 403, "pass_expired")
    assert origin.stock(item_of(origin, sale))["held"] == 0


def test_the_jti_of_the_body_is_the_one_of_the_pass(origin, sale):
    headers = {"Sluice-Pass": origin.pass_for(sale, "ann", jti="one")}
    answer = origin.reserve(item_of(origin, sale), "ann", sale=sale, headers=headers,
                            pass_jti="two")
    assert_problem(answer, 403, "pass_required")


def test_a_pass_of_an_earlier_round_is_revoked(origin, sale, ann):
    version = origin.read_sale(sale)["version"]
    assert take(origin, sale, ann, key="k1").status == 201
    origin.operate(sale, "reset", **{"If-Match": f'"{version}"'})
    assert_problem(take(origin, sale, ann), 403, "pass_revoked")
    assert take(origin, sale, ann, rnd=2).status == 201


def test_a_revoked_account_gets_nothing_new(origin, sale, ann):
    assert take(origin, sale, ann, key="k1").status == 201
    origin.operate(sale, "revoke", {"account": ann})
    assert_problem(take(origin, sale, ann, key="k2"), 403, "pass_revoked")
    assert take(origin, sale, ann, key="k1").status == 200
    assert take(origin, sale, buyer="bob").status == 201


# -- windows ------------------------------------------------------------------


def from_now(seconds):
    now = datetime.datetime.now(datetime.timezone.utc)
    return (now + datetime.timedelta(seconds=seconds)).isoformat()


def test_before_the_opening_is_409(origin):
    item = origin.item(5)
    sale = origin.sale(item, opens_at=from_now(60))
    assert_problem(origin.reserve(item, sale=sale), 409, "not_open")
    assert origin.operate(sale, "open").json["changed"] is True
    assert origin.reserve(item, sale=sale).status == 201


def test_after_the_end_nothing_is_held_and_what_is_held_may_be_paid(origin, ann):
    item = origin.item(5)
    sale = origin.sale(item, hold_seconds=60)
    hold, lost = origin.hold(item, sale=sale), origin.hold(item, sale=sale)
    key = origin.reserve(item, ann, sale=sale, key="k")
    assert origin.operate(sale, "close").status == 200
    assert_problem(origin.reserve(item, sale=sale), 410, "closed")
    assert origin.reserve(item, ann, sale=sale, key="k").json == key.json
    assert origin.step(hold, "extend").status == 200
    assert origin.confirm(hold).status == 200
    origin.end_hold_in(lost, -1)
    answer = origin.confirm(lost, captured=True)
    assert_problem(answer, 409, "hold_expired")
    assert answer.json["payment"] == "refund"


def test_a_soft_pause_lets_pass_holders_go_on_and_a_hard_one_does_not(origin, sale):
    origin.operate(sale, "pause")
    assert take(origin, sale).status == 201
    origin.operate(sale, "pause", {"hard": True})
    answer = take(origin, sale, buyer="bob")
    assert_problem(answer, 503, "paused")
    assert answer.headers["retry-after"]
    origin.operate(sale, "resume")
    assert take(origin, sale, buyer="bob").status == 201


def test_a_sale_of_another_item_is_400(origin, sale):
    answer = origin.reserve(origin.item(3), sale=sale)
    assert_problem(answer, 400, "bad_request")
    assert answer.json["field"] == "sale"


def test_an_unknown_sale_is_404(origin):
    assert_problem(origin.reserve(origin.item(3), sale="never-made"), 404, "not_found")


def test_an_ended_hold_gives_the_allowance_back(origin):
    item = origin.item(9)
    sale = origin.sale(item, per_account=1)
    hold = origin.hold(item, buyer="ann", sale=sale)
    assert_problem(origin.reserve(item, "ann", sale=sale), 403, "buyer_limit")
    origin.step(hold, "release")
    hold = origin.hold(item, buyer="ann", sale=sale)
    origin.end_hold_in(hold, -1)
    hold = origin.hold(item, buyer="ann", sale=sale)
    origin.confirm(hold)
    assert_problem(origin.reserve(item, "ann", sale=sale), 403, "buyer_limit")
    origin.step(hold, "cancel")
    origin.hold(item, buyer="ann", sale=sale)


def test_a_late_payment_is_under_the_limit_too(origin):
    """Who lost a hold and took another does not end with two."""
    item = origin.item(9)
    sale = origin.sale(item, per_account=1)
    lost = origin.hold(item, buyer="ann", sale=sale)
    origin.end_hold_in(lost, -1)
    origin.hold(item, buyer="ann", sale=sale)
    assert_problem(origin.confirm(lost), 409, "hold_expired")
    assert origin.stock(item)["sold"] == 0


def test_the_end_of_a_hold_never_moves_by_repeats(origin, ann):
    item = origin.item(9)
    ends = {origin.reserve(item, ann, key="k").json["expires_at"] for _ in range(5)}
    assert len(ends) == 1
    hold = origin.reserve(item, ann, key="k").json["hold"]
    ends = {origin.step(hold, "extend").json["expires_at"] for _ in range(3)}
    assert len(ends) == 1
    assert origin.read_hold(hold)["extended"] is True
