"""Origin or database away: memory goes on answering, and nothing acknowledged is lost."""
import json
import os
import random

import pytest

from h2client import H2
from run.process import wait_until
from shopper import API


def behind(shop):
    """Requests that shoppers caused behind the gateway, and calls of the store."""
    metrics = shop.stack.metrics()
    return (sum(metrics.value("sluice_origin_requests_total", kind=kind)
                for kind in ("hold", "hold_read", "forward")),
            metrics.value("sluice_store_calls_total", op="join"))


class Saved:
    """The snapshot that a restarted gateway reads, kept to be put back: the
    gateway writes it beside its work, so a kill may always find an older one."""

    def __init__(self, stack):
        self.path = os.path.join(stack.nodes[0].state, "snapshot.json")
        self.text = None

    def _read(self):
        with open(self.path) as saved:
            return saved.read()

    def keep(self, question, what):
        """Waits for one whose flags, by sale, are as asked."""
        def is_so():
            text = self._read()
            flags = {flag["sale"]: flag for flag in json.loads(text)["flags"]}
            return text if question(flags) else None
        self.text = wait_until(is_so, 10, f"on disk: {what}")

    def put_back(self):
        with open(self.path, "w") as saved:
            saved.write(self.text)


def stop_all(stack):
    stack.origin_process.kill9()
    stack.postgres.process.end()
    stack.gateway.kill9()


def ask_flag(stack, sale):
    """The flag's answer as soon as the gateway listens again."""
    def flag():
        try:
            with H2(stack.url, stack.ca) as connection:
                return connection.get(f"{API}/sales/{sale}")
        except OSError:
            return None
    return wait_until(flag, 10, "the gateway answers")


def join_line(stack, sale, buyer):
    with H2(stack.url, stack.ca) as connection:
        buyer.connection = connection
        return buyer.join()


def test_flags_and_sold_out_cause_no_call_behind_the_gateway(shop):
    sale = shop.sale(units=1)
    shop.sell_out(sale)
    connection = shop.connect()
    before = behind(shop)
    for _ in range(200):
        assert connection.get(f"{API}/sales/{sale}").status == 200
        assert connection.post(f"{API}/sales/{sale}/line").status == 410
    assert behind(shop) == before


def test_with_origin_and_database_stopped_memory_still_answers(lone_shop):
    shop, stack = lone_shop, lone_shop.stack
    sale, open_sale = shop.sale(units=1), shop.sale(units=1)
    shop.sell_out(sale)
    first, waiting = shop.buyer(open_sale), shop.buyer(open_sale)
    first.join(), waiting.join()
    stack.origin_process.kill9()
    stack.postgres.process.end()
    connection = shop.connect()
    assert connection.get(f"{API}/sales/{sale}").json["state"] == "sold_out"
    assert connection.post(f"{API}/sales/{sale}/line").json["code"] == "sold_out"
    wait_until(lambda: waiting.place().json["state"] == "paused", 8, "told that it is paused")
    assert waiting.place().status == 202
    answer = shop.buyer(open_sale).join()
    assert (answer.status, answer.json["code"]) == (503, "paused") and answer.header("retry-after")
    answer = first.hold()
    assert (answer.status, answer.json["code"]) == (503, "paused"), answer
    assert connection.get(f"{API}/sales/{open_sale}").json["state"] == "open"


def test_gateway_restarted_while_all_behind_is_stopped_answers_sold_out(lone_shop):
    shop, stack = lone_shop, lone_shop.stack
    sale = shop.sale(units=1)
    shop.sell_out(sale)
    told = shop.flag(sale).json
    shop.close()
    stop_all(stack)
    stack.start_gateway(wait=False)
    assert ask_flag(stack, sale).json == told
    with H2(stack.url, stack.ca) as connection:
        assert connection.post(f"{API}/sales/{sale}/line").json["code"] == "sold_out"
    stack.postgres.start()
    stack.restart_origin()
    shop.put_stock(sale, 2)
    shop.wait_state(sale, "open")


