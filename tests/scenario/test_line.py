"""The line, row by row of the table: join, wait, claim, leave."""
import time

import pytest

from run.process import PATIENCE
from shopper import API, decode_jwt

PLACE = {"sale", "state", "reason", "position", "ahead", "eta_seconds", "likely",
         "poll_after_ms", "opens_at"}
FUTURE = "2099-01-01T00:00:00Z"
PAST = "2020-01-01T00:00:00Z"


def assert_private(answer):
    control = answer.header("cache-control")
    assert "private" in control and "no-store" in control, control


def assert_problem(answer, status, code):
    assert (answer.status, answer.json["code"]) == (status, code), answer
    assert answer.header("content-type") == "application/problem+json"


def test_one_whose_turn_it_is_gets_a_pass_at_the_join(shop):
    buyer = shop.buyer(shop.sale())
    answer = buyer.join()
    place = answer.json
    assert answer.status == 200 and PLACE <= set(place), answer
    assert (place["state"], place["position"], place["ahead"]) == ("admitted", 0, 0)
    assert place["ticket"] and place["pass"] and place["pass_expires_at"]
    assert_private(answer)


def test_pass_is_the_jwt_of_the_contract(shop):
    sale = shop.sale(first_use_seconds=20)
    buyer = shop.buyer(sale, account="jane")
    buyer.join()
    header, claims = decode_jwt(buyer.pass_)
    assert (header["typ"], header["alg"]) == ("sluice-pass+jwt", "ES256") and header["kid"]
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("sluice", "jane", sale)
    assert claims["jti"] and claims["exp"] - claims["iat"] == 20 and isinstance(claims["rnd"], int)
    assert "use" not in claims


def test_claiming_again_gives_the_same_pass(shop):
    sale = shop.sale()
    first, second = shop.buyer(sale, account="twice"), shop.buyer(sale, account="twice")
    first.join(), second.join()
    claims = [decode_jwt(each.pass_)[1] for each in (first, second)]
    assert claims[0]["jti"] == claims[1]["jti"] and claims[0]["exp"] == claims[1]["exp"]


@pytest.mark.parametrize("name", ["sec-purpose", "purpose"])
@pytest.mark.parametrize("identity", ["account", "guest"])
def test_prefetch_never_joins_or_claims(shop, name, identity):
    sale = shop.sale(identity=identity)
    buyer = shop.guest(sale) if identity == "guest" else shop.buyer(sale)
    answer = buyer.join(**{name: "prefetch"})
    assert_problem(answer, 404, "not_found")
    assert not answer.cookies and not buyer.ticket and not buyer.pass_
    buyer.join()
    assert buyer.ticket


def test_get_by_the_ticket_of_one_admitted_is_200_with_the_pass(shop):
    buyer = shop.buyer(shop.sale())
    buyer.join()
    given, buyer.pass_, buyer.token = buyer.pass_, None, None
    answer = buyer.place()
    assert (answer.status, answer.json["state"]) == (200, "admitted")
    assert decode_jwt(answer.json["pass"])[1]["jti"] == decode_jwt(given)[1]["jti"]


