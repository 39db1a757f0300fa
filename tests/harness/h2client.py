"""A synchronous HTTP/2 client over TLS, on hyper-h2, that may also misbehave.

One object is one connection. `request` is the ordinary way; `start` and
`finish` keep many streams open at once; `send_raw` puts any bytes on the wire.
"""
import json
import socket
import ssl
import struct
import time
import urllib.parse

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from run.process import PATIENCE


class Lost(Exception):
    """The peer closed or reset the connection, or said GOAWAY."""


class Response:
    def __init__(self):
        self.status, self.headers, self.body = None, [], b""
        self.ended, self.reset = False, None

    def header(self, name, default=None):
        return next((value for have, value in self.headers if have == name), default)

    def all(self, name):
        return [value for have, value in self.headers if have == name]

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def cookies(self):
        """{name: value} of what the answer sets; "" where it deletes."""
        return dict(field.partition(";")[0].split("=", 1) for field in self.all("set-cookie"))

    def __repr__(self):
        return f"<{self.status} reset={self.reset} {self.body[:400]!r}>"


class H2:
    def __init__(self, url, ca=None, alpn=("h2",), timeout=15, validate=True, local_settings=None,
                 always=None):
        """`always`: fields of every request that does not bring its own."""
        parts = urllib.parse.urlsplit(url)
        self.authority, self.scheme = parts.netloc, parts.scheme
        self.timeout, self.always = timeout * PATIENCE, always or {}
        self.sock = socket.create_connection((parts.hostname, parts.port), self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=ca)
            context.set_alpn_protocols(list(alpn))
            self.sock = context.wrap_socket(self.sock, server_hostname=parts.hostname)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=True, header_encoding="utf-8",
            validate_outbound_headers=validate, normalize_outbound_headers=validate))
        if local_settings:
            self.h2.local_settings.update(local_settings)
        self.h2.initiate_connection()
        self.responses, self.goaway, self.closed = {}, None, False
        self._flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            if not self.closed:
                self.h2.close_connection()
                self._flush()
        except (OSError, h2.exceptions.ProtocolError, Lost):
            pass
        self.sock.close()

    def _flush(self):
        data = self.h2.data_to_send()
        if data:
            self.send_raw(data)

    def send_raw(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError) as why:
            self.closed = True
            raise Lost(str(why)) from None

    def send_frame(self, kind, flags, stream, payload=b""):
        self.send_raw(struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
                      + struct.pack(">I", stream) + payload)

    # -- requests --------------------------------------------------------

    def start(self, method, path, headers=(), body=None, authority=None, end=True):
        """Opens a stream and returns its number; `end` False leaves it open."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        stream = self.h2.get_next_available_stream_id()
        given = list(headers.items() if isinstance(headers, dict) else headers)
        given += [pair for pair in self.always.items() if pair[0] not in dict(given)]
        fields = [(":method", method), (":scheme", self.scheme),
                  (":authority", authority or self.authority), (":path", path), *given]
        if body is not None and not any(name == "content-type" for name, _ in fields):
            fields.append(("content-type", "application/json"))
        self.responses[stream] = Response()
        self.h2.send_headers(stream, fields, end_stream=end and body is None)
        if body is not None:
            self._send_body(stream, body, end)
        self._flush()
        return stream

    def _send_body(self, stream, body, end):
        while body and not self.responses[stream].ended:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if room <= 0:
                self._flush()
                self.read_some(time.monotonic() + self.timeout)
                continue
            part, body = body[:room], body[room:]
            self.h2.send_data(stream, part)
        if end and not self.responses[stream].ended:
            self.h2.end_stream(stream)

    def finish(self, stream, seconds=None):
        """The whole answer of a stream, or one that says it was reset."""
        deadline = time.monotonic() + (seconds * PATIENCE if seconds else self.timeout)
        response = self.responses[stream]
        while not response.ended:
            self.read_some(deadline)
        return response

    def request(self, method, path, headers=(), body=None, seconds=None, **more):
        return self.finish(self.start(method, path, headers, body, **more), seconds)

    def get(self, path, headers=(), **more):
        return self.request("GET", path, headers, **more)

    def post(self, path, body=None, headers=(), **more):
        return self.request("POST", path, headers, body, **more)

    # -- reading ---------------------------------------------------------

    def read_some(self, deadline):
        """Takes what comes, waits for something until the deadline."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        if self.closed:
            raise Lost(f"connection closed, GOAWAY {self.goaway}")
        self.sock.settimeout(left)
        try:
            data = self.sock.recv(65536)
        except (ConnectionResetError, ssl.SSLError) as why:
            if isinstance(why, TimeoutError):
                raise
            data = b""
        if not data:
            self.closed = True
            raise Lost(f"connection closed, GOAWAY {self.goaway}")
        for event in self.h2.receive_data(data):
            self.on_event(event)
        self._flush()

    def on_event(self, event):
        response = self.responses.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = (int(event.error_code), event.last_stream_id)
        elif response is None:
            return
        elif isinstance(event, h2.events.ResponseReceived):
            fields = dict(event.headers)
            response.status = int(fields[":status"])
            response.headers = [pair for pair in event.headers if pair[0] != ":status"]
        elif isinstance(event, h2.events.DataReceived):
            response.body += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            response.ended = True
        elif isinstance(event, h2.events.StreamReset):
            response.reset, response.ended = int(event.error_code), True

    def wait_closed(self, seconds):
        """Reads until the peer has closed; TimeoutError if it does not."""
        deadline = time.monotonic() + seconds
        try:
            while True:
                self.read_some(deadline)
        except Lost:
            return self.goaway
