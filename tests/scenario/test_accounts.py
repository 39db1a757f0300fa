"""Accounts are the shop's JWTs; what is not exactly one of them is 401."""
import base64
import hashlib
import hmac
import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from shopper import API, Shopper, decode_jwt


def assert_401(answer):
    assert (answer.status, answer.json["code"]) == (401, "account_required"), answer
    assert answer.header("www-authenticate").startswith("Bearer")
    assert answer.header("content-type") == "application/problem+json"
    assert "no-store" in answer.header("cache-control")


def join_with(shop, sale, token, scheme="Bearer "):
    headers = {} if token is None else {"authorization": scheme + token}
    return shop.connect().post(f"{API}/sales/{sale}/line", headers=headers)


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(header, claims, secret):
    """An HS256 token by hand, since libraries refuse what we need to try."""
    text = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
    return f"{text}.{b64(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


def test_good_token_joins(shop):
    assert join_with(shop, shop.sale(), shop.token()).status == 200


def test_sub_and_exp_suffice(shop):
    sale = shop.sale()
    token = shop.key.token("minimal")
    assert set(decode_jwt(token)[1]) == {"sub", "exp"}
    assert join_with(shop, sale, token).status == 200


def test_missing_token_is_401(shop):
    assert_401(join_with(shop, shop.sale(), None))


@pytest.mark.parametrize("scheme", ["bearer ", "BEARER  "])
def test_scheme_is_case_insensitive(shop, scheme):
    assert join_with(shop, shop.sale(), shop.token(), scheme).status == 200


@pytest.mark.parametrize("token", ["", "x", "a.b", "a.b.c", "a.b.c.d", "." * 3, "caf\u00e9.x.y",
                                   "A" * 6000])
def test_garbage_is_401(shop, token):
    assert_401(join_with(shop, shop.sale(), token))


