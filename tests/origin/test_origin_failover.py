"""A standby in its primary's place: what is there, and what is not."""
import shutil

from one_origin import Origin, at_once
from run.process import wait_until


def confirmed(origin, item, buyers):
    """A hold for each, paid for: what the shop was told."""
    def one(number):
        paid = origin.confirm(origin.hold(item, buyer=buyers[number], key="k"))
        assert paid.status == 200, paid
        return paid.json
    return dict(zip(buyers, at_once(len(buyers), one), strict=True))


def test_what_was_told_while_a_standby_was_waited_for_is_there_after_a_failover():
    """And what was told while it was not waited for is gone: the unsafe way."""
    origin = Origin(database={"statement_timeout": "2s"})
    stack = origin.stack
    try:
        stack.start_postgres()
        stack.start_standby()
        stack.start_origin()
        item = origin.item(20)
        origin.sale(item)
        safe = confirmed(origin, item, [f"safe{n}" for n in range(5)])
        # Without its standby the primary answers nothing, so nobody is told anything.
        stack.standby.follow_no_more()
        assert origin.reserve(item, "late", key="k").status == 503
        stack.postgres.wait_for(None)
        wait_until(lambda: origin.reserve(item, "late", key="k").status == 200, 30,
                   "commits are answered again")
        confirmed(origin, item, [f"unsafe{n}" for n in range(4)])
        stack.postgres.process.kill9()
        stack.promote_standby()
        wait_until(lambda: origin.stock(item).get("version", "").startswith("2."), 30,
                   "the origin found the new primary")

        for buyer, hold in safe.items():
            assert origin.read_hold(hold["hold"]) == hold
            assert origin.reserve(item, buyer, key="k").json == hold
        assert origin.stock(item)["sold"] == 5
        again = origin.reserve(item, "unsafe0", key="k")  # sold to the same buyer once more
        assert again.status == 201 and again.headers["sluice-version"].startswith("2."), again
        (told,) = origin.snapshot().json["items"]
        assert told["version"] == again.headers["sluice-version"]
        assert origin.invariant()["ok"]
    finally:
        origin.stop()
    assert stack.origin_process.child.returncode == 0
    shutil.rmtree(stack.folder)
