"""Every step from every state: what it answers and what it leaves."""
import pytest

from one_origin import assert_problem

# Each way into a state, as steps on a fresh hold of one unit of two.
WAYS = {
    "held": [], "extended": ["extend"], "due": ["due"], "expired": ["due", "sweep"],
    "sold": ["confirm"], "shipped": ["confirm", "ship"], "released": ["release"],
    "cancelled": ["confirm", "cancel"], "sold late": ["due", "confirm"],
}
OK, NEW = (200, None), (201, None)
LOST = {"expired": (409, "hold_expired"), "released": (409, "hold_released"),
        "cancelled": (409, "hold_cancelled"), "sold": (409, "already_sold"),
        "held": (409, "conflict")}

# state: {step: (answer, the state after it)}; "pay" is the first payment again,
# "other" another one. A step on "sold late" is on the hold that was lost.
TABLE = {
    "held": {"pay": (OK, "sold"), "other": (OK, "sold"), "extend": (OK, "held"),
             "release": (OK, "released"), "cancel": (LOST["held"], "held"),
             "ship": (LOST["held"], "held")},
    "extended": {"pay": (OK, "sold"), "other": (OK, "sold"), "extend": (OK, "held"),
                 "release": (OK, "released"), "cancel": (LOST["held"], "held"),
                 "ship": (LOST["held"], "held")},
    "due": {"pay": (NEW, "expired"), "other": (NEW, "expired"),
            "extend": (LOST["expired"], "expired"), "release": (LOST["expired"], "expired"),
            "cancel": (LOST["expired"], "expired"), "ship": (LOST["expired"], "expired")},
    "sold": {"pay": (OK, "sold"), "other": (LOST["sold"], "sold"),
             "extend": (LOST["sold"], "sold"), "release": (LOST["sold"], "sold"),
             "cancel": (OK, "cancelled"), "ship": (OK, "shipped")},
    "shipped": {"pay": (OK, "shipped"), "other": (LOST["sold"], "shipped"),
                "extend": (LOST["sold"], "shipped"), "release": (LOST["sold"], "shipped"),
                "cancel": (LOST["sold"], "shipped"), "ship": (OK, "shipped")},
    "released": {"pay": (LOST["released"], "released"), "other": (LOST["released"], "released"),
                 "extend": (LOST["released"], "released"), "release": (OK, "released"),
                 "cancel": (LOST["released"], "released"), "ship": (LOST["released"], "released")},
    "cancelled": {"pay": (LOST["cancelled"], "cancelled"),
                  "other": (LOST["cancelled"], "cancelled"),
                  "extend": (LOST["cancelled"], "cancelled"),
                  "release": (LOST["cancelled"], "cancelled"), "cancel": (OK, "cancelled"),
                  "ship": (LOST["cancelled"], "cancelled")},
    "sold late": {"pay": (OK, "expired"), "other": (LOST["sold"], "expired"),
                  "extend": (LOST["expired"], "expired"), "release": (LOST["expired"], "expired"),
                  "cancel": (LOST["expired"], "expired"), "ship": (LOST["expired"], "expired")},
}
TABLE["expired"] = TABLE["due"]


@pytest.fixture(scope="module")
def quiet(shared_origin):
    """An origin without expiry worker, so that a due hold stays due."""
    from one_origin import Origin
    origin = Origin(shared_origin.stack.postgres, expiry={"enabled": False}).start()
    try:
        yield origin
    finally:
        origin.stop()
    assert origin.errors() == []


def do(origin, hold, step):
    if step == "due":
        return origin.end_hold_in(hold, -1)
    if step == "sweep":
        return origin.sql("set sluice.prefix = 'a'; set sluice.timeline = '1'; "
                          "select sluice_api.expire(1000)")
    if step in ("pay", "confirm", "other"):
        return origin.confirm(hold, "other" if step == "other" else "first", captured=True)
    return origin.step(hold, step)


@pytest.mark.parametrize("state", WAYS)
@pytest.mark.parametrize("step", ["pay", "other", "extend", "release", "cancel", "ship"])
def test_step(quiet, state, step):
    item = quiet.item(2)
    hold = quiet.hold(item)
    for way in WAYS[state]:
        do(quiet, hold, way)
    before = quiet.read_hold(hold)
    events = quiet.api.get(f"/v1/holds/{hold}/events").json
    (status, code), after = TABLE[state][step]

    answer = do(quiet, hold, step)

    assert answer.status == status, answer
    now = quiet.read_hold(hold)
    assert now["state"] == after
    if code:
        assert_problem(answer, status, code)
        assert answer.json["state"]
        assert answer.json.get("payment") == ("refund" if step in ("pay", "other") else None)
        assert now == before
        assert quiet.api.get(f"/v1/holds/{hold}/events").json == events
    elif status == 201:
        assert (answer.json["state"], answer.json["replaces"]) == ("sold", hold)
    elif state == "sold late":
        assert answer.json["replaces"] == hold
    else:
        assert answer.json == now
    verdict = quiet.invariant()
    assert verdict["ok"], verdict
    stock = quiet.stock(item)
    assert stock["available"] + stock["held"] + stock["sold"] == 2


def test_a_late_sale_that_was_cancelled_stays_cancelled(quiet):
    item = quiet.item(1)
    hold = quiet.hold(item)
    quiet.end_hold_in(hold, -1)
    late = quiet.confirm(hold, "first").json["hold"]
    assert quiet.step(late, "cancel").status == 200
    for ref in ("first", "other"):
        assert_problem(quiet.confirm(hold, ref), 409, "hold_cancelled")
    assert quiet.stock(item)["available"] == 1
