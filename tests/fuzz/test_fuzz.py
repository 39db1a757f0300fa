"""Foreign bytes in every door: the programs (built with sanitizers) stay alive,
say nothing of the kind 5xx, and a good client is served at all times.

The bytes come from seeds, so a failure repeats; SLUICE_SEEDS widens the search.
"""
import http.client
import os
import random
import socket
import ssl
import struct
import subprocess
import urllib.parse

import pytest

from h2client import H2, Lost
from run import config
from shopper import API

SEEDS = range(int(os.environ.get("SLUICE_SEEDS", "12")))
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture
def good(shop):
    """A check that a good client is still served."""
    sale = shop.sale()
    shop.wait_state(sale, "open")

    def check():
        with H2(shop.stack.url, shop.stack.ca) as connection:
            assert connection.get(f"{API}/sales/{sale}").status == 200
        assert shop.stack.admin.is_ready() and shop.stack.origin.is_ready()
    yield check
    check()


def frame(kind, flags, stream, payload):
    return (struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
            + struct.pack(">I", stream) + payload)


def random_frame(dice):
    kind = dice.choice([0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, dice.randrange(256)])
    size = dice.choice([0, 1, 4, 5, 6, 8, dice.randrange(64), dice.randrange(2000)])
    return frame(kind, dice.randrange(256), dice.choice([0, 1, 1, 3, 5, 2, dice.randrange(1 << 31)]),
                 dice.randbytes(size))


def mutated(dice, data):
    data = bytearray(data)
    for _ in range(dice.randrange(1, 8)):
        where = dice.randrange(len(data))
        action = dice.randrange(4)
        if action == 0:
            data[where] ^= 1 << dice.randrange(8)
        elif action == 1:
            data[where:where] = dice.randbytes(dice.randrange(1, 9))
        elif action == 2:
            del data[where:where + dice.randrange(1, 9)]
        else:
            data[where:where + 4] = dice.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"])
        data = data or bytearray(b"\0")
    return bytes(data)


def throw(url, ca, pieces):
    """Sends pieces over one connection and reads what comes, until either ends."""
    parts = urllib.parse.urlsplit(url)
    sock = socket.create_connection((parts.hostname, parts.port), 5)
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=ca)
        context.set_alpn_protocols(["h2"])
        sock = context.wrap_socket(sock, server_hostname=parts.hostname)
    try:
        sock.settimeout(0.05)
        for piece in pieces:
            sock.sendall(piece)
        while sock.recv(65536):
            pass
    except (OSError, ssl.SSLError):
        pass
    finally:
        sock.close()