def test_gateway_restarted_from_an_older_snapshot_takes_nothing_back(lone_shop):
    """Sold out since, in stock again since, paused since, new since, and told twice."""
    shop, stack = lone_shop, lone_shop.stack
    saved = Saved(stack)
    sold, back, paused, twice = (shop.sale(units=1) for _ in range(4))
    shop.sell_out(back)
    version = shop.flag(twice).json["version"]
    saved.keep(lambda flags: {sold, back, paused, twice} <= set(flags)
               and flags[back]["version"] == shop.flag(back).json["version"],
               "four sales, one of them sold out")
    new = shop.sale()
    shop.sell_out(sold)
    shop.put_stock(back, 2)
    shop.wait_state(back, "open")
    shop.operate(paused, "pause")
    shop.wait_state(paused, "paused")
    shop.operate(twice, "pause")
    shop.wait_state(twice, "paused")
    shop.operate(twice, "resume")
    shop.wait_state(twice, "open")
    told = {sale: shop.flag(sale).json for sale in (sold, back, paused, twice, new)}
    assert told[twice]["version"] == version + 2
    buyers = {sale: shop.buyer(sale) for sale in told}
    shop.close()
    stop_all(stack)
    saved.put_back()
    stack.start_gateway(wait=False)
    for sale, flag in told.items():
        assert ask_flag(stack, sale).json == flag
        answer = join_line(stack, sale, buyers[sale])
        want = (410, "sold_out") if sale == sold else (503, "paused")
        assert (answer.status, answer.json["code"]) == want, answer
    assert ask_flag(stack, "never-was").status == 404
    stack.postgres.start()
    stack.restart_origin()
    for sale, flag in told.items():
        assert shop.wait_flag(sale, lambda now: now["version"] >= flag["version"]).status == 200
    shop.operate(new, "close")
    assert shop.wait_state(new, "closed").json["version"] == told[new]["version"] + 1


def test_gateway_starts_without_its_origin_and_pauses(make_shop):
    shop = make_shop(start=False)
    shop.stack.start_gateway(wait=False)
    answer = ask_flag(shop.stack, "anything")
    assert (answer.status, answer.json["code"]) == (503, "paused")
    assert not shop.stack.admin.is_ready()
    wait_until(lambda: "no snapshot from the origin" in shop.stack.gateway.log_text(), 10, "told why")


def test_origin_starts_without_its_database_and_retries(lone_shop, expected_errors):
    expected_errors.append("cannot be reached; trying again until it can")
    shop, stack = lone_shop, lone_shop.stack
    sale = shop.sale()
    stack.origin_process.end()
    stack.postgres.process.end()

    def is_up():
        try:
            return stack.origin.call("GET", "/healthz", token=False).status == 200
        except OSError:
            return False
    stack.restart_origin(wait=False)
    stack.origin_process.wait_ready(is_up, 5)
    assert not stack.origin.is_ready()
    shop.logs.wait_error("cannot be reached; trying again until it can")
    stack.postgres.start()
    wait_until(stack.origin.is_ready, 10, "the origin has its database")
    shop.wait_state(sale, "open")
    wait_until(lambda: shop.buyer(sale).join().status == 200, 10, "sells again")


@pytest.mark.parametrize("which", ["gateway", "origin"])
def test_places_passes_and_holds_outlive_a_kill_and_restart(own_shop, which):
    shop, stack = own_shop, own_shop.stack
    sale = shop.sale(units=2)
    holder, admitted, waiting = (shop.buyer(sale) for _ in range(3))
    holder.enter(), admitted.enter()
    held = holder.hold(key="mine").json
    assert waiting.join().json["position"] == 1
    shop.close()
    if which == "gateway":
        stack.gateway.kill9()
        stack.start_gateway()
    else:
        stack.origin_process.kill9()
        stack.restart_origin()
    for buyer in (holder, admitted, waiting):
        buyer.connection = shop.connect()

    def hold(buyer, key):  # each worker finds out by itself that the origin is back
        return wait_until(lambda: (answer := buyer.hold(key=key)).status != 503 and answer, 10,
                          "holds answered")
    again = hold(holder, "mine")
    assert again.status == 200 and again.json["hold"] == held["hold"], again
    answer = waiting.place()
    assert (answer.status, answer.json["position"]) == (202, 1), answer
    assert hold(admitted, "other").status == 201
    late = shop.buyer(sale)
    assert wait_until(lambda: (answer := late.join()).json.get("state") != "paused" and answer, 10,
                      "the line goes on").json["position"] == 2


