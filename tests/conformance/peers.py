"""The same rows against other servers that are installed: where do they differ?

    python3 tests/conformance/peers.py [-k WORD] [NAME...]

NAME is nginx, h2o, haproxy or nghttpd; all that are installed when none is given.
Prints each row on which a peer does otherwise than the row wants of us. Statuses
count as "served" or "refused" there. Ends with 1 if two peers or more agree against a
row that does not say why.
"""
import argparse
import collections
import concurrent.futures
import http.server
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "conf")]
import blocks  # noqa: E402
import connection  # noqa: E402
import frames  # noqa: E402
import messages  # noqa: E402
import streams  # noqa: E402
from rows import Target  # noqa: E402
from run import keys  # noqa: E402
from run.process import free_port, wait_until  # noqa: E402

ROWS = connection.ROWS + streams.ROWS + frames.ROWS + messages.ROWS + blocks.ROWS
PAGE, BIG = b"p" * 300, b"b" * 200_000


class Application(http.server.BaseHTTPRequestHandler):
    """Reads a body and answers with the page, or with the big one."""
    protocol_version = "HTTP/1.1"

    def answer(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            while self.rfile.readline().strip():
                pass
        self.rfile.read(int(self.headers.get("content-length") or 0))
        text = BIG if self.path.endswith("big") else PAGE
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_HEAD = do_POST = do_OPTIONS = answer

    def log_message(self, *_):
        pass


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128

    def handle_error(self, *_):
        pass


CONFIGS = {
    "nginx": """{user}daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.log crit;
events {{ worker_connections 1000; }}
http {{ access_log off; client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2;
fastcgi_temp_path {dir}/t3; uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
large_client_header_buffers 4 32k; client_header_buffer_size 32k;
server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {cert}; ssl_certificate_key {key};
location / {{ proxy_pass http://127.0.0.1:{back}; }} }} }}
""",
    "h2o": """num-threads: 1
error-log: {dir}/h2o.log
listen: {{host: 127.0.0.1, port: {port}, ssl: {{certificate-file: {cert}, key-file: {key},
  ocsp-update-interval: 0}}}}
hosts: {{default: {{paths: {{/: {{proxy.reverse.url: "http://127.0.0.1:{back}/"}}}}}}}}
""",
    "haproxy": """global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend f
  bind 127.0.0.1:{port} ssl crt {pem} alpn h2,http/1.1
  default_backend b
backend b
  server s 127.0.0.1:{back}
""",
    "nghttpd": "",
}


class Peer:
    def __init__(self, name, folder, back):
        self.name, self.folder, self.port = name, folder, free_port()
        ca, cert, key = keys.make_certificate(folder)
        pem = os.path.join(folder, "both.pem")
        with open(pem, "w") as out:
            for path in (cert, key):
                with open(path) as part:
                    out.write(part.read())
        for file, text in (("page", PAGE), ("sink", PAGE), ("big", BIG)):
            with open(os.path.join(folder, file), "wb") as out:
                out.write(text)
        config = os.path.join(folder, f"{name}.conf")
        with open(config, "w") as out:
            out.write(CONFIGS[name].format(dir=folder, port=self.port, cert=cert, key=key, pem=pem,
                                           back=back, user="" if os.getuid() else "user root; "))
        argv = {"nginx": ["nginx", "-p", folder, "-c", config], "h2o": ["h2o", "-c", config],
                "haproxy": ["haproxy", "-q", "-f", config],
                "nghttpd": ["nghttpd", "-a", "127.0.0.1", "-d", folder, str(self.port), key, cert]}
        with open(os.path.join(folder, "out"), "wb") as log:
            self.child = subprocess.Popen(argv[name], stdin=subprocess.DEVNULL, stdout=log,
                                          stderr=log, env={**os.environ, "PATH": PATH})
        self.target = Target(self.port, f"127.0.0.1:{self.port}", ca, "/page", "/sink", "/big")
        wait_until(self.is_up, 20, name)

    def is_up(self):
        try:
            self.target.connect().close()
            return True
        except OSError:
            return False

    def end(self):
        self.child.terminate()
        self.child.wait(20)


PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def in_words(outcome):
    def classed(text):
        words = text.split()
        if words and words[0].isdigit():
            words[0] = "served" if words[0] < "400" else "refused"
        return " ".join(words)
    if 0 in outcome:
        return outcome[0]
    kinds = collections.Counter(classed(text) for text in outcome.values())
    return ", ".join(f"{count} x {text}" if count > 1 else text for text, count in kinds.items())


def ours(row):
    return in_words(row.want) or "goes on"


def play(row, target):
    try:
        outcome, talk = row.play(target)
        if outcome == row.want and row.check:
            row.check(talk)
        return in_words(outcome) or "goes on"
    except Exception as why:  # of a check, which speaks of us alone
        return f"otherwise ({type(why).__name__})"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("names", nargs="*")
    options.add_argument("-k", default="")
    options = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    names = options.names or [name for name in CONFIGS if shutil.which(name, path=PATH)]
    rows = [row for row in ROWS if options.k in row.name]
    folder = tempfile.mkdtemp(prefix="conformance-peers-")
    back = Quiet(("127.0.0.1", 0), Application)
    threading.Thread(target=back.serve_forever, daemon=True).start()
    peers = []
    try:
        for name in names:
            os.mkdir(os.path.join(folder, name))
            peers.append(Peer(name, os.path.join(folder, name), back.server_address[1]))
        with concurrent.futures.ThreadPoolExecutor(2 * len(peers)) as pool:
            jobs = {(row.name, peer.name): pool.submit(play, row, peer.target)
                    for row in rows for peer in peers}
            found = {key: job.result() for key, job in jobs.items()}
        # What was otherwise in the crowd, and nobody has said why, is asked once more, alone.
        for row in rows:
            for peer in peers:
                if not row.why and found[row.name, peer.name] != ours(row):
                    found[row.name, peer.name] = play(row, peer.target)
    finally:
        for peer in peers:
            peer.end()
        shutil.rmtree(folder)
    return report(rows, names, found)


def report(rows, names, found):
    differing = unexplained = 0
    for row in rows:
        others = {name: found[row.name, name] for name in names
                  if found[row.name, name] != ours(row)}
        if not others:
            continue
        differing += 1
        mark = " "
        if len(others) > 1 and not row.why:
            unexplained += 1
            mark = "!"
        print(f"{mark} {row.name}\n    ours: {ours(row)}")
        for name, what in others.items():
            print(f"    {name}: {what}")
        if row.why:
            print(f"    why: {row.why}")
    print(f"{len(rows)} rows, {differing} on which a peer differs, {unexplained} on which two or "
          f"more do and the row does not say why")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
