"""What clients of other makers get, and what malformed requests get."""
import subprocess

import pytest

from h2client import H2, Lost
from shopper import API


@pytest.fixture
def sale(shop):
    sale = shop.sale()
    shop.wait_state(sale, "open")
    return sale


def curl(shop, *words):
    done = subprocess.run(["curl", "-sS", "--max-time", "10", "--cacert", shop.stack.ca, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done
    return done.stdout


def test_curl_gets_the_flag_over_http2(shop, sale):
    url = f"{shop.stack.url}{API}/sales/{sale}"
    assert curl(shop, "--http2", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", url) == "2 200"
    head = curl(shop, "--http2", "-I", url)
    etag = next(line.split(": ", 1)[1] for line in head.splitlines() if line.startswith("etag"))
    assert curl(shop, "--http2", "-H", f"If-None-Match: {etag}", "-o", "/dev/null",
                "-w", "%{http_code}", url) == "304"


def test_nghttp_gets_the_flag(shop, sale):
    done = subprocess.run(["nghttp", "-v", f"{shop.stack.url}{API}/sales/{sale}"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
    assert ":status: 200" in done.stdout and sale in done.stdout, done.stdout


def test_curl_reaches_the_admin_listener_over_both_protocols(shop):
    for flag, version in (("--http1.1", "1.1"), ("--http2", "2")):
        assert curl(shop, flag, "-o", "/dev/null", "-w", "%{http_version} %{http_code}",
                    f"{shop.stack.admin.url}/healthz") == f"{version} 200"


def test_curl_reaches_the_origin_over_both_protocols(shop):
    for flag, version in (("--http1.1", "1.1"), ("--http2-prior-knowledge", "2")):
        assert curl(shop, flag, "-o", "/dev/null", "-w", "%{http_version} %{http_code}",
                    f"{shop.stack.origin.url}/healthz") == f"{version} 200"


@pytest.mark.parametrize("alpn", [("http/1.1",), ("h3", "http/1.0")])
def test_without_h2_the_handshake_ends_with_an_alert(shop, alpn):
    import ssl
    with pytest.raises(ssl.SSLError, match="(?i)alert|protocol"):
        H2(shop.stack.url, shop.stack.ca, alpn=alpn)


@pytest.mark.parametrize("path", [
    "/_sluice/v1/sales/%2e%2e/x", "/_sluice/v1//sales", "/_sluice/v1/sales/../sales",
    "/a\\b", "/%2e%2e/admin", "/a#b", "/caf\u00e9", "/a/%2F/b", "/a%00b"])
def test_odd_spellings_of_paths_are_400_or_404(shop, path):
    with shop.connect(validate=False) as connection:
        answer = connection.get(path)
        assert answer.status in (400, 404) and answer.json["code"] in ("bad_request", "not_found")


@pytest.mark.parametrize("authority", ["admin@127.0.0.1", "127.0.0.1,evil.test", "a b", "127.0.0.1/x",
                                       "127.0.0.1?x", "127.0.0.1#x", ""])
def test_odd_authorities_are_refused(shop, authority):
    with shop.connect(validate=False) as connection:
        try:
            answer = connection.get(f"{API}/sales", authority=authority or " ")
        except Lost:
            return
        assert answer.status in (400, 421) or answer.reset is not None, answer


def test_authority_and_host_that_differ_are_400(shop, sale):
    with shop.connect(validate=False) as connection:
        answer = connection.get(f"{API}/sales/{sale}", {"host": "other.test"})
        assert answer.status == 400, answer


def test_too_many_headers_are_431_and_the_connection_goes_on(shop, sale):
    connection = shop.connect()
    answer = connection.get(f"{API}/sales/{sale}", [(f"x-{n}", "y") for n in range(150)])
    assert (answer.status, answer.json["code"]) == (431, "headers_too_large"), answer
    assert connection.get(f"{API}/sales/{sale}").status == 200
    answer = connection.get(f"{API}/sales/{sale}", {"x": "y" * 17000})
    assert answer.status == 431 and connection.get(f"{API}/sales/{sale}").status == 200


def test_lower_case_methods_are_405(shop, sale):
    with shop.connect(validate=False) as connection:
        answer = connection.request("get", f"{API}/sales/{sale}")
        assert answer.status == 405, answer


def test_scheme_must_be_https(shop, sale):
    with shop.connect(validate=False) as connection:
        connection.scheme = "http"
        assert connection.get(f"{API}/sales/{sale}").status == 400


def test_thousand_streams_on_one_connection(shop, sale):
    connection = shop.connect()
    for _ in range(10):
        streams = [connection.start("GET", f"{API}/sales/{sale}") for _ in range(100)]
        assert {connection.finish(stream).status for stream in streams} == {200}


def test_metrics_have_every_name_of_the_contract(shop, sale):
    buyer = shop.buyer(sale)
    buyer.enter()
    buyer.hold()
    gateway, origin = shop.stack.metrics(), shop.stack.origin.metrics()
    for name in ("requests_total", "origin_requests_total", "store_calls_total", "passes_outstanding",
                 "passes_issued_total", "available", "gate_gap", "line_waiting", "line_live",
                 "connections", "handshakes_total", "answer_seconds_count"):
        assert gateway.has(f"sluice_{name}"), name
    for name in ("holds_total", "hold_expired_total", "hold_to_confirm_seconds_count",
                 "lock_wait_seconds_count", "lock_held_seconds_count", "pool_held_seconds_total",
                 "batch_size_count", "invariant_violations"):
        assert origin.has(f"sluice_{name}"), name
    assert gateway.value("sluice_available", sale=sale) in (9, 10)
    assert gateway.value("sluice_requests_total", sale=sale, answer="hold") == 1
