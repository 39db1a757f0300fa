"""The origin alone on a private PostgreSQL: no gateway, straight calls."""
import collections
import concurrent.futures
import contextlib
import json
import os
import tempfile
import threading
import time
import uuid

import jwt
import psycopg2

from run.stack import BUILD, Stack

RUNS = os.path.join(BUILD, "test-runs")
OPEN = "2020-01-01T00:00:00Z"


class Origin:
    """One origin and what tests ask of it."""

    tenant = "shop"

    def __init__(self, server=None, has_schema=True, **options):
        """`server`: a running Postgres that lends a fresh database, with the schema
        unless it is to be empty."""
        os.makedirs(RUNS, exist_ok=True)
        if server:
            server = server.with_database(f"own_{uuid.uuid4().hex[:10]}", has_schema)
        self.stack = Stack(tempfile.mkdtemp(prefix="origin-", dir=RUNS), nodes=0,
                           build=os.environ.get("SLUICE_BUILD", BUILD),
                           options={"origin": options}, postgres=server)
        self.api = self.stack.origin
        self.own = threading.local()
        self.url = self.stack.postgres.url
        if server:
            self.stack.start_postgres()

    def start(self):
        if self.stack.postgres.is_ours:
            self.stack.start_postgres()
        self.stack.start_origin()
        return self

    def stop(self):
        self.stack.stop()

    def stop_database(self):
        self.stack.postgres.process.end()

    # -- what the log says ------------------------------------------------

    def log(self):
        for line in self.stack.origin_process.log_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                yield {"level": "error", "event": line}

    def errors(self):
        return [line for line in self.log() if line["level"] == "error"]

    # -- stock and windows --------------------------------------------------

    def fresh(self, word):
        return f"{word}-{uuid.uuid4().hex[:10]}"

    def item(self, total, **more):
        name = self.fresh("i")
        self.put_total(name, total, **more)
        return name

    def put_total(self, item, total, **more):
        answer = self.api.put(f"/v1/tenants/{self.tenant}/items/{item}", {"total": total, **more})
        assert answer.status in (200, 201), answer
        return answer.json

    def stock(self, item):
        return self.api.get(f"/v1/tenants/{self.tenant}/items/{item}").json

    def sale(self, item, **fields):
        name = self.fresh("s")
        answer = self.put_sale(name, item, **fields)
        assert answer.status == 201, answer
        return name

    def put_sale(self, name, item, headers=None, **fields):
        return self.api.put(f"/v1/sales/{name}", {
            "tenant": self.tenant, "item": item, "opens_at": OPEN, **fields}, headers=headers)

    def read_sale(self, sale):
        return self.api.get(f"/v1/sales/{sale}").json

    def operate(self, sale, verb, body=None, **headers):
        return self.api.post(f"/v1/sales/{sale}/{verb}", body or {}, headers=headers)

    # -- holds ----------------------------------------------------------------

    def reserve(self, item, buyer=None, qty=1, key=None, sale=None, headers=None, **more):
        fields = {"Idempotency-Key": key or uuid.uuid4().hex, **(headers or {})}
        return self.api.post(f"/v1/tenants/{self.tenant}/items/{item}/holds",
                             {"buyer": buyer or self.fresh("b"), "qty": qty, "sale": sale,
                              **more}, headers=fields)

    def hold(self, item, **more):
        answer = self.reserve(item, **more)
        assert answer.status == 201, answer
        return answer.json["hold"]

    def read_hold(self, hold):
        return self.api.get(f"/v1/holds/{hold}").json

    def step(self, hold, verb):
        return self.api.post(f"/v1/holds/{hold}/{verb}", {})

    def confirm(self, hold, ref="pay", captured=False):
        return self.api.post(f"/v1/holds/{hold}/confirm",
                             {"payment_ref": ref, "captured": captured})

    def order(self, lines, buyer=None, key=None, **more):
        return self.api.post(f"/v1/tenants/{self.tenant}/orders",
                             {"buyer": buyer or self.fresh("b"),
                              "lines": [{"item": item, "qty": qty} for item, qty in lines],
                              **more}, headers={"Idempotency-Key": key or uuid.uuid4().hex})

    def invariant(self):
        return self.api.get("/v1/invariant").json

    def snapshot(self, after=None, wait=0):
        query = f"?wait={wait}" + (f"&after={after}" if after else "")
        return self.api.get(f"/v1/snapshot{query}")

    def metric(self, name, **labels):
        return self.api.metrics().value(name, **labels)

    # -- behind its back --------------------------------------------------------

    @contextlib.contextmanager
    def database(self):
        connection = psycopg2.connect(self.url)
        connection.autocommit = True
        try:
            yield connection.cursor()
        finally:
            connection.close()

    def sql(self, text, *values):
        """On a connection that each thread keeps."""
        if not hasattr(self.own, "connection"):
            self.own.connection = psycopg2.connect(self.url)
            self.own.connection.autocommit = True
        with self.own.connection.cursor() as cursor:
            cursor.execute(text, values)
            return cursor.fetchall() if cursor.description else None

    def end_holds_of(self, item):
        self.sql("update sluice.hold set expires_at = clock_timestamp() where item = %s", item)

    def end_hold_in(self, hold, milliseconds):
        """Moves the end of a hold near, as time alone would."""
        self.sql("update sluice.hold set expires_at = clock_timestamp() + %s * interval '1 ms' "
                 "where id = %s", milliseconds, hold[-32:])

    # -- passes -------------------------------------------------------------------

    def pass_for(self, sale, account, **claims):
        with open(self.stack.pass_key) as pem, open(self.stack.pass_jwks) as keys:
            key, kid = pem.read(), json.load(keys)["keys"][0]["kid"]
        now = int(time.time())
        typ = claims.pop("typ", "sluice-pass+jwt")
        return jwt.encode({"iss": "sluice", "sub": account, "aud": sale, "rnd": 1,
                           "jti": uuid.uuid4().hex, "iat": now, "exp": now + 60, **claims},
                          key, algorithm="ES256", headers={"typ": typ, "kid": kid})


def assert_problem(answer, status, code):
    assert (answer.status, answer.json["code"]) == (status, code), answer
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["status"] == status


def at_once(count, call):
    """Runs call(0..count-1), all let go in the same moment."""
    gate = threading.Barrier(count)

    def one(number):
        gate.wait()
        return call(number)
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def statuses(answers):
    return collections.Counter(answer.status for answer in answers)