@pytest.mark.parametrize("claims, why", [
    ({"sub": "a"}, "no exp"),
    ({"exp": 4102444800}, "no sub"),
    ({"sub": "a", "exp": 1}, "expired"),
    ({"sub": "a", "exp": int(time.time()) - 120}, "expired a little ago"),
    ({"sub": "a", "exp": 4102444800, "nbf": 4102444700}, "not yet valid"),
    ({"sub": "a", "exp": "4102444800"}, "exp is text"),
    ({"sub": 5, "exp": 4102444800}, "sub is a number"),
    ({"sub": "", "exp": 4102444800}, "sub is empty"),
    ({"sub": "a" * 129, "exp": 4102444800}, "sub is too long"),
    ({"sub": "a b", "exp": 4102444800}, "space"),
    ({"sub": "a,b", "exp": 4102444800}, "comma"),
    ({"sub": 'a"b', "exp": 4102444800}, "quote"),
    ({"sub": "a\\b", "exp": 4102444800}, "backslash"),
    ({"sub": "a\r\nx: y", "exp": 4102444800}, "line end"),
    ({"sub": "caf\u00e9", "exp": 4102444800}, "beyond ASCII"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_bad_claims_are_401(shop, claims, why):
    token = signed({"alg": "HS256", "kid": shop.key.jwk["kid"]}, claims, shop.key.secret)
    assert_401(join_with(shop, shop.sale(), token))


@pytest.mark.parametrize("sub", ["a", "a" * 128, "x|y", "m@il.test", "!~"])
def test_edge_names_are_good(shop, sub):
    assert join_with(shop, shop.sale(), shop.key.token(sub)).status == 200


def test_kid_must_be_a_configured_one(shop):
    claims = {"sub": "a", "exp": 4102444800}
    for header in ({"alg": "HS256"}, {"alg": "HS256", "kid": "other"},
                   {"alg": "HS256", "kid": ""}, {"alg": "HS256", "kid": ["x"]}):
        assert_401(join_with(shop, shop.sale(wait=True), signed(header, claims, shop.key.secret)))


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "HS384", "HS512", "RS256", "ES256", "hs256", ""])
def test_alg_must_be_that_of_the_key(shop, alg):
    claims = {"sub": "a", "exp": 4102444800}
    header = {"alg": alg, "kid": shop.key.jwk["kid"]}
    sale = shop.sale()
    good_mac = signed(header, claims, shop.key.secret)
    assert_401(join_with(shop, sale, good_mac))
    assert_401(join_with(shop, sale, good_mac.rpartition(".")[0] + "."))


def test_another_secret_is_401(shop):
    token = signed({"alg": "HS256", "kid": shop.key.jwk["kid"]},
                   {"sub": "a", "exp": 4102444800}, b"x" * 32)
    assert_401(join_with(shop, shop.sale(), token))


def test_a_pass_is_no_account_token(shop):
    sale = shop.sale()
    buyer = shop.buyer(sale)
    buyer.enter()
    assert_401(join_with(shop, sale, buyer.pass_))


def test_hs256_signed_with_a_public_keys_pem_is_refused(make_shop, tmp_path):
    """The classic confusion: the shop's key is ES256, the forger has its PEM."""
    private = ec.generate_private_key(ec.SECP256R1())
    pem = private.public_key().public_bytes(serialization.Encoding.PEM,
                                            serialization.PublicFormat.SubjectPublicKeyInfo)
    file = tmp_path / "shop.pem"
    file.write_bytes(pem)
    shop = make_shop(options={"gateway": {"accounts": {"keys": ["keys/account.jwk", str(file)]}}})
    numbers = private.public_key().public_numbers()
    thumbprint = b64(hashlib.sha256(json.dumps(
        {"crv": "P-256", "kty": "EC", "x": b64(numbers.x.to_bytes(32, "big")),
         "y": b64(numbers.y.to_bytes(32, "big"))}, separators=(",", ":"), sort_keys=True)
        .encode()).digest())
    claims = {"sub": "forger", "exp": 4102444800}
    sale = shop.sale()
    honest = jwt.encode(claims, private, algorithm="ES256", headers={"kid": thumbprint})
    assert join_with(shop, sale, honest).status == 200
    for secret in (pem, pem.strip(), pem + b"\0"):
        assert_401(join_with(shop, sale, signed({"alg": "HS256", "kid": thumbprint}, claims, secret)))


def test_bad_token_is_401_on_guest_sales_too(shop):
    assert_401(join_with(shop, shop.sale(identity="guest"), "a.b.c"))


def test_bad_token_is_401_on_the_holds_paths(shop):
    sale = shop.sale()
    buyer = shop.buyer(sale)
    buyer.enter()
    buyer.token = "a.b.c"
    assert_401(buyer.hold())


def test_a_token_shown_with_a_poll_is_judged(shop):
    sale = shop.sale()
    path = f"{API}/sales/{sale}/line"
    ticket = join_with(shop, sale, shop.key.token("owner")).json["ticket"]

    def poll(token):
        return shop.connect().get(path, headers={"authorization": f"Bearer {token}",
                                                 "sluice-ticket": ticket})
    assert poll(shop.key.token("owner")).status == 200
    assert_401(poll("x.y.z"))
    other = poll(shop.key.token("other"))
    assert (other.status, other.json["reason"], other.json["pass"]) == (404, "other_account", None)


def test_own_headers_of_a_client_change_nothing(shop):
    sale = shop.sale()
    for name in ("sluice-account", "x-sluice-account", "sluice_account", "x-forwarded-user"):
        assert_401(shop.connect().post(f"{API}/sales/{sale}/line", headers={name: "jane"}))
    buyer = shop.buyer(sale, account="john")
    buyer.enter()
    answer = buyer.hold(**{"sluice-account": "jane", "sluice-replay-only": "1"})
    assert answer.status == 201
    jane = shop.buyer(sale, account="jane")
    assert jane.read_hold(answer.json["hold"]).status == 404
    assert buyer.read_hold(answer.json["hold"]).status == 200


def test_token_in_the_configured_cookie_counts(make_shop):
    shop = make_shop(options={"gateway": {"accounts": {"cookie": "session"}}})
    sale = shop.sale()
    answer = shop.connect().post(f"{API}/sales/{sale}/line",
                                 headers={"cookie": f"a=b; session={shop.token()}; c=d"})
    assert answer.status == 200
    assert_401(shop.connect().post(f"{API}/sales/{sale}/line", headers={"cookie": "session=x"}))


def test_many_good_accounts_behind_one_address_meet_no_limit(shop):
    sale = shop.sale(units=5)
    with_one_address = shop.connect(always={"x-forwarded-for": "10.9.9.9"})
    statuses = [Shopper(with_one_address, sale, shop.token()).join().status for _ in range(300)]
    assert set(statuses) == {200, 202}


def test_failures_of_one_address_are_limited_and_others_are_free(shop):
    sale = shop.sale()
    bad = shop.connect(always={"x-forwarded-for": shop.address()})
    answers = [bad.post(f"{API}/sales/{sale}/line", headers={"authorization": "Bearer x"})
               for _ in range(120)]
    assert {answer.status for answer in answers} == {401, 429}
    limited = answers[-1]
    assert limited.json["code"] == "rate_limited" and limited.header("retry-after")
    assert_401(join_with(shop, sale, "a.b.c"))
