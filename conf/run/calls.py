"""HTTP calls to the admin listener and the origin, and reading /metrics."""
import http.client
import json
import re
import ssl
import urllib.parse

from run.process import PATIENCE


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Api:
    """One base URL with its bearer token; every call is a connection of its own."""

    def __init__(self, url, token=None, ca=None, timeout=10):
        self.url, self.token, self.timeout = url, token, timeout * PATIENCE
        self.context = ssl.create_default_context(cafile=ca) if ca else None

    def call(self, method, path, body=None, headers=None, token=True):
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=self.timeout, context=self.context)
        else:
            connection = http.client.HTTPConnection(
                parts.hostname, parts.port, timeout=self.timeout)
        fields = dict(headers or {})
        if token and self.token:
            fields.setdefault("Authorization", f"Bearer {self.token}")
        data = None
        if body is not None:
            data = body if isinstance(body, (bytes, str)) else json.dumps(body)
            fields.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body=data, headers=fields)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.call("POST", path, {} if body is None else body, **more)

    def put(self, path, body, **more):
        return self.call("PUT", path, body, **more)

    def patch(self, path, body, **more):
        return self.call("PATCH", path, body, **more)

    def is_ready(self):
        try:
            return self.call("GET", "/readyz", token=False).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def metrics(self):
        return Metrics(self.call("GET", "/metrics", token=False).body.decode())


class Metrics:
    """Prometheus text: `value` adds up every row whose labels fit."""

    ROW = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)$")
    LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

    def __init__(self, text):
        self.rows = []
        for line in text.splitlines():
            row = self.ROW.match(line)
            if row and not line.startswith("#"):
                self.rows.append((row[1], dict(self.LABEL.findall(row[2] or "")), float(row[3])))

    def has(self, name):
        return any(row[0] == name for row in self.rows)

    def value(self, name, **labels):
        return sum(value for row, have, value in self.rows
                   if row == name and labels.items() <= have.items())
