"""Sale windows and the operator's verbs, at the origin and by the admin listener."""
import concurrent.futures
import contextlib
import json
import subprocess

import psycopg2
import pytest

from run.process import wait_until

DEFAULTS = {"prequeue_at": None, "closes_at": None, "queue": "fifo", "overbook": 1.0,
            "rate_per_minute": 0, "max_active": 0, "per_account": 1, "hold_seconds": 600,
            "extend_seconds": 300, "first_use_seconds": 20, "pass_seconds": 300, "skip_seconds": 15,
            "forget_seconds": 600, "guest_work": "none", "login_url": None, "beacon_source": None}


def assert_problem(answer, status, code):
    assert (answer.status, answer.json["code"]) == (status, code), answer


def put(shop, sale, item, **fields):
    return shop.stack.origin.put(f"/v1/sales/{sale}", {
        "tenant": shop.tenant, "item": item, "opens_at": "2099-01-01T00:00:00Z",
        **fields})


@pytest.fixture
def item(shop):
    name = shop.fresh("i")
    shop.put_stock(name, 5)
    return name


def test_a_new_sale_has_the_defaults_of_the_contract(shop, item):
    sale = shop.fresh("s")
    assert put(shop, sale, item).status in (200, 201)
    answer = shop.stack.origin.get(f"/v1/sales/{sale}")
    have = {name: answer.json[name] for name in DEFAULTS}
    assert have == DEFAULTS
    assert answer.headers["etag"] == f'"{answer.json["version"]}"' and "round" in answer.json


def test_an_equal_put_makes_no_revision(shop, item):
    sale = shop.fresh("s")
    first = put(shop, sale, item).json["version"]
    assert put(shop, sale, item).json["version"] == first
    assert put(shop, sale, item, hold_seconds=60).json["version"] > first


def test_stale_if_match_is_409(shop, item):
    sale = shop.fresh("s")
    version = put(shop, sale, item).json["version"]
    path = f"/v1/sales/{sale}"
    assert shop.stack.origin.patch(path, {"hold_seconds": 60},
                                   headers={"If-Match": f'"{version}"'}).status == 200
    answer = shop.stack.origin.patch(path, {"hold_seconds": 70},
                                     headers={"If-Match": f'"{version}"'})
    assert_problem(answer, 409, "conflict")
    assert shop.stack.origin.patch(path, {"hold_seconds": 70}).status == 200


def test_unknown_item_is_404_that_names_it(shop):
    answer = put(shop, shop.fresh("s"), "no-such-thing")
    assert_problem(answer, 404, "not_found")
    assert b"no-such-thing" in answer.body


@pytest.mark.parametrize("fields", [
    {"opens_at": "2026-11-29T09:00:00"}, {"opens_at": "tomorrow"}, {"opens_at": 5},
    {"closes_at": "2098-12-31T00:00:00Z"}, {"closes_at": "2099-01-01T00:00:00Z"},
    {"overbook": 0.9}, {"overbook": 2.1}, {"hold_seconds": 0}, {"hold_seconds": 1801},
    {"per_account": 0}, {"queue": "lottery"}, {"identity": "anyone"}, {"left": "maybe"},
    {"match": "/x"}, {"match": [{"path": "x"}]}, {"nonsense": 1}, {"rate_per_minute": -1},
    {"prequeue_at": "2099-01-02T00:00:00Z"}, {"store_loss": "panic"},
    {"upstream": "http://evil.test/"}])
def test_bad_fields_are_400_and_make_nothing(shop, item, fields):
    sale = shop.fresh("s")
    assert_problem(put(shop, sale, item, **fields), 400, "bad_request")
    assert shop.stack.origin.get(f"/v1/sales/{sale}").status == 404


def test_offsets_are_understood(shop, item):
    sale = shop.fresh("s")
    put(shop, sale, item, opens_at="2099-11-29T09:00:00+09:00")
    shop.wait_flag(sale, lambda flag: flag["opens_at"].startswith("2099-11-29T00:00:00"))


def test_verbs_take_effect_within_a_second_and_repeat_unchanged(shop, item):
    sale = shop.fresh("s")
    put(shop, sale, item)
    shop.wait_state(sale, "scheduled")
    for verb, state in (("open", "open"), ("pause", "paused"), ("resume", "open"), ("close", "closed")):
        first = shop.operate(sale, verb)
        assert first.status == 200 and first.json.get("changed") is not False, (verb, first)
        shop.wait_state(sale, state, seconds=1.5, promised=True)
        again = shop.operate(sale, verb)
        assert (again.status, again.json["changed"]) == (200, False), (verb, again)


