"""The loads. Every test takes the bench and returns {row: {server: value}} of one
round; within a round the servers take turns, several times where speed is measured,
so that what else the machine does hits all of them."""
import collections
import contextlib
import json
import os
import re
import statistics
import subprocess
import threading

import gauge
from run.process import Failed
from servers import FLAG, LINE, ORIGIN, PLACE, SHOP

PATIENCE_S = 240
GUARD = ["setpriv", "--pdeathsig", "KILL"]  # a load does not outlive this script
FIELDS = {ORIGIN: ["-H", "accept: application/json"]}  # a short answer instead of a page


def command(server, path, connections, streams, *more):
    return [*GUARD, "h2load", "-t1", f"-c{connections}", f"-m{streams}", *more,
            *FIELDS.get(path, []), f"https://127.0.0.1:{server.port}{path}"]


def answered(path, good, output):
    """How many requests h2load counts; all must have a status of class `good`."""
    total = re.search(r"^requests: (\d+) total.* (\d+) errored, (\d+) timeout", output, re.MULTILINE)
    fine = re.search(rf"^status codes: .*?(\d+) {good}", output, re.MULTILINE)
    if not total or not fine or total[1] != fine[1] or total[2] != "0" or int(total[1]) == 0:
        raise Failed(f"not all requests for {path} were answered {good}:\n{output[-600:]}")
    return int(total[1])


def h2load(server, path, requests, connections, streams, good="2xx"):
    done = subprocess.run(command(server, path, connections, streams, f"-n{requests}"),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S)
    if answered(path, good, done.stdout) != requests:
        raise Failed(f"not {requests} requests for {path}:\n{done.stdout[-600:]}")


