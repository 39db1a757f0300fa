"""Killed and cut off before and after the commit: whether it wrote is unknown then, and
the same request with the same key, or reference, gives the one true answer."""
import collections
import concurrent.futures
import http.client
import os
import random
import shutil
import threading

import pytest

from one_origin import Origin, assert_problem
from proxy import Proxy
from run.process import Failed, wait_until

ROUNDS = 400 if os.environ.get("SLUICE_SOAK") else 12  # of each of 4 buyers


def lay_between(origin, port):
    """A proxy between an origin, not yet started, and its database."""
    origin.proxy = Proxy(f"127.0.0.1:{port}")
    origin.stack.database_url = origin.url.replace(f":{port}/", f":{origin.proxy.port}/")


@pytest.fixture(scope="module")
def far(shared_origin):
    origin = Origin(shared_origin.stack.postgres)
    lay_between(origin, shared_origin.stack.postgres.port)
    try:
        yield origin.start()
    finally:
        origin.stop()
        origin.proxy.close()
    assert origin.stack.origin_process.child.returncode == 0
    shutil.rmtree(origin.stack.folder)


def definite(call):
    """The first answer that says what is, and how many before it did not."""
    unknown = 0
    while True:
        try:
            answer = call()
        except (OSError, http.client.HTTPException):
            answer = None
        if answer is not None and answer.status != 503:
            return answer, unknown
        unknown += 1


class Step:
    """One request that writes, and how to see from outside that it has."""

    def __init__(self, origin, verb):
        self.origin, self.verb, self.item = origin, verb, origin.item(5)
        self.hold = origin.hold(self.item) if verb == "confirm" else None
        self.word = origin.fresh("k")  # that nobody else says

    def __call__(self):
        if self.verb == "confirm":
            return self.origin.confirm(self.hold, self.word)
        return self.origin.reserve(self.item, "ann", key=self.word)

    def is_written(self):
        state = "sold" if self.verb == "confirm" else "held"
        return self.origin.sql("select count(*) from sluice.hold where item = %s and state = %s",
                               self.item, state) == [(1,)]

    def assert_true_answer(self, was_written):
        again = definite(self)[0]
        assert again.status == (201 if self.verb == "reserve" and not was_written else 200), again
        assert self().json == again.json and self.is_written()
        assert len(self.origin.api.get(f"/v1/holds/{again.json['hold']}/events").json) == (
            2 if self.verb == "confirm" else 1)
        assert self.origin.invariant()["ok"]


def interrupted(step, is_late, harm):
    """Does the harm while the step is under way: after its commit, or before it has reached
    the server. What the step was answered; None where that was nothing."""
    origin = step.origin
    origin.proxy("stall", "down" if is_late else "up")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(step)
        if is_late:
            wait_until(step.is_written, 20, "the commit")
        else:
            wait_until(lambda: origin.proxy("kept", step.word, "up")["kept"], 20, "the statement")
        harm()
        origin.proxy("drop")
        origin.proxy("clear")
        try:
            return answer.result()
        except (OSError, http.client.HTTPException):
            return None


CASES = [(verb, is_late) for verb in ("reserve", "confirm") for is_late in (False, True)]


def test_a_connection_cut_before_and_after_the_commit(far):
    for verb, is_late in CASES:
        step = Step(far, verb)
        assert_problem(interrupted(step, is_late, lambda: None), 503, "paused")
        assert step.is_written() == is_late
        wait_until(far.api.is_ready, 20, "connected again")
        step.assert_true_answer(is_late)


def test_an_origin_killed_before_and_after_the_commit(far):
    for verb, is_late in CASES:
        step = Step(far, verb)
        assert interrupted(step, is_late, far.stack.origin_process.kill9) is None
        assert step.is_written() == is_late
        far.stack.restart_origin()
        step.assert_true_answer(is_late)