def recorded_request(shop):
    """The bytes of an ordinary join and hold, as a client would send them."""
    import h2.config
    import h2.connection
    client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    client.initiate_connection()
    authority = urllib.parse.urlsplit(shop.stack.url).netloc
    for number, path in ((1, f"{API}/sales/x/line"), (3, f"{API}/sales/x/holds")):
        client.send_headers(number, [
            (":method", "POST"), (":scheme", "https"), (":authority", authority), (":path", path),
            ("authorization", f"Bearer {shop.token()}"), ("idempotency-key", "k"),
            ("cookie", "a=b; __Host-sluice-x=abc"), ("accept", "text/html;q=0.5, */*;q=0.1")])
        client.send_data(number, b'{"qty":1}', end_stream=True)
    return client.data_to_send()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_frames(shop, good, seed):
    dice = random.Random(f"frames {seed}")
    for _ in range(10):
        pieces = [PREFACE, frame(4, 0, 0, b"")] + [random_frame(dice) for _ in range(30)]
        throw(shop.stack.url, shop.stack.ca, pieces)
        throw(shop.stack.origin.url, None, pieces)


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_requests(shop, good, seed):
    dice = random.Random(f"mutations {seed}")
    whole = recorded_request(shop)
    for _ in range(15):
        throw(shop.stack.url, shop.stack.ca, [mutated(dice, whole)])
        throw(shop.stack.origin.url, None, [mutated(dice, whole)])


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_http1(shop, good, seed):
    dice = random.Random(f"http1 {seed}")
    whole = (b"PUT /v1/tenants/shop/items/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
             + shop.stack.origin.token.encode() + b"\r\nContent-Length: 11\r\n"
             b"Transfer-Encoding: chunked\r\n\r\n{\"total\":1}GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    for _ in range(30):
        throw(shop.stack.origin.url, None, [mutated(dice, whole)])
        throw(shop.stack.admin.url, shop.stack.ca, [mutated(dice, whole)])


WORDS = ["", "a", "=", ";", ",", '"', "\\", "q=0.5", "*/*", "text/html", "application/json", "Bearer ",
         "eyJhbGciOiJub25lIn0", ".", "%00", "%2e", "..", "//", "x" * 200, "\t", "W/", "10.0.0.1",
         "[::1]", "::ffff:1.2.3.4", "999999999999999999999", "-1", "1e9", "\u00ff", "for=", "__Host-sluice-x="]


def phrase(dice):
    return "".join(dice.choice(WORDS) for _ in range(dice.randrange(6))).strip()


@pytest.mark.parametrize("seed", SEEDS)
def test_odd_header_values_are_never_5xx(shop, good, seed):
    dice = random.Random(f"headers {seed}")
    sale = shop.sale(units=5, identity="guest")
    names = ["accept", "accept-language", "authorization", "cookie", "sluice-ticket", "sluice-pass",
             "idempotency-key", "if-none-match", "x-forwarded-for", "forwarded", "sec-fetch-mode",
             "traceparent", "content-type", "sec-purpose"]
    paths = [f"{API}/sales/{sale}", f"{API}/sales/{sale}/line", f"{API}/sales/{sale}/holds",
             f"{API}/sales", f"{API}/sales/{sale}/line/events", f"{API}/sales/{sale}/draw"]
    for _ in range(40):
        with shop.connect(validate=False) as connection:
            headers = {name: phrase(dice) for name in dice.sample(names, dice.randrange(1, 6))}
            try:
                answer = connection.request(dice.choice(["GET", "POST", "DELETE", "HEAD"]),
                                            dice.choice(paths), headers,
                                            body=dice.choice([None, '{"qty":1}', phrase(dice)]))
            except Lost:
                continue
            assert answer.reset is not None or answer.status < 500, (headers, answer)


VALUES = ["null", "true", "0", "-1", "1", "1.5", "1e400", "9223372036854775807", "18446744073709551616",
          '""', '"x"', '"\\u0000"', '"\\ud800"', '"' + "a" * 3000 + '"', "[]", "{}", '["a"]',
          '"2026-11-29T09:00:00Z"', '"2026-02-30T09:00:00Z"', '"9999-12-31T23:59:60Z"', "[" * 50 + "]" * 50]
FIELDS = ["buyer", "qty", "sale", "channel", "order_ref", "pass_jti", "total", "tenant", "item", "opens_at",
          "prequeue_at", "closes_at", "queue", "overbook", "match", "bypass", "payment_ref", "captured",
          "lines", "hold_seconds", "hard", "account"]


@pytest.mark.parametrize("seed", SEEDS)
def test_odd_bodies_at_the_origin_are_never_5xx(shop, good, seed):
    dice = random.Random(f"bodies {seed}")
    item = shop.fresh("i")
    shop.put_stock(item, 5)
    hold = shop.reserve(item).json["hold"]
    calls = [("PUT", f"/v1/tenants/shop/items/{item}"), ("POST", f"/v1/tenants/shop/items/{item}/holds"),
             ("POST", "/v1/tenants/shop/orders"), ("PUT", f"/v1/sales/{shop.fresh('s')}"),
             ("POST", f"/v1/holds/{hold}/confirm"), ("POST", f"/v1/sales/{item}/pause")]
    for _ in range(60):
        method, path = dice.choice(calls)
        body = "{" + ",".join(f'"{dice.choice(FIELDS)}":{dice.choice(VALUES)}'
                              for _ in range(dice.randrange(6))) + "}"
        if dice.random() < 0.2:
            body = mutated(dice, body.encode()).decode("latin1")
        headers = {"Idempotency-Key": f"k{dice.randrange(3)}", "Content-Type": "application/json"}
        try:
            answer = shop.stack.origin.call(method, path, body.encode("latin1"), headers)
        except http.client.HTTPException as why:
            raise AssertionError(f"{method} {path} {body}: {why}") from None
        assert answer.status < 500, (method, path, body, answer)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("program", ["gateway/sluice", "origin/sluice-origin"])
def test_odd_configurations_are_checked_without_a_crash(shop, tmp_path, program, seed):
    stack = shop.stack
    dice = random.Random(f"yaml {seed}")
    base = config.gateway(stack, stack.nodes[0]) if "gateway" in program else config.origin(stack)
    text = "\n".join(config.yaml_lines(base)).encode()
    for number in range(8):
        file = tmp_path / f"{number}.yaml"
        file.write_bytes(mutated(dice, text))
        done = subprocess.run([stack.program(program), "-c", str(file), "-t"], timeout=20,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode in (0, 2), (file.read_bytes(), done)
