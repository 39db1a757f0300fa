"""An application behind a gateway that speaks HTTP/1.1, byte for byte by hand.

The last segment of a path picks a behaviour; `seen` keeps each request as it
came: (connection's number, head with its empty line, body).
"""
import re
import socket
import ssl
import threading

BIG = 3_000_000
MEDIUM = 200_000
FINE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nfine"

PLAIN = {
    "fine": FINE,
    "204": b'HTTP/1.1 204 No Content\r\nETag: "e"\r\n\r\n',
    "304": b'HTTP/1.1 304 Not Modified\r\nETag: "e"\r\nContent-Length: 4\r\n\r\n',
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nfi\r\n2\r\nne\r\n0\r\n\r\n",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + FINE,
    "hops": b"HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5\r\n"
            b"X-Hop: 1\r\nX-End: 2\r\nProxy-Connection: x\r\nUpgrade: h2c\r\n"
            b"Sluice-Other: 3\r\nContent-Length: 4\r\n\r\nfine",
    "close": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfine",
    "leftover": FINE + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    # Refused as a whole.
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 8\r\n\r\nfineevil",
    "length-and-chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n"
                         b"\r\n0\r\n\r\n",
    "nul": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 4\r\n\r\nfine",
    "bare-lf": b"HTTP/1.1 200 OK\nContent-Length: 4\n\nfine",
    "bare-cr": b"HTTP/1.1 200 OK\r\nX: a\rY: b\r\nContent-Length: 4\r\n\r\nfine",
    "folded": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 4\r\n\r\nfine",
    "not-http": b"hello\r\n\r\n",
    "long-head": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40000 + b"\r\nContent-Length: 0\r\n\r\n",
    "switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    # Broken off.
    "cut": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nxxxxx",
    "cut-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "until-end": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nfine",
}
ENDED = ("cut", "cut-chunk", "until-end")


class Upstream11:
    def __init__(self, certificate=None, key=None):
        self.listener = socket.create_server(("127.0.0.1", 0))
        # Small, so that a peer that stops reading soon stops us.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.seen, self.odd, self.connections, self.ends = [], [], [], set()
        self.sent, self.context = 0, None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate, key)
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
            number = len(self.connections) - 1
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        try:
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
            self._talk(sock, number)
        except OSError:
            pass
        finally:
            self.ends.add(number)
            sock.close()

    def _talk(self, sock, number):
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                piece = sock.recv(65536)
                if not piece:
                    if data:
                        self.odd.append((number, data))
                    return
                data += piece
            head, _, data = data.partition(b"\r\n\r\n")
            head += b"\r\n\r\n"
            what = head.split(b" ", 2)[1].partition(b"?")[0].rpartition(b"/")[2].decode()
            if what == "early":
                self.seen.append((number, head, b""))
                sock.sendall(FINE)
                while sock.recv(65536):
                    pass
                return
            found = re.search(rb"\r\ncontent-length: (\d+)\r\n", head)
            length = int(found[1]) if found else 0
            while len(data) < length:
                piece = sock.recv(65536)
                if not piece:
                    self.odd.append((number, head + data))
                    return
                data += piece
            body, data = data[:length], data[length:]
            if data:
                self.odd.append((number, data))
            self.seen.append((number, head, body))
            if not self._answer(sock, what, head):
                return

    def _answer(self, sock, what, head):
        if what == "hang":
            while sock.recv(65536):
                pass
            return False
        if what == "last":
            sock.sendall(FINE)
            return False
        if what in ("big", "medium"):
            size = BIG if what == "big" else MEDIUM
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size // 10000):
                sock.sendall(bytes(10000))
                self.sent += 10000
            return True
        answer = PLAIN.get(what, FINE)
        if head.startswith(b"HEAD ") and what not in ("204", "304"):
            answer = answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        sock.sendall(answer)
        return what not in ENDED
