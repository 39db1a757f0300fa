"""The servers that are compared: one worker each, no access log, the same answer
to the same path, the same certificate.

What a server `does`: answer (the flag, from memory), line (the line's answers),
proxy_h1 (forward to an application that speaks HTTP/1.1), proxy_h2c (forward to
sluice-origin).
Limits that the load would meet are lifted; nothing else is tuned.
"""
import http.client
import json
import os
import pwd
import socket
import subprocess

import gauge
from run.process import Failed, Process, end, free_port, start_time
from run.stack import Node

SALE = "1"
FLAG = f"/_sluice/v1/sales/{SALE}"
LINE = f"{FLAG}/line"
WAITING = "2"  # a sale whose only unit somebody holds
PLACE = f"/_sluice/v1/sales/{WAITING}/line"
SHOP = "/shop/1"
ORIGIN = "/origin/1"


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


# A closed loop of hundreds of clients in one address beside a busy machine looks like
# the overload that these turn away. They are still looked at, they only act later.
PATIENT = {"accept_wait": "1m", "handshake_slow": "1m", "handshake_timeout": "1m", "turn": "1m",
           "header_timeout": "1m", "write_stall": "1m"}


class Server:
    """Started when made; `stop` ends it with all that came of it."""
    group = "X25519"  # of the key exchange that short visits offer
    is_measured = True

    def __init__(self, bench, watcher=()):
        """`watcher`: the words before the command that run it under strace or valgrind."""
        self.bench, self.watcher = bench, watcher
        self.folder = bench.new_folder(self.name)
        self.process = None
        core = bench.server_core if self.is_measured else bench.other_core
        # The kernel ends it should this script die without having done so.
        pinned = ["setpriv", "--pdeathsig", "TERM", "taskset", "-c", core, *watcher]
        try:
            self.start(pinned)
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        if not self.process or not self.process.pid:
            return
        known = [(pid, start_time(pid)) for pid in gauge.tree(self.pid)]
        # strace tells its counts when the program that it started has ended.
        first = known[1:2] if self.watcher[:1] == ("strace",) else []
        for pid, started in first:
            end(pid, started, self.process.end_signal, 30)
        self.process.end()
        for pid, started in known:
            end(pid, started, self.process.end_signal)


class Sluice(Server):
    """As it is built and as a sale configures it, with one worker, room for the
    requests under way to the two upstreams, and patience: see PATIENT."""
    name = "sluice"
    does = {"answer", "line", "proxy_h1", "proxy_h2c"}
    programs = ()
    version = ("gateway/sluice", "--version")

    def start(self, pinned):
        stack = self.bench.stack
        self.node = Node(stack, self.bench.number())
        self.process, self.port = self.node.process, self.node.port
        self.process.argv = [str(word) for word in (*pinned, *self.process.argv)]
        stack.nodes.append(self.node)
        # Being ready for a line takes longer, and there is none.
        stack.start_gateway(self.node, wait=False)
        self.process.wait_ready(self.is_sold_out, 60)

    def is_sold_out(self):
        try:
            sale = self.node.admin.get(f"/v1/sales/{SALE}")
        except (OSError, http.client.HTTPException):
            return False
        return sale.status == 200 and sale.json["state"] == "sold_out"

    def join(self):
        """The ticket of a guest in the line that stands still."""
        said = subprocess.run(["curl", "--http2", "-sS", "-X", "POST", "--cacert",
                               self.bench.stack.ca, f"https://127.0.0.1:{self.port}{PLACE}"],
                              text=True, timeout=20, stdout=subprocess.PIPE).stdout
        ticket = json.loads(said or "{}").get("ticket")
        if not ticket:
            raise Failed(f"no place in the line: {said}")
        return ticket

    def stop(self):
        super().stop()
        if self.process:
            self.bench.stack.nodes.remove(self.node)


class Peer(Server):
    """A program of a Debian package, with a configuration made for this run."""

    def start(self, pinned):
        self.port = free_port()
        for name, text in self.files().items():
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as out:
                out.write(text)
        self.process = Process(self.name, [*pinned, *self.command()],
                               os.path.join(self.folder, "log"), cwd=self.folder)
        self.process.start().wait_ready(lambda: listens(self.port), 60)

    def files(self):
        return {}


NGINX = """daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections 20000; }}
http {{
    access_log off;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{servers}}}
"""

