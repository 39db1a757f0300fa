"""The journal's way into a Redis stream: each event, in order for each hold, through
any fault, at no hold's cost."""
import collections
import shutil
import tempfile

import pytest
import redis

from one_origin import RUNS, at_once
from run.process import wait_until
from run.redis import Redis

STREAM = "sluice:journal"


class Store:
    """A private Redis and what is asked of it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="redis-", dir=RUNS)
        self.server = Redis(self.folder).start()
        self.client = redis.Redis(port=self.server.port, password=self.server.password,
                                  decode_responses=True)

    def entries(self):
        return self.client.xrange(STREAM)

    def events(self):
        return [fields for _, fields in self.entries()]

    def stop(self):
        self.client.close()
        self.server.remove()
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def shared_store():
    store = Store()
    yield store
    store.stop()


@pytest.fixture
def store(shared_store):
    """The server of this file, as good as new."""
    if not shared_store.server.process.is_alive():
        shared_store.server.start()
    shared_store.client.config_set("maxmemory", 0)
    shared_store.client.flushall()
    return shared_store


@pytest.fixture
def make_relay(make_origin, store):
    def make(start=True, relay=None, **options):
        return make_origin(start=start, relay={
            "redis": store.server.url, "interval": "20ms", "backoff_first": "20ms",
            "backoff_last": "100ms", "lease": "2s", **(relay or {})}, **options)
    return make


def unmarked(origin):
    return origin.sql("select count(*) from sluice.journal where relayed_at is null")[0][0]


def wait_marked(origin):
    wait_until(lambda: unmarked(origin) == 0, 30, "every event has its mark")


def journal(origin):
    """The events as the stream should tell them, and the holds' names by id."""
    rows = origin.sql(
        "select 'a-' || seq, 'a' || replace(j.hold::text, '-', ''), h.order_ref, j.tenant, j.item,"
        " from_state, to_state, j.qty::text, reason, actor,"
        " to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
        " from sluice.journal j left join sluice.hold h on h.id = j.hold order by seq")
    names = ("event", "hold", "order_ref", "tenant", "item", "from", "to", "qty", "reason", "actor",
             "at")
    return [{name: value for name, value in zip(names, row) if value is not None} for row in rows]


def firsts(events):
    """Without what came again."""
    seen = {}
    for event in events:
        seen.setdefault(event["event"], event)
        assert seen[event["event"]] == event
    return list(seen.values())


def assert_all_told(origin, store, once=False):
    """Every event of the journal is in the stream, each hold's in order, nothing else."""
    told, true = store.events(), journal(origin)
    if once:
        assert len(told) == len(true)
    told = firsts(told)
    assert sorted(told, key=lambda e: e["event"]) == sorted(true, key=lambda e: e["event"])
    by_hold = collections.defaultdict(list)
    for event in told:
        by_hold[event.get("hold")].append(int(event["event"].partition("-")[2]))
    for hold, numbers in by_hold.items():
        assert numbers == sorted(numbers), hold


def lives(origin, item, count, prefix="b"):
    """Holds that go through several states, many at once."""
    def one(number):
        answer = origin.reserve(item, f"{prefix}{number}", order_ref=f"{prefix}-o{number}")
        assert answer.status == 201, answer
        hold = answer.json["hold"]
        if number % 3 == 0:
            assert origin.step(hold, "release").status == 200
        else:
            assert origin.confirm(hold).status == 200
            assert origin.step(hold, "ship" if number % 3 == 1 else "cancel").status == 200
        return hold
    return at_once(count, one)


def test_every_event_is_told_once_in_order_with_all_it_has(make_relay, store):
    origin = make_relay(relay={"batch": 7})
    item = origin.item(100)
    holds = lives(origin, item, 12)
    wait_marked(origin)
    assert_all_told(origin, store, once=True)
    told = [event for event in store.events() if event.get("hold") == holds[1]]
    assert [(e.get("from"), e["to"], e["reason"], e["actor"]) for e in told] == [
        (None, "held", "reserved", "buyer"), ("held", "sold", "paid", "payer"),
        ("sold", "shipped", "shipped", "service")]
    assert {e["order_ref"] for e in told} == {"b-o1"} and {e["item"] for e in told} == {item}
    assert origin.metric("sluice_relay_sent_total") == len(store.events())
    assert origin.metric("sluice_relay_duty") == 1
    wait_until(lambda: origin.metric("sluice_relay_backlog") == 0, 10, "the backlog's gauge")
    assert origin.metric("sluice_relay_delay_seconds") == 0