def test_verbs_after_close_are_409_until_it_is_reopened(shop, item):
    sale = shop.fresh("s")
    put(shop, sale, item, opens_at="2020-01-01T00:00:00Z")
    shop.operate(sale, "close")
    for verb in ("open", "pause", "resume"):
        assert_problem(shop.operate(sale, verb), 409, "conflict")
    answer = shop.stack.admin.patch(f"/v1/sales/{sale}", {"closes_at": "2099-01-01T00:00:00Z"})
    assert answer.status == 200, answer
    shop.wait_state(sale, "open")


def test_reset_wants_if_match(shop, item):
    sale = shop.fresh("s")
    version = put(shop, sale, item).json["version"]
    assert_problem(shop.operate(sale, "reset"), 400, "bad_request")
    assert_problem(shop.operate(sale, "reset", headers={"If-Match": f'"{version - 1}"'}), 409, "conflict")
    before = shop.stack.origin.get(f"/v1/sales/{sale}").json["round"]
    assert shop.operate(sale, "reset", headers={"If-Match": f'"{version}"'}).status == 200
    assert shop.stack.origin.get(f"/v1/sales/{sale}").json["round"] == before + 1


def test_each_verb_is_an_audit_row_and_repeats_are_none(shop, item):
    sale = shop.fresh("s")
    put(shop, sale, item)
    for verb in ("open", "open", "pause", "resume"):
        shop.operate(sale, verb)
    rows = shop.stack.admin.get(f"/v1/sales/{sale}/audit").json["audit"]
    text = json.dumps(rows)
    assert all(text.count(f'"{verb}"') == 1 for verb in ("open", "pause", "resume")), rows


def test_audit_names_the_operator_of_the_token(make_shop, expected_errors):
    shop = make_shop(start=False)
    stack = shop.stack
    with open(stack.operator_token) as old:
        unnamed = old.read().strip()
    with open(stack.operator_token, "w") as tokens:
        tokens.write(f"{unnamed}\n\nanna token-of-anna\n")
    stack.start()
    sale = shop.sale()
    anna = {"Authorization": "Bearer token-of-anna"}
    assert shop.operate(sale, "pause").status == 200
    assert shop.operate(sale, "resume", headers={**anna, "Sluice-Actor": "somebody"}).status == 200
    assert shop.operate(sale, "pause", headers={"Authorization": "Bearer anna token-of-anna"}).status == 401
    rows = stack.admin.get(f"/v1/sales/{sale}/audit").json["audit"]
    assert [(row["verb"], row["actor"]) for row in rows] == [
        ("create", "service"), ("pause", "operator"), ("resume", "anna")]
    with open(stack.operator_token, "w") as tokens:
        tokens.write(f"{unnamed}\nanna two words\n")
    expected_errors.append("reload refused, the old configuration stays")
    stack.gateway.signal(1)
    shop.logs.wait_error("reload refused, the old configuration stays")
    assert shop.operate(sale, "pause", headers=anna).status == 200


def test_sale_whose_cookie_would_be_anothers_is_refused(shop, item):
    """The ticket of sale pass-x and the pass of sale x would share one cookie."""
    answer = put(shop, "pass-" + shop.fresh("s"), item)
    assert_problem(answer, 400, "bad_request")
    assert "pass-" in answer.json["detail"]
    assert put(shop, "pass", item).status in (200, 201)
    assert put(shop, "passport-" + shop.fresh("s"), item).status == 201


def test_admin_listener_wants_its_token(shop):
    for headers in ({}, {"Authorization": "Bearer wrong"},
                    {"Authorization": f"Bearer {shop.stack.origin.token}"}):
        answer = shop.stack.admin.call("GET", "/v1/sales", headers=headers, token=False)
        assert answer.status == 401, answer
    for path in ("/metrics", "/healthz", "/readyz"):
        assert shop.stack.admin.call("GET", path, token=False).status == 200


def test_admin_paths_are_not_on_the_public_port(shop):
    connection = shop.connect()
    for path in ("/v1/sales", "/v1/invariant", "/metrics", "/readyz", "/v1/snapshot"):
        answer = connection.get(path, {"authorization": f"Bearer {shop.stack.admin.token}"})
        assert answer.status == 404, path


def ctl(shop, *words, token=True):
    command = [shop.stack.program("gateway/sluicectl"), "-u", shop.stack.admin.url,
               "--ca", shop.stack.ca, *(["-k", shop.stack.operator_token] if token else []), *words]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=20)


