"""What the servers share: two cores, one certificate, a sold-out sale in a private
PostgreSQL and origin, and an application for what is forwarded."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

import servers
from run.process import Failed
from run.stack import Stack, end_earlier


class Bench:
    def __init__(self, build, folder, chosen, scale):
        self.build, self.folder, self.chosen, self.scale = build, folder, chosen, scale
        cores = sorted(os.sched_getaffinity(0))
        self.server_core, self.other_core = cores[0], cores[-1]
        self.faults, self.made, self.limits = [], 0, servers.PATIENT
        self.stack = self.shop = self.scratch = self.flag = None

    def __enter__(self):
        os.sched_setaffinity(0, {self.other_core})  # so has whatever is not measured
        self.make_folders()
        try:
            self.stack = Stack(self.folder, build=self.build, nodes=0).start()
            self.sell_out()
            self.write_both()
            self.read_flag()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def make_folders(self):
        """Ours, and one for the servers elsewhere than below a home that only root may
        enter, since they change their user. What a killed comparison left goes first."""
        link = os.path.join(self.folder, "servers")
        if os.path.islink(link):
            shutil.rmtree(os.readlink(link), ignore_errors=True)
        end_earlier(self.folder)
        os.makedirs(self.folder, mode=0o700)
        self.scratch = tempfile.mkdtemp(
            prefix=f"sluice-{os.path.basename(self.folder)}-", dir="/var/tmp")
        os.chmod(self.scratch, 0o755)
        os.symlink(self.scratch, link)

    def close(self):
        if self.shop:
            self.shop.stop()
        if self.stack:
            self.stack.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.scratch, ignore_errors=True)

    # -- what is there for all ------------------------------------------------

    def sell_out(self):
        """A sale of one unit, which is bought; what lies beside its path is forwarded. In
        another one the unit is held for long, and guests wait."""
        def call(method, path, body, **headers):
            answer = self.stack.origin.call(method, path, body, headers)
            if answer.status not in (200, 201):
                raise Failed(f"{method} {path} was answered {answer}")
            return answer.json
        for name, path, hold_seconds in ((servers.SALE, "/origin", 600),
                                         (f"{servers.SALE}-shop", "/shop", 600),
                                         (servers.WAITING, "/waiting", 1800)):
            call("PUT", f"/v1/tenants/shop/items/{name}", {"total": 1})
            call("PUT", f"/v1/sales/{name}", {
                "tenant": "shop", "item": name, "opens_at": "2020-01-01T00:00:00Z",
                "identity": "guest", "hold_seconds": hold_seconds,
                "upstream": "shop" if path == "/shop" else "origin",
                "bypass": [{"host": None, "path": path, "prefix": True}]})

        def reserve(sale):
            return call("POST", f"/v1/tenants/shop/items/{sale}/holds",
                        {"buyer": "b-1", "qty": 1, "sale": sale}, **{"Idempotency-Key": f"k-{sale}"})
        reserve(servers.WAITING)
        hold = reserve(servers.SALE)
        call("POST", f"/v1/holds/{hold['hold']}/confirm", {"payment_ref": "p-1", "captured": True})

    def write_both(self):
        """Certificate and key in one file, as haproxy wants them."""
        self.certificate, self.key = self.stack.certificate, self.stack.server_key
        self.both = os.path.join(self.folder, "both.pem")
        with open(self.both, "w") as out:
            for path in (self.certificate, self.key):
                with open(path) as file:
                    out.write(file.read())

    def read_flag(self):
        """Sluice's own answer, which the others give from their memory."""
        self.set_upstreams()
        with self.running([servers.Sluice]) as [sluice]:
            url = f"https://127.0.0.1:{sluice.port}{servers.FLAG}"
            said = subprocess.run(["curl", "--http2", "-sS", "-i", "--cacert", self.stack.ca, url],
                                  text=True, timeout=20, stdout=subprocess.PIPE).stdout
        head, _, body = said.replace("\r", "").partition("\n\n")
        fields = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:])
        if not json.loads(body or "{}").get("sold_out") or set(body) & set("'$\n"):
            raise Failed(f"the flag is not what the others could say, too:\n{said}")
        self.flag = {"body": body, "etag": fields["etag"],
                     "cache_control": fields["cache-control"]}

    def set_upstreams(self):
        upstreams = {"shop": None, "origin": {
            "address": f"127.0.0.1:{self.stack.origin_port}", "max_in_flight": 512}}
        if self.shop:
            upstreams["shop"] = {"address": f"127.0.0.1:{self.shop.port}",
                                 "protocol": "http/1.1", "max_in_flight": 512}
        self.stack.options = {"gateway": {
            "workers": 1, "limits": self.limits, "upstreams": upstreams}}

    def start_shop(self):
        self.shop = servers.Shop(self)
        self.set_upstreams()

    # -- what the servers ask for ----------------------------------------------

    def number(self):
        self.made += 1
        return self.made

    def new_folder(self, name):
        path = os.path.join(self.scratch, f"{name}-{self.number()}")
        os.mkdir(path)
        return path

    def words(self, server):
        """What the configurations are filled in with."""
        return {"folder": server.folder, "port": server.port, "flag": servers.FLAG, **self.flag,
                "certificate": self.certificate, "key": self.key, "both": self.both,
                "shop_port": self.shop.port if self.shop else 9,
                "origin_port": self.stack.origin_port}

    # -- what the tests ask for --------------------------------------------------

    def count(self, number, least=1):
        return max(least, round(number * self.scale))

    # A scale below a tenth only tries whether all works.

    def connections(self, number):
        return max(10, round(number * min(1, self.scale * 10)))

    def turns(self, number):
        return number if self.scale >= 0.1 else 1

    def those_who(self, what):
        return [kind for kind in self.chosen if what in kind.does]

    @contextlib.contextmanager
    def running(self, kinds):
        """The servers, started; those that do not start are noted as faults."""
        with contextlib.ExitStack() as stack:
            started = []
            for kind in kinds:
                with self.noting(kind.name):
                    started.append(kind(self))
                    stack.callback(started[-1].stop)
            yield started

    @contextlib.contextmanager
    def noting(self, who):
        """What fails in one server is told at once and at the end; the others go on."""
        try:
            yield
        except (Failed, OSError, ValueError, subprocess.SubprocessError) as why:
            self.faults.append(f"{who}: {why}")
            print(self.faults[-1], file=sys.stderr, flush=True)