def test_redis_killed_in_the_middle_costs_no_hold_and_no_event(make_relay, store):
    origin = make_relay(relay={"batch": 5, "deadline": "300ms"})
    item = origin.item(1000)
    lives(origin, item, 6, "x")
    wait_until(lambda: len(store.events()) > 5, 10, "events in the stream")
    store.server.process.kill9()
    holds = lives(origin, item, 9, "y")
    assert len(holds) == 9
    wait_until(lambda: origin.metric("sluice_relay_failures_total", cause="refused") > 1, 10,
               "Redis is missed")
    wait_until(lambda: origin.metric("sluice_relay_backlog") >= 24, 10, "the backlog's gauge")
    assert origin.metric("sluice_relay_delay_seconds") > 0
    store.server.start()
    lives(origin, item, 6, "z")
    wait_marked(origin)
    # What Redis had not yet written to disk is lost with it: it was answered, and marked.
    told = {event["event"] for event in store.events()}
    late = [e["event"] for e in journal(origin) if e.get("order_ref", "x")[0] in "yz"]
    assert len(late) == 24 + 16 and set(late) <= told


def test_redis_that_does_not_answer_is_left_at_the_deadline(make_relay, store):
    origin = make_relay(relay={"deadline": "200ms"})
    item = origin.item(100)
    lives(origin, item, 3, "x")
    wait_marked(origin)
    store.server.process.pause()
    try:
        lives(origin, item, 6, "y")
        wait_until(lambda: origin.metric("sluice_relay_failures_total", cause="late") > 1, 10,
                   "given up in time")
        assert unmarked(origin) == 16
    finally:
        store.server.process.resume()
    wait_marked(origin)
    assert_all_told(origin, store)


def test_a_redis_that_refuses_is_asked_again(make_relay, store):
    """Wrong kind of key, then no memory: nothing of a batch is there, and no mark."""
    store.client.set(STREAM, "not a stream")
    origin = make_relay()
    item = origin.item(100)
    lives(origin, item, 3)
    wait_until(lambda: origin.metric("sluice_relay_failures_total", cause="refused") > 1, 10,
               "refused")
    assert unmarked(origin) == 9
    store.client.config_set("maxmemory", 1)
    store.client.delete(STREAM)
    seen = origin.metric("sluice_relay_failures_total", cause="refused")
    wait_until(lambda: origin.metric("sluice_relay_failures_total", cause="refused") > seen + 1,
               10, "refused again")
    told = [line for line in origin.log() if "cannot relay" in line["event"]]
    assert any(line["why"].startswith("WRONGTYPE") for line in told), told
    assert store.client.exists(STREAM) == 0
    store.client.config_set("maxmemory", 0)
    wait_marked(origin)
    assert_all_told(origin, store, once=True)


def test_an_origin_killed_between_redis_and_the_mark_tells_again(make_relay, store):
    """Killed while the mark waits for a lock: the same events come once more, by the
    same names."""
    origin = make_relay(relay={"lease": "1s"}, database={"lock_timeout": "20s",
                                                         "statement_timeout": "20s"})
    item = origin.item(100)
    wait_marked(origin)
    before = len(store.events())
    with origin.database() as cursor:
        cursor.execute("begin; lock table sluice.journal in exclusive mode")
        cursor.execute("insert into sluice.journal (tenant, item, to_state, qty, reason, actor)"
                       " select 'shop', %s, 'available', 0, 'nothing', 'test'"
                       " from generate_series(1, 5)", (item,))
        cursor.execute("commit; begin; lock table sluice.journal in exclusive mode")
        wait_until(lambda: len(store.events()) == before + 5, 10, "events in the stream")
        origin.stack.origin_process.kill9()
        ours = ("pg_stat_activity where datname = current_database()"
                " and application_name like 'sluice-origin%%'")
        wait_until(lambda: origin.sql(f"select count(pg_terminate_backend(pid)) from {ours}")
                   == [(0,)], 10, "no mark is under way")
        cursor.execute("rollback")
    assert unmarked(origin) == 5
    origin.stack.restart_origin()
    wait_marked(origin)
    told = store.events()[before:]
    assert len(told) == 10 and told[:5] == told[5:]
    assert_all_told(origin, store)


