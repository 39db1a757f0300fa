"""What gateways pull: the shape, the long poll, conversions, revocations."""
import threading
import time

import pytest

from one_origin import assert_problem
from run.process import wait_until

SALE = {"sale", "tenant", "item", "opens_at", "prequeue_at", "closes_at", "queue", "overbook",
        "rate_per_minute", "max_active", "per_account", "hold_seconds", "extend_seconds",
        "first_use_seconds", "pass_seconds", "skip_seconds", "forget_seconds", "match", "bypass",
        "upstream", "pages", "identity", "guest_work", "login_url", "store_loss", "beacon_source",
        "left", "state", "round", "version", "paused", "hard", "paused_at", "closed"}


def find(rows, **members):
    return [row for row in rows if members.items() <= row.items()]


class Later:
    """A call that runs while the test goes on."""

    def __init__(self, call):
        self.answer, self.took = None, None
        self.thread = threading.Thread(target=self.run, args=(call,))
        self.thread.start()

    def run(self, call):
        began = time.monotonic()
        self.answer = call()
        self.took = time.monotonic() - began

    def wait(self):
        self.thread.join(30)
        return self.answer


def wait_for_change(origin):
    """A caller that waits for the next change; what earlier tests left may still fall due."""
    while True:
        digest = origin.snapshot().json["digest"]
        waiting = Later(lambda: origin.snapshot(after=digest, wait=20000))
        wait_until(lambda: waiting.answer or origin.metric("sluice_snapshot_waiters") == 1, 5,
                   "a caller waits")
        if not waiting.answer:
            return waiting


def test_shape(origin):
    item = origin.item(7)
    sale = origin.sale(item, match=[{"host": None, "path": "/x", "prefix": True}])
    origin.hold(item, buyer="ann", qty=1, sale=sale, pass_jti="jti-1")
    answer = origin.snapshot()
    assert answer.status == 200 and answer.json["unchanged"] is False
    assert abs(answer.json["now"] / 1000 - time.time()) < 5
    assert answer.json["converted_whole"] is True
    row, = find(answer.json["sales"], sale=sale)
    assert set(row) == SALE and row["state"] == "open" and row["round"] == 1
    stock, = find(answer.json["items"], tenant="shop", item=item)
    assert (stock["total"], stock["available"], stock["held"], stock["sold"]) == (7, 6, 1, 0)
    assert stock["version"] == origin.stock(item)["version"] and stock["next_due_ms"]
    converted, = find(answer.json["converted"], sale=sale)
    assert (converted["jti"], converted["account"], converted["qty"], converted["state"]) == (
        "jti-1", "ann", 1, "held")
    assert converted["hold_end_ms"] - converted["created_ms"] == 600000


def test_nothing_new_waits_and_says_unchanged(origin):
    digest = origin.snapshot().json["digest"]
    began = time.monotonic()
    answer = origin.snapshot(after=digest, wait=400)
    assert 0.35 < time.monotonic() - began < 2
    assert answer.json["digest"] == digest and answer.json["unchanged"] is True
    assert set(answer.json) == {"now", "digest", "unchanged"}
    assert origin.snapshot(after=digest, wait=0).json["unchanged"] is True


@pytest.mark.parametrize("change", ["hold", "total", "pause", "put"])
def test_a_change_ends_the_wait_at_once(origin, change):
    item = origin.item(5)
    sale = origin.sale(item)
    waiting = wait_for_change(origin)
    {"hold": lambda: origin.hold(item, sale=sale),
     "total": lambda: origin.put_total(item, 9),
     "pause": lambda: origin.operate(sale, "pause"),
     "put": lambda: origin.put_sale(sale, item, hold_seconds=7)}[change]()
    answer = waiting.wait()
    assert waiting.took < 1.15 and answer.json["unchanged"] is False
    row, = find(answer.json["sales"], sale=sale)
    stock, = find(answer.json["items"], item=item)
    assert {"hold": stock["held"] == 1, "total": stock["total"] == 9,
            "pause": row["state"] == "paused", "put": row["hold_seconds"] == 7}[change]


def test_a_change_behind_the_origins_back_is_seen(origin):
    """Another origin of the same database wrote it."""
    item = origin.item(5)
    sale = origin.sale(item)
    waiting = wait_for_change(origin)
    origin.sql("update sluice.sale set version = version + 1 where sale = %s", sale)
    assert waiting.wait().json["unchanged"] is False and waiting.took < 1


def test_a_hold_that_falls_due_ends_the_wait(make_origin):
    origin = make_origin(expiry={"enabled": False})
    item = origin.item(1)
    sale = origin.sale(item, hold_seconds=8)
    origin.hold(item, sale=sale)
    first = origin.snapshot().json
    stock, = first["items"]
    assert stock["available"] == 0 and first["sales"][0]["state"] == "all_held"
    answer = origin.snapshot(after=first["digest"], wait=20000).json
    stock, = answer["items"]
    assert stock["available"] == 1 and answer["sales"][0]["state"] == "open"
    assert 0 <= answer["now"] - first["items"][0]["next_due_ms"] < 700
    assert stock["version"] == first["items"][0]["version"]