def request_us(bench, server, path, connections, streams, good="2xx", more=()):
    """CPU time of a request on connections that have been in use for a while. h2load
    tells when it begins and ends to count; neither opening nor closing lies between."""
    connections = bench.connections(connections)
    warm_up_ms = 500 + 5 * connections
    child = subprocess.Popen(
        command(server, path, connections, streams, f"-D{bench.count(1500, 300)}ms",
                f"--warm-up-time={warm_up_ms}ms", *more),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    watch = threading.Timer(PATIENCE_S, child.kill)
    watch.start()
    lines, cpu = [], []
    try:
        for said in child.stdout:
            if said.startswith("Main benchmark duration is "):
                cpu.append(gauge.cpu_ns(server.pid))
            lines.append(said)
    finally:
        watch.cancel()
        child.kill()
        child.wait()
    count = answered(path, good, "".join(lines))
    return (cpu[1] - cpu[0]) / count / 1000


@contextlib.contextmanager
def visits(bench, server, total, at_once, mode):
    """Short connections by our own client; those `held` stay open until the end of
    the block. It gives up by itself when nothing has come for 20 s."""
    child = subprocess.Popen(
        [*GUARD, os.path.join(bench.build, "loadgen/peers/visits"), str(server.port), FLAG,
         str(total), str(at_once), server.group, mode],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said = json.loads(child.stdout.readline() or "{}")
        if said.get("answered") != total:
            raise Failed(f"of {total} visits ({mode}) were answered: {said}")
        yield said
        rest = child.communicate(timeout=PATIENCE_S)[0]
        if rest and json.loads(rest)["lost"] > 0:
            raise Failed(f"of {total} connections held were lost: {rest}")
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()


def visit(bench, server, total, at_once, mode):
    with visits(bench, server, total, at_once, mode) as said:
        return said


def spent_us(server, work):
    """CPU time of the server's processes for `work`, in microseconds."""
    before = gauge.settled_cpu_ns(server.pid)
    work()
    return (gauge.settled_cpu_ns(server.pid) - before) / 1000


def alternate(bench, what, path, turns, measure):
    """Starts all that do `what`, and measures each in turn: the medians of `turns`,
    in which a moment's disturbance does not count."""
    values = collections.defaultdict(lambda: collections.defaultdict(list))
    turns = bench.turns(turns)
    with bench.running(bench.those_who(what)) as running:
        waiting = []
        for server in running:
            with bench.noting(f"{server.name}, {path}"):
                h2load(server, path, bench.count(2000, 20), 20, 4, "4xx" if path == LINE else "2xx")
                waiting.append(server)
        for _ in range(turns):
            for server in list(waiting):
                waiting.remove(server)
                with bench.noting(f"{server.name}, {path}"):
                    for row, value in measure(server).items():
                        values[row][server.name].append(value)
                    waiting.append(server)
    return {row: {name: statistics.median(many) for name, many in by_name.items()
                  if len(many) == turns} for row, by_name in values.items()}


def warm(bench):
    return alternate(bench, "answer", FLAG, 3, lambda server: {
        "warm": request_us(bench, server, FLAG, 100, 10)})


def single(bench):
    return alternate(bench, "answer", FLAG, 3, lambda server: {
        "single": request_us(bench, server, FLAG, 500, 1)})


def line(bench):
    return alternate(bench, "line", LINE, 5, lambda server: {
        "line": request_us(bench, server, LINE, 100, 10, "4xx"),
        "line_flag": request_us(bench, server, FLAG, 100, 10)})


def poll(bench):
    """One who waits asks for the place again and again."""
    def measure(server):
        ticket = ["-H", f"sluice-ticket: {server.join()}"]
        return {"poll": request_us(bench, server, PLACE, 100, 10, more=ticket),
                "poll_flag": request_us(bench, server, FLAG, 100, 10)}
    return alternate(bench, "line", FLAG, 5, measure)


def handshake(bench):
    """Full and resumed ones in turn: the second is judged by the first, too."""
    count = bench.count(400, 30)

    def measure(server):
        said = {}
        full = spent_us(server, lambda: visit(bench, server, count, 8, "full"))
        again = spent_us(server, lambda: said.update(visit(bench, server, count, 8, "returning")))
        return {"handshake": full / count, "resume": again / count,
                "accepted": said["resumed"] / said["offered"] * 100 if said["offered"] else 0}
    return alternate(bench, "answer", FLAG, 5, measure)


def idle(bench):
    """Growth by connections that come to others, which have used up what was free."""
    before, more = bench.count(1000, 50), bench.count(5000, 250)

    def held_kib(server):
        gauge.settled_cpu_ns(server.pid)
        return gauge.pss_kib(server.pid)

    def measure(server):
        with visits(bench, server, before, 50, "held"):
            least = held_kib(server)
            with visits(bench, server, more, 50, "held"):
                return {"idle": (held_kib(server) - least) / more}
    return alternate(bench, "answer", FLAG, 1, measure)


def forward(bench, what, path):
    return alternate(bench, what, path, 3, lambda server: {
        what: request_us(bench, server, path, 50, 10)})


def proxy_h1(bench):
    return forward(bench, "proxy_h1", SHOP)


def proxy_h2c(bench):
    return forward(bench, "proxy_h2c", ORIGIN)


# ---- counts: the server runs under a watcher, twice ----

def counted(bench, watcher, read, requests, connections, streams):
    """The count of one request: the difference of a long load and a short one, so
    that start, handshakes and end cancel. `watcher(folder)` are the words before
    the command, `read(folder)` are the counts, by thread, once it has ended."""
    connections = bench.connections(connections)

    def counts(kind, number):
        folder = bench.new_folder("watched")
        os.chmod(folder, 0o777)  # for servers that change their user
        server = kind(bench, watcher=watcher(folder))
        try:
            h2load(server, FLAG, number, connections, streams)
        finally:
            server.stop()
        return read(folder)
    values = {}
    for kind in bench.those_who("answer"):
        with bench.noting(f"{kind.name}, {watcher('')[0]}"):
            short, whole = (counts(kind, connections * 2 + more) for more in (0, requests))
            # a process that only ends with the server may leave no count behind
            both = sorted(short.keys() & whole.keys())
            values[kind.name] = max(whole[who] - short[who] for who in both) / requests
    return values


def texts(folder):
    """(who, text) of each file: who is the number of the process, in the order in which
    they began, and what its file's name says of the thread."""
    names = sorted(os.listdir(folder), key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    processes = list(dict.fromkeys(name.partition("-")[0] for name in names))
    for name in names:
        process, _, thread = name.partition("-")
        with open(os.path.join(folder, name), errors="replace") as file:
            yield (processes.index(process), thread), file.read()


def calls(bench):
    def read(folder):
        # its end is "N total"
        return {who: int(text.split()[-2]) for who, text in texts(folder)}
    return {"calls": counted(
        bench, lambda folder: ("strace", "-f", "-c", "-U", "calls,name", "-o", f"{folder}/calls"),
        read, bench.count(20_000, 500), 500, 1)}


def instructions(bench):
    """Of the busiest thread: what else goes on goes by the clock, not by requests."""
    def read(folder):
        totals = {who: re.search(r"^totals: (\d+)", text, re.MULTILINE)
                  for who, text in texts(folder)}
        return {who: int(total[1]) for who, total in totals.items() if total}
    return {"instructions": counted(
        bench, lambda folder: ("valgrind", "--tool=callgrind", "--separate-threads=yes",
                               f"--callgrind-out-file={folder}/calls.%p"),
        read, bench.count(20_000, 500), 100, 10)}
