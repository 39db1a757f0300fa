"""The origin's HTTP: methods, bodies, names, tokens, the demo page, the program."""
import http.client
import os
import signal
import subprocess
import threading
import time

import pytest

from h2client import H2
from one_origin import assert_problem
from run.process import Process, wait_until


@pytest.mark.parametrize("method, path, allow", [
    ("POST", "/v1/sales", "GET"), ("DELETE", "/v1/sales/s", "GET, PUT, PATCH"),
    ("GET", "/v1/sales/s/open", "POST"), ("GET", "/v1/holds/a/confirm", "POST"),
    ("DELETE", "/v1/tenants/t/items/i", "GET, PUT"), ("PUT", "/metrics", "GET"),
    ("GET", "/v1/tenants/t/orders", "POST"), ("POST", "/v1/snapshot", "GET")])
def test_other_methods_are_405_with_allow(origin, method, path, allow):
    answer = origin.api.call(method, path, b"" if method != "GET" else None)
    assert_problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allow


@pytest.mark.parametrize("path", [
    "/v1", "/v1/", "/v1/nothing", "/v1/sales/", "/v1/sales/s/dance", "/v1/holds", "/v1/holds/",
    "/v1/holds/a/b/c", "/v1/tenants/t", "/v1/tenants/t/items",
    "/v1/tenants/t/items/i/holds/x", "/v1/snapshot/x"])
def test_unknown_paths_below_v1_are_404(origin, path):
    assert_problem(origin.api.get(path), 404, "not_found")


@pytest.mark.parametrize("path, field", [
    ("/v1/sales/UPPER", "sale"), ("/v1/sales/-x", "sale"), ("/v1/sales/" + "s" * 64, "sale"),
    ("/v1/tenants/a%20b/items/i", "tenant"), ("/v1/tenants/t/items/.x", "item")])
def test_impossible_names_are_400_and_say_which(origin, path, field):
    answer = origin.api.get(path)
    assert_problem(answer, 400, "bad_request")
    assert answer.json["field"] == field and answer.json["expected"]


@pytest.mark.parametrize("hold", ["x", "a" + "0" * 32, "b" + "0" * 32, "a" + "g" * 32,
                                  "a" + "0" * 31, "A" + "0" * 32])
def test_unknown_holds_are_404(origin, hold):
    for call in (origin.api.get(f"/v1/holds/{hold}"), origin.api.get(f"/v1/holds/{hold}/events"),
                 origin.step(hold, "release"), origin.step(hold, "extend"),
                 origin.confirm(hold)):
        assert_problem(call, 404, "not_found")


@pytest.mark.parametrize("body, field", [
    ({}, "buyer"), ({"buyer": "a"}, "qty"), ({"buyer": "a", "qty": 0}, "qty"),
    ({"buyer": "a", "qty": -1}, "qty"), ({"buyer": "a", "qty": 1.5}, "qty"),
    ({"buyer": "a", "qty": "1"}, "qty"), ({"buyer": "a", "qty": 2 ** 53}, "qty"),
    ({"buyer": "a b", "qty": 1}, "buyer"), ({"buyer": "a,b", "qty": 1}, "buyer"),
    ({"buyer": "x" * 129, "qty": 1}, "buyer"), ({"buyer": 7, "qty": 1}, "buyer"),
    ({"buyer": "a", "qty": 1, "sale": "No"}, "sale"),
    ({"buyer": "a", "qty": 1, "colour": "red"}, "colour")])
def test_a_bad_attempt_is_400_and_names_the_field(origin, body, field):
    item = origin.item(3)
    answer = origin.api.post(f"/v1/tenants/shop/items/{item}/holds", body,
                             headers={"Idempotency-Key": "k"})
    assert_problem(answer, 400, "bad_request")
    assert answer.json["field"] == field, answer
    assert origin.stock(item)["held"] == 0


@pytest.mark.parametrize("body", ["", "[", "[]", "7", '{"buyer":"a","qty":1,"qty":2}', "{}x",
                                  '{"buyer":"\\u0000","qty":1}', "\xff"])
def test_a_broken_body_is_400(origin, body):
    answer = origin.api.post("/v1/tenants/shop/items/x/holds", body.encode("latin-1"),
                             headers={"Idempotency-Key": "k"})
    assert_problem(answer, 400, "bad_request")


def test_the_key_is_wanted_and_bounded(origin):
    item = origin.item(3)
    path = f"/v1/tenants/shop/items/{item}/holds"
    body = {"buyer": "a", "qty": 1}
    assert_problem(origin.api.post(path, body), 400, "idempotency_key_required")
    assert_problem(origin.api.post(path, body, headers={"Idempotency-Key": "k" * 129}), 400,
                   "bad_request")
    for key in ("k", "k" * 128, "~!@#$%^&*()_+ {}|:<>?"):
        assert origin.reserve(item, origin.fresh("b"), key=key).status == 201