def test_where_nothing_changed_nothing_is_computed(make_origin):
    origin = make_origin()
    first = origin.item(5)
    digest = origin.snapshot(after="").json["digest"]
    sale = origin.sale(first, closes_at="2999-01-01T00:00:00Z")
    digest = origin.snapshot(after=digest, wait=20000).json["digest"]

    def counts():
        return [origin.metric(f"sluice_snapshots_{word}total") for word in ("", "same_")]
    read, same = counts()
    assert origin.snapshot(after=digest, wait=2000).json["unchanged"]
    reads, sames = (after - before for after, before in zip(counts(), (read, same)))
    assert sames >= reads - 2 > 0, (reads, sames)
    origin.hold(first, sale=sale)
    stock, = find(origin.snapshot(after=digest, wait=20000).json["items"], item=first)
    assert stock["available"] == 4


def test_a_server_that_begins_anew_is_not_taken_for_as_seen(origin):
    """Numbers of transactions that a crash forgot come again; it begins with a checkpoint."""
    with origin.database() as cursor:
        def ask(what):
            cursor.execute(f"select {what}")
            return cursor.fetchone()[0]
        cursor.execute("begin isolation level repeatable read; set local sluice.timeline = '1'")
        seen = ask("sluice_api.state_seen(null)")
        before = ask("pg_current_snapshot()::text")
        assert ask(f"sluice_api.is_as_seen('{seen}')")
        origin.stack.postgres.tell("checkpoint")
        assert ask("pg_current_snapshot()::text") == before
        assert not ask(f"sluice_api.is_as_seen('{seen}')")
        cursor.execute("rollback")


def test_conversions_are_told_once_to_each_caller(origin):
    item = origin.item(9)
    sale = origin.sale(item, per_account=5)
    origin.hold(item, buyer="a", sale=sale, pass_jti="j1")
    first = origin.snapshot().json
    assert [c["jti"] for c in find(first["converted"], sale=sale)] == ["j1"]
    hold = origin.hold(item, buyer="a", sale=sale, pass_jti="j2")
    second = origin.snapshot(after=first["digest"]).json
    assert second["converted_whole"] is False
    assert [c["jti"] for c in second["converted"]] == ["j2"]
    origin.hold(item, buyer="a", sale=sale)  # without a pass: nothing to convert
    third = origin.snapshot(after=second["digest"]).json
    assert third["unchanged"] is False and third["converted"] == []
    assert origin.step(hold, "extend").status == 200
    fourth = origin.snapshot(after=third["digest"], wait=5000).json
    longer, = fourth["converted"]
    assert longer["jti"] == "j2" and longer["hold_end_ms"] - longer["created_ms"] == 900000


def test_a_digest_of_another_run_gets_everything(origin):
    item = origin.item(3)
    sale = origin.sale(item)
    origin.hold(item, sale=sale, pass_jti="j1")
    for digest in ("0123456789abcdef.7", "nonsense", "0123456789abcdef.", "."):
        answer = origin.snapshot(after=digest, wait=5000).json
        assert answer["converted_whole"] is True and find(answer["converted"], sale=sale)


def test_a_restarted_origin_tells_conversions_again(make_origin):
    origin = make_origin()
    item = origin.item(3)
    sale = origin.sale(item)
    origin.hold(item, sale=sale, pass_jti="j1")
    digest = origin.snapshot().json["digest"]
    origin.stack.origin_process.end()
    origin.stack.restart_origin()
    answer = origin.snapshot(after=digest).json
    assert answer["converted_whole"] is True and [c["jti"] for c in answer["converted"]] == ["j1"]


def test_revocations_belong_to_the_round(origin):
    sale = origin.sale(origin.item(3))
    assert origin.operate(sale, "revoke", {"account": "mallory"}).json["changed"] is True
    assert origin.operate(sale, "revoke", {"account": "mallory"}).json["changed"] is False
    row, = find(origin.snapshot().json["revocations"], sale=sale)
    assert (row["account"], row["round"]) == ("mallory", 1) and row["at_ms"]
    version = origin.read_sale(sale)["version"]
    assert origin.operate(sale, "reset", **{"If-Match": f'"{version}"'}).status == 200
    assert find(origin.snapshot().json["revocations"], sale=sale) == []


@pytest.mark.parametrize("wait", ["x", "-1", "1.5", "12345678901"])
def test_a_bad_wait_is_400(origin, wait):
    assert_problem(origin.api.get(f"/v1/snapshot?wait={wait}"), 400, "bad_request")


def test_many_wait_and_one_reading_serves_them(origin):
    digest = origin.snapshot().json["digest"]
    before = origin.metric("sluice_snapshots_total")
    waiting = [Later(lambda: origin.snapshot(after=digest, wait=700)) for _ in range(30)]
    for one in waiting:
        assert one.wait().json["unchanged"] is True
    assert origin.metric("sluice_snapshots_total") - before < 30


def test_waiting_callers_hear_at_once_that_the_database_is_gone(make_origin):
    origin = make_origin(server=True)
    digest = origin.snapshot().json["digest"]
    waiting = Later(lambda: origin.snapshot(after=digest, wait=20000))
    wait_until(lambda: origin.metric("sluice_snapshot_waiters") == 1, 5, "a caller waits")
    origin.stop_database()
    assert_problem(waiting.wait(), 503, "unavailable")
    assert waiting.took < 3
    assert_problem(origin.snapshot(), 503, "unavailable")