NGINX_EDGE = """    upstream shop {{ server 127.0.0.1:{shop_port}; keepalive 512; keepalive_requests 1000000000; }}
    upstream origin {{ server 127.0.0.1:{origin_port}; keepalive 512; keepalive_requests 1000000000; }}
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    server {{
        listen 127.0.0.1:{port} ssl http2 backlog=8192;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3;
        location = {flag} {{
            default_type application/json;
            add_header cache-control "{cache_control}";
            add_header etag '{etag}';
            return 200 '{body}';
        }}
        location /shop/ {{ proxy_pass http://shop; }}
        location /origin/ {{ proxy_pass http://origin; }}
    }}
"""

NGINX_SHOP = """    server {{
        listen 127.0.0.1:{port} backlog=8192;
        default_type application/json;
        add_header cache-control no-store;
        return 200 '{{"item":"grinder","price":"149.00","currency":"EUR","left":"few"}}';
    }}
"""


class Nginx(Peer):
    name = "nginx"
    does = {"answer", "proxy_h1", "proxy_h2c"}
    programs = ("nginx",)
    version = ("nginx", "-v")
    servers = NGINX_EDGE

    def files(self):
        words = self.bench.words(self)
        return {"nginx.conf": NGINX.format(servers=self.servers.format(**words), **words)}

    def command(self):
        return ["nginx", "-p", self.folder, "-c", f"{self.folder}/nginx.conf"]


class Shop(Nginx):
    """The application behind the forwarding servers; it has the clients' core."""
    name = "shop"
    does = set()
    is_measured = False
    servers = NGINX_SHOP


H2O = """num-threads: 1
max-connections: 20000
http2-idle-timeout: 600
user: {user}
error-log: {folder}/error.log
listen:
  host: 127.0.0.1
  port: {port}
  ssl:
    certificate-file: {certificate}
    key-file: {key}
    minimum-version: TLSv1.2
    ocsp-update-interval: 0
hosts:
  default:
    paths:
      {flag}:
        file.file: {folder}/flag.json
        header.set: "cache-control: {cache_control}"
      /shop:
        proxy.reverse.url: http://127.0.0.1:{shop_port}/shop
        proxy.timeout.keepalive: 600000
      /origin:
        proxy.reverse.url: http://127.0.0.1:{origin_port}/origin
        proxy.timeout.keepalive: 600000
"""


class H2o(Peer):
    """Its file handler answers, from an open file; its scripts would cost twice that."""
    name = "h2o"
    does = {"answer", "proxy_h1", "proxy_h2c"}
    programs = ("h2o",)
    version = ("h2o", "--version")

    def files(self):
        words = self.bench.words(self)
        user = pwd.getpwuid(os.geteuid()).pw_name  # one that changes its user outlives us
        return {"flag.json": words["body"], "h2o.conf": H2O.format(user=user, **words)}

    def command(self):
        return ["h2o", "-c", f"{self.folder}/h2o.conf"]


HAPROXY = """global
    nbthread 1
    maxconn 20000
    no strict-limits
    ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
    mode http
    timeout connect 5s
    timeout client 600s
    timeout server 600s
    timeout http-request 600s
    timeout http-keep-alive 600s
    http-reuse always
frontend edge
    bind 127.0.0.1:{port} ssl crt {both} alpn h2,http/1.1 backlog 8192
    http-request return status 200 content-type application/json string '{body}' hdr cache-control "{cache_control}" hdr etag '{etag}' if {{ path {flag} }}
    use_backend origin if {{ path_beg /origin/ }}
    default_backend shop
backend shop
    server shop 127.0.0.1:{shop_port} pool-max-conn 512
backend origin
    server origin 127.0.0.1:{origin_port} pool-max-conn 512
"""


class Haproxy(Peer):
    name = "haproxy"
    does = {"answer", "proxy_h1", "proxy_h2c"}
    programs = ("haproxy",)
    version = ("haproxy", "-v")

    def files(self):
        return {"haproxy.cfg": HAPROXY.format(**self.bench.words(self))}

    def command(self):
        return ["haproxy", "-db", "-f", f"{self.folder}/haproxy.cfg"]


class Nghttpd(Peer):
    """Debian's offers P-256 alone for the key exchange."""
    name = "nghttpd"
    does = {"answer"}
    programs = ("nghttpd",)
    version = ("nghttpd", "--version")
    group = "P-256"

    def files(self):
        return {f"www{FLAG}": self.bench.words(self)["body"]}

    def command(self):
        return ["nghttpd", "-a", "127.0.0.1", "-n", "1", "-d", f"{self.folder}/www",
                "--mime-types-file=/dev/null", self.port, self.bench.key, self.bench.certificate]


ALL = (Sluice, Nghttpd, Nginx, H2o, Haproxy)