def test_a_broken_map_is_put_aside_and_nobody_loses_a_place(own_shop, expected_errors):
    """The header is whole, what is behind it noise: as a disk may leave it."""
    told = "the map is broken; it is kept as admission.map.broken"
    expected_errors.append(told)
    shop, stack = own_shop, own_shop.stack
    sale = shop.sale(units=1)
    admitted = shop.buyer(sale)
    admitted.enter()
    waiting = [shop.buyer(sale) for _ in range(3)]
    for place, buyer in enumerate(waiting, 1):
        assert buyer.join().json["position"] == place
    shop.close()
    stack.gateway.kill9()
    path = os.path.join(stack.nodes[0].state, "admission.map")
    with open(path, "r+b") as map_:
        map_.seek(4096)
        map_.write(random.Random(7).randbytes(64 * 1024))
    stack.start_gateway()
    shop.logs.wait_error(told)
    assert stack.metrics().value("sluice_store_broken_total") == 1
    assert os.path.exists(path + ".broken")
    for buyer in (admitted, *waiting):
        buyer.connection = shop.connect()
    assert admitted.hold().status == 201  # its pass is registered by being shown
    for place, buyer in enumerate(waiting, 1):
        assert buyer.place().json["position"] == place
    late = shop.buyer(sale)
    assert late.join().json["position"] == 4
    shop.put_stock(sale, 2)  # one more than is held: for the first of them
    waiting[0].enter()
    assert late.join().status == 202 and waiting[1].join().status == 202
    assert waiting[0].hold().status == 201


def test_sigterm_ends_both_programs_in_order_with_exit_0(own_shop):
    shop, stack = own_shop, own_shop.stack
    sale = shop.sale()
    connection = shop.connect()
    assert connection.get(f"{API}/sales/{sale}").status == 200
    stack.gateway.signal(15)
    goaway = connection.wait_closed(30)
    assert goaway is not None and goaway[0] == 0
    assert stack.gateway.wait(30) == 0
    stack.origin_process.signal(15)
    assert stack.origin_process.wait(30) == 0


def test_origin_stopped_for_a_while_pauses_and_goes_on(own_shop):
    shop, stack = own_shop, own_shop.stack
    sale = shop.sale(units=1)
    first, waiting = shop.buyer(sale), shop.buyer(sale)
    first.join(), waiting.join()
    stack.origin_process.pause()
    try:
        wait_until(lambda: waiting.place().json["state"] == "paused", 8, "paused")
    finally:
        stack.origin_process.resume()
    wait_until(lambda: waiting.place().json["state"] in ("waiting", "ready"), 8, "goes on")
    first.leave()
    waiting.enter(15)
    assert waiting.hold().status == 201


def test_origin_that_stalls_answers_shoppers_within_its_time(make_shop):
    from proxy import Proxy
    shop = make_shop(start=False)
    stack = shop.stack
    stack.start_postgres()
    stack.start_origin()
    proxy = Proxy(stack.origin.url.partition("://")[2])
    try:
        stack.origin_url = f"http://{proxy.address}"
        stack.start_gateway()
        sale = shop.sale(units=5)
        buyer = shop.buyer(sale)
        buyer.enter()
        proxy("stall", "down")
        answer = buyer.hold(key="slow")
        assert answer.status == 503 and answer.header("retry-after"), answer
        proxy("clear")
        again = wait_until(lambda: (answer := buyer.hold(key="slow")).status in (200, 201) and answer,
                           15, "the hold in the end")
        assert again.json["state"] == "held" and shop.stock(sale)["held"] == 1
        proxy("drop")
        wait_until(lambda: shop.buyer(sale).join().status == 200, 15, "joins after the cut")
    finally:
        proxy.close()