@pytest.mark.parametrize("second", ["one", "two"])
def test_two_keys_in_one_request_are_400(origin, second):
    item = origin.item(3)
    connection = http.client.HTTPConnection("127.0.0.1", origin.stack.origin_port, timeout=20)
    connection.putrequest("POST", f"/v1/tenants/shop/items/{item}/holds")
    body = b'{"buyer":"a","qty":1}'
    for name, value in (("authorization", f"Bearer {origin.api.token}"),
                        ("content-type", "application/json"), ("content-length", str(len(body))),
                        ("idempotency-key", "one"), ("idempotency-key", second)):
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    assert answer.status == 400 and b"Idempotency-Key" in answer.read()
    connection.close()
    assert origin.stock(item)["available"] == 3


def test_a_large_body_is_413(origin):
    answer = origin.api.post("/v1/tenants/shop/items/x/holds", b" " * 300000,
                             headers={"Idempotency-Key": "k"})
    assert_problem(answer, 413, "body_too_large")


@pytest.mark.parametrize("fields, field", [
    ({"opens_at": "2026-11-29T09:00:00"}, "opens_at"), ({"overbook": 3}, "overbook"),
    ({"match": [{"host": None, "path": "x", "prefix": True}]}, "match[0].path"),
    ({"match": [{"path": "/a"}, {"host": "A.B", "path": "/x"}]}, "match[1].host"),
    ({"queue": "draw", "identity": "guest"}, "guest_work"), ({"per_account": "2"}, "per_account"),
    ({"closes_at": "2019-01-01T00:00:00Z"}, "closes_at"), ({"wat": 1}, "wat"),
    ({"login_url": "javascript:alert(1)"}, "login_url"), ({"tenant": None}, "tenant")])
def test_a_bad_window_is_400_and_names_the_field(origin, fields, field):
    answer = origin.put_sale(origin.fresh("s"), origin.item(1), **fields)
    assert_problem(answer, 400, "bad_request")
    assert answer.json["field"] == field and answer.json["expected"], answer


def test_a_window_comes_back_as_it_went_out(origin):
    item = origin.item(1)
    sale = origin.sale(item, match=[{"host": "a.test", "path": "/x", "prefix": True}],
                       pages="dark", login_url="/login", prequeue_at="2019-12-31T23:00:00Z")
    shown = origin.read_sale(sale)
    again = origin.api.put(f"/v1/sales/{sale}", shown)
    assert again.status == 200 and again.json == shown
    patched = origin.api.patch(f"/v1/sales/{sale}", {"login_url": None, "overbook": 1.25}).json
    assert patched["login_url"] is None and patched["overbook"] == 1.25
    assert patched["pages"] == "dark" and patched["version"] == shown["version"] + 1


def test_if_match(origin):
    item = origin.item(1)
    sale = origin.fresh("s")
    assert_problem(origin.put_sale(sale, item, headers={"If-Match": '"1"'}), 409, "conflict")
    assert origin.put_sale(sale, item, headers={"If-None-Match": "*"}).status == 201
    assert_problem(origin.put_sale(sale, item, headers={"If-None-Match": "*"}), 409, "conflict")
    for bad in ("1", '"x"', '""'):
        assert_problem(origin.put_sale(sale, item, headers={"If-Match": bad}), 400, "bad_request")
    assert_problem(origin.put_sale(sale, item, headers={"If-Match": 'W/"1"'}), 409, "conflict")
    good = origin.put_sale(sale, item, headers={"If-Match": '"1"'}, hold_seconds=5)
    assert good.status == 200 and good.headers["etag"] == '"2"'


def test_patches_at_once_lose_nothing(origin):
    import concurrent.futures
    sale = origin.sale(origin.item(1))
    fields = ["hold_seconds", "extend_seconds", "pass_seconds"]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda f: origin.api.patch(f"/v1/sales/{sale}", {f: 77}), fields))
    shown = origin.read_sale(sale)
    assert [shown[field] for field in fields] == [77] * 3


def test_audit_tells_who_did_what(origin):
    item = origin.item(1)
    sale = origin.sale(item)
    origin.api.patch(f"/v1/sales/{sale}", {"hold_seconds": 9}, headers={"Sluice-Actor": "olga"})
    origin.operate(sale, "pause", {"hard": True})
    rows = origin.api.get(f"/v1/sales/{sale}/audit").json["audit"]
    assert [row["verb"] for row in rows] == ["create", "patch", "pause"]
    assert rows[1]["actor"] == "olga" and rows[1]["detail"] == {"hold_seconds": [600, 9]}
    assert rows[2]["detail"] == {"hard": True} and rows[2]["version"] == 3
    assert_problem(origin.api.get("/v1/sales/never-made/audit"), 404, "not_found")