def test_sluicectl_holds_a_sale_from_stock_to_close(shop):
    item, sale = shop.fresh("i"), shop.fresh("s")
    steps = [("stock", "shop", item, "7"),
             ("create", sale, "tenant=shop", f"item={item}", "opens_at=2099-01-01T00:00:00Z"),
             ("open", sale), ("open", sale), ("pause", sale), ("resume", sale), ("close", sale)]
    for words in steps:
        done = ctl(shop, *words)
        assert done.returncode == 0, (words, done)
    done = ctl(shop, "--json", "show", sale)
    assert done.returncode == 0 and json.loads(done.stdout)["item"] == item, done
    assert sale in ctl(shop, "sales").stdout


def test_sluicectl_locks_names_the_holder_and_the_row(shop, item):
    with concurrent.futures.ThreadPoolExecutor(1) as pool, contextlib.closing(
            psycopg2.connect(shop.stack.postgres.url)) as holder, contextlib.closing(
            psycopg2.connect(shop.stack.postgres.url)) as waiter:
        holder.cursor().execute("/* sluice reserve */ select from sluice.item where item = %s "
                                "for update", (item,))
        try:
            waits = pool.submit(waiter.cursor().execute,
                                "update sluice.item set n = n where item = %s", (item,))
            line = wait_until(lambda: [line for line in ctl(shop, "locks").stdout.splitlines()
                                       if line.endswith(f"/{item}")], 20, "the lock told")[0]
            assert str(holder.info.backend_pid) in line.split() and "reserve" in line.split()
        finally:
            holder.rollback()
        waits.result()
    assert ctl(shop, "locks").returncode == 0


def test_sluicectl_audit_tells_one_sale_or_all(shop, item):
    sales = [shop.fresh("s"), shop.fresh("s")]
    for sale in sales:
        put(shop, sale, item)
    of_all, of_one = ctl(shop, "audit"), ctl(shop, "audit", sales[0])
    assert of_all.returncode == 0 and all(sale in of_all.stdout for sale in sales), of_all
    assert of_one.returncode == 0 and sales[0] in of_one.stdout, of_one
    assert sales[1] not in of_one.stdout, of_one


@pytest.mark.parametrize("text", ["zebra\nyak\n", "zebra yak\n", "caf\u00e9\n", "tab\there\n"])
def test_sluicectl_says_what_a_token_file_holds(shop, tmp_path, text):
    path = tmp_path / "token"
    path.write_text(text)
    done = subprocess.run([shop.stack.program("gateway/sluicectl"), "-u", shop.stack.admin.url,
                           "--ca", shop.stack.ca, "-k", path, "sales"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=20)
    assert done.returncode == 1 and "expected one line" in done.stderr, done
    assert str(path) in done.stderr and not set(text.split()) & set(done.stderr.split()), done


@pytest.mark.parametrize("words, code", [
    (("show", "nobody-made-this"), 1), (("open", "nobody-made-this"), 1), (("open",), 2),
    (("dance",), 2), ((), 2)])
def test_sluicectl_says_refused_and_usage(shop, words, code):
    done = ctl(shop, *words)
    assert done.returncode == code and done.stderr, done


def test_sluicectl_signs_account_tokens(shop):
    done = subprocess.run([shop.stack.program("gateway/sluicectl"), "token", "account", "jane",
                           "--account-key", shop.stack.account_key, "--ttl", "60"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=20)
    assert done.returncode == 0, done
    sale = shop.sale()
    answer = shop.connect().post(f"/_sluice/v1/sales/{sale}/line",
                                 headers={"authorization": f"Bearer {done.stdout.strip()}"})
    assert answer.status == 200, answer


def test_sale_that_opens_by_the_clock_opens_once(shop, item):
    import datetime
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1.5)
    sale = shop.fresh("s")
    put(shop, sale, item, opens_at=soon.isoformat(), identity="account")
    shop.wait_state(sale, "scheduled")
    assert shop.buyer(sale).join().json["state"] == "not_open"
    shop.wait_state(sale, "open", seconds=4)
    assert shop.buyer(sale).join().status == 200


def test_pace_lets_in_no_more_than_the_rate(shop):
    sale = shop.sale(units=50, rate_per_minute=60)
    buyers = [shop.buyer(sale) for _ in range(8)]
    admitted = sum(buyer.join().status == 200 for buyer in buyers)
    assert admitted <= 2
    wait_until(lambda: sum(buyer.join().status == 200 for buyer in buyers) > admitted, 5,
               "the pace goes on")


def test_max_active_bounds_those_inside(shop):
    sale = shop.sale(units=50, max_active=2)
    buyers = [shop.buyer(sale) for _ in range(5)]
    assert sum(buyer.join().status == 200 for buyer in buyers) == 2