def test_a_database_killed_before_and_after_the_commit(make_origin):
    """One hold is committed, its answer on the way; of another the row is written, the
    item's row not to be had."""
    origin = make_origin(start=False, server=True)
    server = origin.stack.postgres
    lay_between(origin, server.port)
    origin.start()

    def comes_up():
        try:
            server.start()
        except Failed as why:  # its last backends still hold the shared memory
            assert "still in use" in str(why), why
            return False
        return True

    early, late = Step(origin, "reserve"), Step(origin, "reserve")
    with origin.database() as cursor, concurrent.futures.ThreadPoolExecutor(1) as pool:
        cursor.execute("begin; select 1 from sluice.item where item = %s for update", (early.item,))
        answer = pool.submit(early)
        wait_until(lambda: origin.sql("select count(*) from pg_stat_activity where "
                                      "wait_event_type = 'Lock'") == [(1,)], 20, "the lock")
        assert_problem(interrupted(late, True, server.process.kill9), 503, "paused")
        assert_problem(answer.result(), 503, "paused")
    wait_until(comes_up, 30, "the database recovers")
    wait_until(origin.api.is_ready, 30, "connected again")
    origin.own = threading.local()  # our own connection went with the server
    for step, was_written in ((early, False), (late, True)):
        assert step.is_written() == was_written
        step.assert_true_answer(was_written)


# -- a history, and the tables ------------------------------------------------------

class Buyer:
    """Asks until the answer is definite, and remembers every answer on the way."""

    def __init__(self, origin, item, number, seed):
        self.origin, self.item, self.name = origin, item, f"b{number}"
        self.random = random.Random(f"{seed}-{number}")
        self.holds, self.refused = {}, set()  # by key
        self.counts = collections.Counter()

    def definite(self, call):
        answer, unknown = definite(call)
        self.counts["ok" if answer.status < 300 else "fail"] += 1
        self.counts["unknown"] += unknown
        return answer

    def run(self):
        for number in range(ROUNDS):
            key = f"k{number}"
            answer = self.definite(lambda: self.origin.reserve(self.item, self.name, key=key))
            if answer.status == 409:
                self.refused.add(key)
                continue
            hold, end = answer.json["hold"], self.random.choice(["sold", "released", "held"])
            if end == "sold":
                answer = self.definite(lambda: self.origin.confirm(hold, f"ref-{hold}"))
            elif end == "released":
                answer = self.definite(lambda: self.origin.step(hold, "release"))
            assert answer.json["state"] == end, answer
            self.holds[key] = (hold, end)


def test_a_history_with_cuts_agrees_with_the_tables(far):
    seed = random.randrange(10 ** 9)
    print("seed", seed)
    chance, item = random.Random(seed), far.item(4 * ROUNDS // 2)
    buyers = [Buyer(far, item, number, seed) for number in range(4)]
    with concurrent.futures.ThreadPoolExecutor(len(buyers)) as pool:
        work = [pool.submit(buyer.run) for buyer in buyers]
        while not all(each.done() for each in work):
            cuts = far.proxy("cut", chance.randint(0, 4000), chance.choice(["up", "down"]))["cut"]
            wait_until(lambda: far.proxy("stats")["cut"] > cuts
                       or all(each.done() for each in work), 60, "a cut")
        for each in work:
            each.result()
    far.proxy("clear")
    wait_until(far.api.is_ready, 20, "connected again")
    counts = sum((buyer.counts for buyer in buyers), collections.Counter())
    assert counts["unknown"] > 0 and counts["ok"] > 0, counts

    rows = far.sql("select buyer, idem_key, id, state from sluice.hold where item = %s", item)
    told = {(buyer.name, key, hold[-32:], end)
            for buyer in buyers for key, (hold, end) in buyer.holds.items()}
    assert {(name, key, hold.replace("-", ""), state) for name, key, hold, state in rows} == told
    for buyer in buyers:
        assert len(buyer.holds) + len(buyer.refused) == ROUNDS
        assert not buyer.refused & set(buyer.holds)
    steps = dict(far.sql("select hold, count(*) from sluice.journal where item = %s "
                         "and hold is not null group by 1", item))
    assert all(steps[hold] == (1 if state == "held" else 2) for _, _, hold, state in rows)
    ends = collections.Counter(state for _, _, _, state in rows)
    stock = far.stock(item)
    assert (stock["held"], stock["sold"]) == (ends["held"], ends["sold"]), (stock, ends)
    assert far.invariant()["ok"]
