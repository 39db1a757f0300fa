"""An application behind a gateway: HTTP/2, with a behaviour a path.

The last segment of a path picks it; what arrived is kept in `seen`.
"""
import json
import socket
import ssl
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

BIG = 6_000_000
MEDIUM = 200_000


class Upstream:
    def __init__(self, certificate=None, key=None):
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate, key)
            self.context.set_alpn_protocols(["h2"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.seen, self.sent, self.connections = [], 0, []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        for sock in [self.listener, *self.connections]:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        conn = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="utf-8"))
        conn.initiate_connection()
        requests, pending = {}, {}
        try:
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
            sock.sendall(conn.data_to_send())
            while data := sock.recv(65536):
                for event in conn.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        requests[event.stream_id] = (dict(event.headers), b"")
                    elif isinstance(event, h2.events.DataReceived):
                        head, body = requests[event.stream_id]
                        requests[event.stream_id] = (head, body + event.data)
                        conn.acknowledge_received_data(event.flow_controlled_length,
                                                       event.stream_id)
                    elif isinstance(event, h2.events.StreamEnded):
                        self._try(self._answer, conn, event.stream_id,
                                  *requests[event.stream_id], pending)
                    elif isinstance(event, h2.events.StreamReset):
                        pending.pop(event.stream_id, None)
                for stream in list(pending):
                    self._try(self._send, conn, stream, pending)
                sock.sendall(conn.data_to_send())
        except OSError:
            pass

    @staticmethod
    def _try(act, conn, stream, *more):
        """A stream may have been reset in the same batch, and be unknown by now."""
        try:
            act(conn, stream, *more)
        except (h2.exceptions.StreamClosedError, h2.exceptions.StreamIDTooLowError):
            more[-1].pop(stream, None)

    def _send(self, conn, stream, pending):
        """As much of a body as the window lets through."""
        while pending.get(stream):
            room = min(conn.local_flow_control_window(stream), conn.max_outbound_frame_size)
            if room <= 0:
                return
            part, pending[stream] = pending[stream][:room], pending[stream][room:]
            conn.send_data(stream, bytes(part))
            self.sent += len(part)
        conn.end_stream(stream)
        pending.pop(stream)

    def _answer(self, conn, stream, head, body, pending):
        what = head[":path"].partition("?")[0].rpartition("/")[2]
        self.seen.append((head, body))
        fields, text = [("content-type", "application/json")], json.dumps(head).encode()
        if what == "hang":
            return
        if what == "cut":
            conn.send_headers(stream, [(":status", "200"), ("content-length", "100")])
            conn.send_data(stream, b"x" * 10)
            conn.reset_stream(stream, h2.errors.ErrorCodes.INTERNAL_ERROR)
            return
        if what == "refuse":
            conn.reset_stream(stream, h2.errors.ErrorCodes.INTERNAL_ERROR)
            return
        if what in ("204", "304"):
            conn.send_headers(stream, [(":status", what), ("etag", '"e"')], end_stream=True)
            return
        if what == "done":
            fields.append(("sluice-done", "1"))
        if what == "stock":
            fields += [("sluice-available", "7"), ("sluice-version", "9.9")]
        if what == "public":
            fields += [("cache-control", "public, max-age=60"), ("age", "5"),
                       ("set-cookie", "__Host-sluice-x=forged"), ("set-cookie", "mine=1"),
                       ("sluice-other", "1")]
        if what == "big":
            text = bytes(BIG)
        if what == "medium":
            text = bytes(MEDIUM)
        fields.append(("content-length", str(len(text))))
        conn.send_headers(stream, [(":status", "200"), *fields], end_stream=head[":method"] == "HEAD")
        if head[":method"] != "HEAD":
            pending[stream] = memoryview(text)  # sliced without copies
