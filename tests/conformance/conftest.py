"""One gateway for all rows: a sale whose page is asked for, and behind it an
application that reads bodies."""
import concurrent.futures
import os
import shutil
import tempfile

import pytest

from patience import WAITS
from rows import Target
from run.stack import BUILD, Stack
from shopper import API, Shop
from upstream import Upstream

RUNS = os.path.join(BUILD, "test-runs")
SANITIZER_WORDS = ("AddressSanitizer", "LeakSanitizer", "runtime error:")
APP = "/conformance"


class Gateway:
    def __init__(self, stack, upstream):
        self.stack, self.upstream, self.shop = stack, upstream, Shop(stack)
        self.sales = [self.shop.sale(upstream="app", match=[{"host": None, "path": APP,
                                                             "prefix": True}],
                                     bypass=[{"host": None, "path": f"{APP}/free",
                                              "prefix": True}])]
        self.sales += [self.shop.sale() for _ in range(3)]
        self.target = Target(stack.nodes[0].port, f"127.0.0.1:{stack.nodes[0].port}", stack.ca,
                             page=f"{API}/sales/{self.sales[0]}", sink=f"{APP}/free/sink",
                             big=f"{APP}/free/medium")
        self.logged = 0

    def etag(self, sale):
        return self.shop.flag(sale).header("etag")

    def assert_well(self):
        """The process is there and no sanitizer has spoken."""
        assert self.stack.gateway.is_alive(), self.stack.gateway.log_tail()
        with open(self.stack.gateway.log, errors="replace") as log:
            log.seek(self.logged)
            text = log.read()
            self.logged = log.tell()
        assert not [word for word in SANITIZER_WORDS if word in text], text


@pytest.fixture(scope="session")
def gateway():
    os.makedirs(RUNS, exist_ok=True)
    upstream = Upstream()
    stack = Stack(tempfile.mkdtemp(prefix="conformance-", dir=RUNS),
                  build=os.environ.get("SLUICE_BUILD", BUILD),
                  options={"gateway": {"upstreams": {"app": {"address": upstream.address}},
                                      "trusted_proxies": []}})
    try:
        made = Gateway(stack.start(), upstream)
        yield made
        made.shop.close()
    finally:
        stack.stop()
        upstream.close()
    codes = {process.name: process.child.returncode for process in stack.processes()}
    assert set(codes.values()) == {0}, str(codes)
    shutil.rmtree(stack.folder)


@pytest.fixture(scope="session", autouse=True)
def patience(gateway):
    """The waits, begun before all else: {name: future of (outcome, seconds)}."""
    with concurrent.futures.ThreadPoolExecutor(len(WAITS)) as pool:
        yield {wait.name: pool.submit(wait.run, gateway.target) for wait in WAITS}


@pytest.fixture
def target(gateway):
    yield gateway.target
    gateway.assert_well()