def test_two_origins_keep_the_order_and_one_takes_over(make_relay, store):
    first = make_relay(relay={"batch": 3, "lease": "5s"})
    second = make_relay(start=False, relay={"batch": 3, "lease": "5s"})
    second.url = second.stack.database_url = first.url
    second.start()
    item = first.item(1000)
    lives(first, item, 6, "x")
    wait_marked(first)
    wait_until(lambda: first.metric("sluice_relay_duty") + second.metric("sluice_relay_duty") == 1,
               20, "one has the duty")
    assert len(store.events()) == sum(each.metric("sluice_relay_sent_total")
                                      for each in (first, second))
    first.stack.origin_process.pause()
    lives(second, item, 6, "y")
    wait_marked(second)
    assert second.metric("sluice_relay_duty") == 1
    first.stack.origin_process.resume()
    lives(first, item, 6, "z")
    wait_marked(first)
    assert_all_told(first, store)
    wait_until(lambda: first.metric("sluice_relay_duty") == 0, 10, "the first knows")
    second.stack.origin_process.kill9()
    lives(first, item, 3, "w")
    wait_marked(first)
    assert_all_told(first, store)
    second.stack.restart_origin()


def test_redis_refuses_who_lost_the_duty_without_knowing(make_relay, store):
    """Another epoch has written: nothing of the late batch enters the stream. A lease
    is long enough to look before the duty is taken anew."""
    origin = make_relay(relay={"lease": "10s"})
    origin.item(5)
    wait_marked(origin)
    top = store.client.xinfo_stream(STREAM)["last-generated-id"]
    later = int(top.partition("-")[0]) + 3_000
    store.client.xadd(STREAM, {"event": "of another"}, id=f"{later}-1")
    origin.item(6)
    wait_until(lambda: origin.metric("sluice_relay_failures_total", cause="fenced") >= 1, 10,
               "refused by Redis")
    assert unmarked(origin) == 1 and len(store.events()) == 3 - 1
    wait_marked(origin)
    assert origin.metric("sluice_relay_takings_total") >= 2
    ids = [tuple(map(int, name.split("-"))) for name, _ in store.entries()]
    assert ids == sorted(ids) and ids[-1][0] > later


def test_a_stream_with_a_ceiling_is_trimmed(make_relay, store):
    origin = make_relay(relay={"stream_max": 10, "batch": 50})
    item = origin.item(500)
    origin.sql("insert into sluice.journal (tenant, item, to_state, qty, reason, actor)"
               " select 'shop', %s, 'available', 0, 'nothing', 'test'"
               " from generate_series(1, 400)", item)
    wait_marked(origin)
    assert 10 <= store.client.xlen(STREAM) < 300


def test_without_its_index_nothing_is_relayed_until_init_makes_it(make_relay, store):
    origin = make_relay(start=False, relay={"redis": None})
    origin.stack.write_origin_file()
    origin.stack.init_database()
    assert origin.sql("select to_regclass('sluice.journal_unrelayed')") == [(None,)]
    origin.stack.options["origin"]["relay"]["redis"] = store.server.url
    origin.stack.write_origin_file()
    origin.stack.restart_origin()
    origin.hold(origin.item(5))
    wait_until(lambda: any("--init" in line["event"] for line in origin.errors()), 10, "a line")
    assert len(origin.errors()) == 1 and unmarked(origin) == 2
    origin.stack.init_database()
    wait_until(lambda: unmarked(origin) == 0, 20, "relayed")
    assert_all_told(origin, store, once=True)


def test_off_by_default(origin):
    assert origin.metric("sluice_relay_duty") == 0
    assert origin.sql("select to_regclass('sluice.journal_unrelayed')") == [(None,)]
