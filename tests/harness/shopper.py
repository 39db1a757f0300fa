"""A shopper's app: joins, waits as told, claims, holds. And the shop beside it."""
import json
import os
import time
import uuid
from base64 import urlsafe_b64decode

import jwt

from h2client import H2
from run.process import PATIENCE

API = "/_sluice/v1"


def decode_jwt(token):
    """The header and claims of a token, unverified."""
    def part(text):
        return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return tuple(part(text) for text in token.split(".")[:2])


class AccountKey:
    """Signs account tokens as the shop does."""

    def __init__(self, path):
        with open(path) as file:
            self.jwk = json.load(file)
        self.secret = urlsafe_b64decode(self.jwk["k"] + "=" * (-len(self.jwk["k"]) % 4))

    def token(self, account, **claims):
        return jwt.encode({"sub": account, "exp": int(time.time()) + 3600, **claims},
                          self.secret, algorithm="HS256", headers={"kid": self.jwk["kid"]})


class Shopper:
    """One person on one connection. `mode` is "header" for apps, "cookie" for
    browsers; `account` None makes a guest."""

    def __init__(self, connection, sale, token=None, mode="header"):
        self.connection, self.sale, self.token, self.mode = connection, sale, token, mode
        self.ticket = self.pass_ = None
        self.cookies = {}

    @property
    def line(self):
        return f"{API}/sales/{self.sale}/line"

    def headers(self, **more):
        fields = {"accept": "application/json"}
        if self.token:
            fields["authorization"] = f"Bearer {self.token}"
        if self.mode == "header":
            if self.ticket:
                fields["sluice-ticket"] = self.ticket
            if self.pass_:
                fields["sluice-pass"] = self.pass_
        elif self.cookies:
            fields["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        fields.update(more)
        return fields

    def take(self, answer):
        """Remembers what the answer gives, as an app or a browser would."""
        for name, value in answer.cookies.items():
            if value:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        if answer.header("sluice-pass"):
            self.pass_ = answer.header("sluice-pass")
        if answer.body and "json" in (answer.header("content-type") or ""):
            body = answer.json
            self.ticket = body.get("ticket") or self.ticket
            self.pass_ = body.get("pass") or self.pass_
        return answer

    def join(self, **headers):
        return self.take(self.connection.post(self.line, headers=self.headers(**headers)))

    def place(self, **headers):
        return self.take(self.connection.get(self.line, self.headers(**headers)))

    def leave(self):
        return self.connection.request("DELETE", self.line, self.headers())

    def enter(self, seconds=10):
        """Joins, comes back until it is one's turn, claims: the admitted answer."""
        deadline = time.monotonic() + seconds * PATIENCE
        answer = self.join()
        while answer.status == 202:
            assert time.monotonic() < deadline, f"never admitted: {answer}"
            time.sleep(0.15)
            answer = self.join()
        assert answer.status == 200, answer
        return answer

    def hold(self, qty=1, key=None, **headers):
        key = key or uuid.uuid4().hex
        return self.take(self.connection.post(
            f"{API}/sales/{self.sale}/holds", {"qty": qty},
            self.headers(**{"idempotency-key": key, **headers})))

    def read_hold(self, hold):
        return self.connection.get(f"{API}/sales/{self.sale}/holds/{hold}", self.headers())

    def extend(self, hold):
        return self.connection.post(f"{API}/sales/{self.sale}/holds/{hold}/extend", {},
                                    self.headers())

    def release(self, hold):
        return self.connection.post(f"{API}/sales/{self.sale}/holds/{hold}/release", {},
                                    self.headers())


class Shop:
    """The operator, the payer and the crowd of one stack, for tests."""

    tenant = "shop"

    def __init__(self, stack):
        self.stack = stack
        self.key = AccountKey(stack.account_key)
        self.connections = []
        self.made = 0
        self.soak = bool(os.environ.get("SLUICE_SOAK"))

    def address(self):
        """A network address that no other test has, told by X-Forwarded-For."""
        return "10." + ".".join(str(byte) for byte in os.urandom(3))

    def connect(self, node=0, **more):
        more.setdefault("always", {"x-forwarded-for": self.address()})
        connection = H2(self.stack.nodes[node].url, self.stack.ca, **more)
        self.connections.append(connection)
        return connection

    def close(self):
        for connection in self.connections:
            connection.close()
        self.connections = []

    def fresh(self, word):
        self.made += 1
        return f"{word}-{uuid.uuid4().hex[:8]}-{self.made}"

    def put_stock(self, item, total):
        answer = self.stack.origin.put(f"/v1/tenants/{self.tenant}/items/{item}", {"total": total})
        assert answer.status in (200, 201), answer
        return answer

    def stock(self, item):
        return self.stack.origin.get(f"/v1/tenants/{self.tenant}/items/{item}").json

    def sale(self, units=10, wait=True, **fields):
        """A new sale over a new item of `units`, open now unless told otherwise;
        returns its id once the gateway knows it."""
        name = self.fresh("s")
        self.put_stock(name, units)
        body = {"tenant": self.tenant, "item": name, "opens_at": "2020-01-01T00:00:00Z",
                "identity": "account", **fields}
        answer = self.stack.origin.put(f"/v1/sales/{name}", body)
        assert answer.status in (200, 201), answer
        if wait:
            self.wait_flag(name, lambda flag: True)
        return name

    def wait_open_line(self):
        """A gate that starts empty admits nobody for some seconds; waits them out."""
        self.buyer(self.sale()).enter(seconds=20)
        self.close()
        return self

    def flag(self, sale, connection=None):
        connection = connection or self.connect()
        return connection.get(f"{API}/sales/{sale}")

    def wait_flag(self, sale, question, seconds=10, promised=False):
        from run.process import wait_until
        with H2(self.stack.url, self.stack.ca) as connection:
            def asked():
                answer = connection.get(f"{API}/sales/{sale}")
                return answer if answer.status == 200 and question(answer.json) else None
            return wait_until(asked, seconds, f"flag of {sale}", promised)

    def wait_state(self, sale, state, seconds=10, promised=False):
        return self.wait_flag(sale, lambda flag: flag["state"] == state, seconds, promised)

    def token(self, account=None, **claims):
        return self.key.token(account or self.fresh("buyer"), **claims)

    def buyer(self, sale, account=None, connection=None, **more):
        return Shopper(connection or self.connect(), sale, self.token(account), **more)

    def guest(self, sale, connection=None, **more):
        return Shopper(connection or self.connect(), sale, None, **more)

    # -- the payer, straight at the origin ---------------------------------

    def reserve(self, item, buyer=None, qty=1, key=None, sale=None, **more):
        return self.stack.origin.post(
            f"/v1/tenants/{self.tenant}/items/{item}/holds",
            {"buyer": buyer or self.fresh("b"), "qty": qty, "sale": sale, **more},
            headers={"Idempotency-Key": key or uuid.uuid4().hex})

    def confirm(self, hold, payment_ref=None, captured=True):
        return self.stack.origin.post(f"/v1/holds/{hold}/confirm",
                                      {"payment_ref": payment_ref or self.fresh("pay"),
                                       "captured": captured})

    def verb(self, hold, verb):
        return self.stack.origin.post(f"/v1/holds/{hold}/{verb}", {})

    def sell_out(self, sale):
        """Buys every unit straight at the origin and waits for the flag."""
        left = self.stock(sale)["available"]
        answer = self.reserve(sale, qty=left)
        assert answer.status == 201, answer
        assert self.confirm(answer.json["hold"]).status in (200, 201)
        self.wait_state(sale, "sold_out")

    def operate(self, sale, verb, body=None, **more):
        return self.stack.admin.post(f"/v1/sales/{sale}/{verb}", body or {}, **more)

    def invariant(self):
        return self.stack.origin.get("/v1/invariant").json