def test_a_closed_sale_stays_closed_until_its_end_is_moved(origin):
    item = origin.item(1)
    sale = origin.sale(item)
    origin.operate(sale, "close")
    assert origin.put_sale(sale, item).json["state"] == "closed"
    assert origin.api.patch(f"/v1/sales/{sale}", {"hold_seconds": 5}).json["state"] == "closed"
    assert_problem(origin.operate(sale, "revoke", {"account": "a"}), 409, "conflict")
    assert origin.operate(sale, "close").json["changed"] is False
    assert origin.api.patch(f"/v1/sales/{sale}", {"closes_at": None}).json["state"] == "open"


def test_demo_page_and_its_mirror(origin):
    for path in ("/", "/demo", "/demo/x?y=1"):
        page = origin.api.call("GET", path, headers={"Sluice-Account": "ann<b>",
                                                     "Sluice-Sale": "s1"}, token=False)
        assert page.status == 200 and page.headers["content-type"].startswith("text/html")
        assert b"ann&lt;b&gt;" in page.body and b"s1" in page.body and b"http" not in page.body
    mirror = origin.api.call("POST", "/cart?x=1", b"{}", token=False,
                             headers={"Accept": "application/json", "X-Odd": "1"})
    assert mirror.status == 200
    assert (mirror.json["method"], mirror.json["path"]) == ("POST", "/cart?x=1")
    assert mirror.json["headers"]["x-odd"] == "1"


def test_head_has_no_body(origin):
    answer = origin.api.call("HEAD", "/healthz", token=False)
    assert answer.status == 200 and answer.body == b"" and answer.headers["content-length"]


# -- the program ----------------------------------------------------------------


def run(origin, *words):
    return subprocess.run([origin.stack.program("origin/sluice-origin"), *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)


def test_flags(origin):
    assert run(origin, "--version").stdout.startswith("sluice-origin ")
    checked = run(origin, "-c", origin.stack.origin_file, "-t")
    assert checked.returncode == 0 and "statement_timeout" in checked.stdout
    assert origin.stack.postgres.password not in checked.stdout
    for words in ((), ("-x",), ("-c",), ("-c", origin.stack.origin_file, "more")):
        assert run(origin, *words).returncode == 2, words


def test_a_bad_file_tells_every_fault_and_starts_nothing(origin, tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text("listen: [nowhere]\ntoken_file: none\nwat: 1\n")
    done = run(origin, "-c", str(file))
    assert done.returncode == 2
    for word in ("listen", "token_file", "wat", "database.url"):
        assert word in done.stderr, done.stderr


def test_a_port_in_use_is_one_clear_line(origin):
    done = run(origin, "-c", origin.stack.origin_file)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert str(origin.stack.origin_port) in done.stderr and "in use" in done.stderr


def test_sigterm_answers_what_is_open_and_ends(make_origin):
    origin = make_origin()
    digest = origin.snapshot().json["digest"]
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(origin.snapshot(after=digest, wait=20000)))
    thread.start()
    wait_until(lambda: origin.metric("sluice_snapshot_waiters") == 1, 5, "a caller waits")
    began = time.monotonic()
    origin.stack.origin_process.signal(signal.SIGTERM)
    thread.join(10)
    assert origin.stack.origin_process.wait(10) == 0
    assert time.monotonic() - began < 5 and answers[0].status == 200


def test_sighup_reads_the_token_again(make_origin):
    origin = make_origin()
    with open(origin.stack.service_token, "w") as file:
        file.write("another-token-entirely")
    origin.stack.origin_process.signal(signal.SIGHUP)
    wait_until(lambda: origin.api.get("/v1/sales").status == 401, 5, "the old token is out")
    fields = {"Authorization": "Bearer another-token-entirely"}
    assert origin.api.call("GET", "/v1/sales", headers=fields).status == 200


def test_one_connection_serves_many_requests(origin):
    connection = http.client.HTTPConnection("127.0.0.1", origin.stack.origin_port, timeout=10)
    for _ in range(50):
        connection.request("GET", "/v1/sales",
                           headers={"Authorization": f"Bearer {origin.api.token}"})
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read()
    connection.close()


def test_a_gateway_may_give_up_many_requests_of_its_connection(origin):
    """One connection carries thousands of shoppers; those that leave are no attack."""
    headers = {"authorization": f"Bearer {origin.api.token}"}
    after = origin.snapshot().json["digest"]
    with H2(origin.api.url, timeout=10) as connection:
        for _ in range(300):
            stream = connection.start("GET", f"/v1/snapshot?wait=20000&after={after}", headers)
            connection.h2.reset_stream(stream, 8)
        assert connection.get("/v1/invariant", headers).status == 200
        assert connection.goaway is None