def test_those_behind_wait_with_positions_in_order_of_arrival(shop):
    sale = shop.sale(units=1)
    first, second, third = (shop.buyer(sale) for _ in range(3))
    assert first.join().status == 200
    for buyer, position in ((second, 1), (third, 2)):
        answer = buyer.join()
        assert answer.status == 202, answer
        assert (answer.json["state"], answer.json["position"], answer.json["ahead"]) == (
            "waiting", position, position - 1)
        assert answer.header("retry-after") == str(-(-answer.json["poll_after_ms"] // 1000))
        assert "pass" not in answer.json or answer.json["pass"] is None
        assert_private(answer)


def test_refusals_on_the_line_say_when_to_come_back(shop):
    """The field and the member tell the same."""
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    waiting = shop.buyer(sale)
    waiting.join()
    nobody, stranger, torn = shop.buyer(sale), shop.guest(sale), shop.buyer(sale)
    torn.ticket = waiting.ticket
    answers = {404: nobody.place(), 401: stranger.join(),
               400: torn.place(cookie=f"__Host-sluice-{sale}=other")}
    for status, answer in answers.items():
        assert answer.status == status and answer.json["poll_after_ms"] > 0, answer
        assert answer.header("retry-after") == str(-(-answer.json["poll_after_ms"] // 1000)), answer


def test_a_poll_answers_the_same_place_and_changes_nothing(shop):
    sale = shop.sale(units=1)
    first, second = shop.buyer(sale), shop.buyer(sale)
    first.join(), second.join()
    for _ in range(20):
        answer = second.place()
        assert (answer.status, answer.json["position"]) == (202, 1)


def test_the_ticket_alone_authorises_a_poll(shop):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    waiting = shop.buyer(sale)
    waiting.join()
    waiting.token = None
    assert waiting.place().status == 202


def test_joining_again_finds_the_same_place(shop):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    second, third = shop.buyer(sale, account="tabs"), shop.buyer(sale)
    second.join(), third.join()
    for _ in range(3):
        assert shop.buyer(sale, account="tabs").join().json["position"] == 1
    assert third.place().json["position"] == 2


def test_leaving_frees_the_place_at_once(shop):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    second, third = shop.buyer(sale), shop.buyer(sale)
    second.join(), third.join()
    assert second.leave().status == 204
    assert third.place().json["position"] == 1


def test_leaving_without_a_place_is_204(shop):
    assert shop.buyer(shop.sale()).leave().status == 204


def test_one_who_leaves_with_a_pass_makes_room_for_the_next(shop):
    sale = shop.sale(units=1)
    first, second = shop.buyer(sale), shop.buyer(sale)
    first.join(), second.join()
    assert first.leave().status == 204
    second.enter(seconds=10)


def test_ready_is_told_to_a_poll_and_claimed_by_a_post(shop):
    sale = shop.sale(units=1)
    first, second = shop.buyer(sale), shop.buyer(sale)
    first.join(), second.join()
    first.leave()
    deadline = time.monotonic() + 10 * PATIENCE
    while (answer := second.place()).json["state"] != "ready":
        assert answer.status == 202 and time.monotonic() < deadline, answer
    assert (answer.json["position"], answer.json["ahead"]) == (0, 0)
    assert second.pass_ is None
    answer = second.join()
    assert (answer.status, answer.json["state"]) == (200, "admitted") and second.pass_


def test_get_without_ticket_is_404_and_never_joins(shop):
    sale = shop.sale()
    assert_problem(shop.buyer(sale).place(), 404, "not_found")
    assert shop.stack.metrics().value("sluice_line_waiting", sale=sale) == 0


def test_forged_tickets_are_404_on_get_and_a_new_place_on_post(shop):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    waiting = shop.buyer(sale)
    waiting.join()
    good = waiting.ticket
    forged = good[:10] + ("A" if good[10] != "A" else "B") + good[11:]
    for ticket in (forged, good[:-1], good + "A", "x", "A" * 4000):
        waiting.ticket = ticket
        answer = waiting.place()
        assert_problem(answer, 404, "not_found")
    answer = waiting.join()
    assert answer.status == 202 and answer.json["ticket"] != forged


def test_every_flipped_bit_of_a_ticket_is_refused(shop):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    waiting = shop.buyer(sale)
    waiting.join()
    good, waiting.token = waiting.ticket, None
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for index, letter in enumerate(good):
        waiting.ticket = good[:index] + letters[letters.index(letter) ^ 32] + good[index + 1:]
        answer = waiting.place(**{"x-forwarded-for": shop.address()})
        assert answer.status == 404, index
    waiting.ticket = good
    assert waiting.place().status == 202


def test_ticket_of_another_sale_is_no_ticket(shop):
    here, there = shop.sale(units=1), shop.sale(units=1)
    shop.buyer(here).join()
    waiting = shop.buyer(here)
    waiting.join()
    waiting.sale = there
    assert waiting.place().status == 404


def test_ticket_of_another_account_is_told_by_its_reason(shop):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    mine, other = shop.buyer(sale), shop.buyer(sale)
    mine.join()
    other.ticket = mine.ticket
    answer = other.join()
    assert answer.status == 202 and answer.json["reason"] == "other_account", answer
    assert answer.json["position"] == 2


def test_scheduled_sale_gives_no_ticket_and_says_when(shop):
    sale = shop.sale(opens_at=FUTURE)
    answer = shop.buyer(sale).join()
    assert (answer.status, answer.json["state"]) == (202, "not_open")
    assert answer.json["ticket"] is None if "ticket" in answer.json else True
    assert not answer.all("set-cookie")
    assert answer.json["poll_after_ms"] <= 72_000 and answer.json["opens_at"].startswith("2099")
    assert answer.json["position"] is None


def test_prequeue_of_a_fifo_sale_gives_position_and_ahead(shop):
    sale = shop.sale(opens_at=FUTURE, prequeue_at=PAST)
    first, second = shop.buyer(sale), shop.buyer(sale)
    assert first.join().json["position"] == 1
    answer = second.join()
    assert (answer.status, answer.json["state"]) == (202, "waiting")
    assert (answer.json["position"], answer.json["ahead"]) == (2, 1)
    assert answer.json["eta_seconds"] is None and answer.json["likely"] is None
    assert answer.json["ticket"]


def test_prequeue_order_is_kept_at_the_opening(shop):
    sale = shop.sale(units=1, opens_at=FUTURE, prequeue_at=PAST)
    first, second = shop.buyer(sale), shop.buyer(sale)
    first.join(), second.join()
    assert shop.operate(sale, "open").status == 200
    first.enter()
    assert second.join().json["position"] == 1


def test_paused_keeps_places_and_resume_goes_on(shop):
    sale = shop.sale(units=1)
    first, second = shop.buyer(sale), shop.buyer(sale)
    first.join(), second.join()
    assert shop.operate(sale, "pause").status == 200
    shop.wait_state(sale, "paused", seconds=2)
    answer = second.place()
    assert (answer.status, answer.json["state"], answer.json["position"]) == (202, "paused", 1)
    assert answer.json["eta_seconds"] is None
    assert shop.operate(sale, "resume").status == 200
    shop.wait_state(sale, "open", seconds=2)
    first.leave()
    second.enter()


def test_pass_in_force_is_admitted_whatever_the_state(shop):
    sale = shop.sale()
    buyer = shop.buyer(sale)
    buyer.join()
    jti = decode_jwt(buyer.pass_)[1]["jti"]
    for verb, state in (("pause", "paused"), ("resume", "open"), ("close", "closed")):
        shop.operate(sale, verb)
        shop.wait_state(sale, state)
        answer = buyer.join()
        assert (answer.status, answer.json["state"]) == (200, "admitted"), (verb, answer)
        assert decode_jwt(buyer.pass_)[1]["jti"] == jti


def test_all_held_keeps_the_line(shop):
    sale = shop.sale(units=1)
    hold = shop.reserve(sale).json["hold"]
    shop.wait_state(sale, "all_held")
    waiting = shop.buyer(sale)
    answer = waiting.join()
    assert (answer.status, answer.json["state"]) == (202, "all_held")
    assert answer.json["position"] == 1 and answer.json["ticket"]
    assert shop.verb(hold, "release").status == 200
    waiting.enter()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_sold_out_is_410_with_the_members_of_a_place(shop, method):
    sale = shop.sale(units=1)
    shop.sell_out(sale)
    connection = shop.connect()
    answer = connection.request(method, f"{API}/sales/{sale}/line", {"accept": "application/json"})
    assert_problem(answer, 410, "sold_out")
    assert answer.json["state"] == "sold_out" and PLACE <= set(answer.json)


def test_one_waiting_learns_of_sold_out_at_the_next_poll(shop):
    sale = shop.sale(units=1)
    shop.buyer(sale).join()
    waiting = shop.buyer(sale)
    waiting.join()
    shop.sell_out(sale)
    assert_problem(waiting.place(), 410, "sold_out")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_closed_is_410(shop, method):
    sale = shop.sale()
    shop.operate(sale, "close")
    shop.wait_state(sale, "closed")
    answer = shop.buyer(sale).connection.request(method, f"{API}/sales/{sale}/line")
    assert_problem(answer, 410, "closed")


def test_queue_reject_is_closed_to_all(shop):
    sale = shop.sale(queue="reject")
    assert_problem(shop.buyer(sale).join(), 410, "closed")


def test_leaving_is_204_in_every_state(shop):
    sale = shop.sale(units=1)
    buyer = shop.buyer(sale)
    shop.sell_out(sale)
    assert buyer.leave().status == 204
    shop.operate(sale, "close")
    shop.wait_state(sale, "closed")
    assert buyer.leave().status == 204


def test_likely_is_false_when_more_wait_ahead_than_units_can_come(shop):
    sale = shop.sale(units=1)
    buyers = [shop.buyer(sale) for _ in range(4)]
    answers = [buyer.join() for buyer in buyers]
    assert answers[3].json["likely"] is False


def test_reset_starts_a_new_round_and_says_so(shop):
    sale = shop.sale(units=1)
    first, second = shop.buyer(sale), shop.buyer(sale)
    first.join(), second.join()
    version = shop.stack.admin.get(f"/v1/sales/{sale}").json["version"]
    answer = shop.operate(sale, "reset", headers={"If-Match": f'"{version}"'})
    assert answer.status == 200, answer
    deadline = time.monotonic() + 5 * PATIENCE
    while True:
        answer = second.join()
        if answer.json.get("reason") == "round_over":
            break
        assert time.monotonic() < deadline, answer


def test_a_missed_turn_is_served_next_with_the_reason(shop):
    sale = shop.sale(units=1, first_use_seconds=1)
    first, second = shop.buyer(sale), shop.buyer(sale)
    first.join(), second.join()
    second.enter(seconds=40)  # the slot outlives the pass by a request
    first.pass_ = None
    answer = first.join()
    assert answer.json.get("reason") == "turn_missed", answer


@pytest.mark.parametrize("path", ["line", "line/events", "holds/x", "draw"])
def test_unknown_sale_is_404(shop, path):
    answer = shop.connect().get(f"{API}/sales/nobody-made-this/{path}")
    assert_problem(answer, 404, "not_found")


def test_prefetch_never_joins(shop):
    sale = shop.sale(units=1, identity="guest")
    connection = shop.connect()
    for headers in ({"sec-purpose": "prefetch"}, {"purpose": "prefetch"}):
        answer = connection.get(f"{API}/sales/{sale}/line", headers)
        assert answer.status == 404 and not answer.all("set-cookie")
    assert connection.request("HEAD", f"{API}/sales/{sale}/line").status in (404, 405)
