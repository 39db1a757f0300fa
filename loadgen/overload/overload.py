"""loadgen/overload/run: capacity, twice that, half of it. See docs/performance.md."""
import argparse
import contextlib
import datetime
import json
import os
import statistics
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[1:1] = [os.path.join(os.path.dirname(HERE), "peers"), os.path.join(ROOT, "conf")]
import gauge  # noqa: E402
from bench import Bench  # noqa: E402
from command import alone, machine, prepare, say, stop_on_signals, verdict, version  # noqa: E402
from report import table_lines  # noqa: E402
from run.process import Failed  # noqa: E402
from run.stack import BUILD  # noqa: E402
from servers import FLAG, PATIENT, Sluice  # noqa: E402

PROGRAMS = ("gateway/sluice", "origin/sluice-origin", "loadgen/overload/pour")
# Where each figure stands in a round, and what it is to be.
BOUNDS = (
    # (name, phase, the figure, limit, whether that is a least one)
    ("p99 of accepted answers, ms", "twice", lambda p: p["good_ms"]["p99"], 100, False),
    ("accepted, of what one core can do", "twice", lambda p: p["share"], 0.5, True),
    ("answered 503", "twice", lambda p: p["shed"], 1, True),
    ("newcomers refused before the handshake", "twice", lambda p: p["newcomers"]["refused"], 1, True),
    ("connections lost without a word", "twice", lambda p: p["residents"]["lost"], 0, False),
    ("due requests never sent, % of offered", "twice", lambda p: 100 * p["given_up"] / p["offered"],
     1, False),
    ("until nothing is refused or late, ms", "half", lambda p: p["last_bad_ms"], 1000, False),
    ("p99 of accepted answers afterwards, ms", "half", lambda p: p["good_ms"]["p99"], 100, False),
)
PATIENCE_S = 120  # with all phases of one pour
LAG_MS = 25  # of the sender's own ticks, p99: more, and it is not the gateway that was measured
COUNTED = {"sluice_requests_shed_total": {}, "sluice_connections_sent_away_total": {},
           "sluice_connections_shed_total": {"by": "overload"}}


def arguments():
    parser = argparse.ArgumentParser(
        prog="loadgen/overload/run", epilog="docs/performance.md tells how to read the figures.",
        description="Asks one worker on one core for twice what it can do, then for half.")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="3")
    parser.add_argument("--connections", type=int, default=2000, metavar="N", help="2000")
    parser.add_argument("--newcomers", type=int, default=100, metavar="N",
                        help="connections a second that come beside them (100)")
    parser.add_argument("--seconds", type=int, default=5, metavar="N", help="of overload (5)")
    parser.add_argument("--factor", type=float, default=2, metavar="X", help="of capacity (2)")
    parser.add_argument("--nice", type=int, default=0, metavar="N",
                        help="of gateway and sender; below 0, as root, on a machine with other work (0)")
    parser.add_argument("--limits", type=json.loads, default={}, metavar="JSON",
                        help='laid over the limits of the gateway, as {"turn": "0s"}')
    parser.add_argument("--build", default=BUILD, metavar="FOLDER",
                        help="where sluice is built, and will be (build)")
    parser.add_argument("--json", action="store_true",
                        help="one JSON object on standard output, the tables on standard error")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bound is missed")
    options = parser.parse_args()
    if options.rounds < 1 or not 1 <= options.seconds <= 60:
        parser.error("--rounds must be at least 1, --seconds 1 to 60")
    return options


def nice(options):
    """The kernel weighs sessions against each other before it weighs what is in them."""
    told = f"echo {options.nice} 2>/dev/null >/proc/self/autogroup; exec nice -n {options.nice}"
    return ("sh", "-c", f'{told} "$@"', "sh") if options.nice else ()


def pour(bench, options, server, newcomers, *phases):
    """The phases as pour tells them, each with the CPU time that the server and pour took."""
    words = [os.path.join(bench.build, "loadgen/overload/pour"), server.port, bench.stack.ca, FLAG,
             options.connections, newcomers, *phases]
    child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *nice(options), *map(str, words)],
                             stdout=subprocess.PIPE, text=True, start_new_session=True)
    spent, said = [], None
    watch = threading.Timer(PATIENCE_S, child.kill)
    watch.start()
    try:
        for line in child.stdout:
            told = json.loads(line)
            if "begin" in told:
                spent.append((gauge.cpu_ns(server.pid), gauge.cpu_ns(child.pid)))
            else:
                said = told["phases"]
    finally:
        watch.cancel()
        child.kill()
        child.wait()
        child.stdout.close()
    if not said:
        raise Failed("pour gave up; is the gateway still there?")
    for phase, before, after in zip(said, spent, spent[1:], strict=False):
        phase["server_cpu_s"], phase["pour_cpu_s"] = ((b - a) / 1e9 for a, b in zip(before, after, strict=True))
    return said


@contextlib.contextmanager
def gateway(bench, options, limits):
    bench.limits = {"max_requests_per_connection": 100_000_000, **limits}
    bench.set_upstreams()
    server = Sluice(bench, watcher=nice(options))
    try:
        yield server
    finally:
        server.stop()


def counted(server):
    metrics = server.node.admin.metrics()
    return {name: metrics.value(name, **labels) for name, labels in COUNTED.items()}


def capacity(bench, options):
    """Answers in a second of the gateway's CPU time, in a closed loop that it always keeps."""
    with gateway(bench, options, PATIENT) as server:
        _, phase = pour(bench, options, server, 0, "m10:1", "m10:2")
    return phase["good_ms"]["count"] / phase["server_cpu_s"], phase


def one_round(bench, options):
    able, closed = capacity(bench, options)
    half, much = able / 2, able * options.factor
    with gateway(bench, options, options.limits) as server:
        before, twice, after = pour(
            bench, options, server, options.newcomers, f"{half:.0f}:2",
            f"{much:.0f}:{options.seconds}", f"{half:.0f}:3")
        counts = counted(server)
    twice["share"] = twice["good_ms"]["count"] / twice["seconds"] / able
    return {"capacity": able, "closed": closed, "before": before, "twice": twice, "half": after,
            "server": counts}


def judged(rounds):
    for name, phase, figure, limit, is_least in BOUNDS:
        values = [figure(one[phase]) for one in rounds]
        value = statistics.median(values)
        yield {"bound": name, "value": value, "min": min(values), "max": max(values),
               "limit": limit, "least": is_least,
               "kept": value >= limit if is_least else value <= limit}


def phase_rows(rounds):
    for name, what in (("before", "half, before"), ("twice", "overload"), ("half", "half, after")):
        for one in rounds:
            p = one[name]
            good, doors = p["good_ms"], p["newcomers"]
            yield [what, f"{p['rate']:,.0f}", f"{good['count'] / p['seconds']:,.0f}",
                   *(f"{good[key]:.1f}" for key in ("p50", "p99", "p999", "max")),
                   f"{p['shed']:,}", f"{p['unsent']:,}", f"{p['residents']['left']:,}",
                   f"{doors['refused']:,} of {doors['tried']:,}", f"{p['last_bad_ms']:,.0f}",
                   f"{p['server_cpu_s'] / p['seconds']:.2f}", f"{p['pour_cpu_s'] / p['seconds']:.2f}"]


def text(result):
    where = result["machine"]
    head = ["phase", "offered/s", "accepted/s", "p50 ms", "p99", "p99.9", "max", "503", "no connection",
            "sent away", "newcomers refused", "last refused or late at ms", "gateway's CPU", "sender's"]
    lines = [f"{result['date']}, {where['cores']} cores of {where['cpu']}, Linux {where['kernel']}; "
             f"{result['version']}; {len(result['rounds'])} rounds", "",
             *table_lines(head, phase_rows(result["rounds"])), ""]
    rows = [[b["bound"], f"{b['value']:,.2f}", f"{b['min']:,.2f}..{b['max']:,.2f}",
             f"{'at least' if b['least'] else 'at most'} {b['limit']:,}",
             "kept" if b["kept"] else "missed"] for b in result["bounds"]]
    return "\n".join(lines + list(table_lines(["bound", "measured", "rounds", "limit", "verdict"], rows)))


def measure(options):
    folder = os.path.join(BUILD, "run-overload")
    rounds, faults = [], []
    with alone(folder), Bench(options.build, folder, [Sluice], 1) as bench:
        for number in range(options.rounds):
            rounds.append(one_round(bench, options))
            last = rounds[-1]
            say(f"round {number + 1}: {last['capacity']:,.0f}/s; p99 {last['twice']['good_ms']['p99']} ms; "
                f"recovered after {last['half']['last_bad_ms']:.0f} ms; {last['server']}")
            faults += [f"round {number + 1}: the sender was late itself in '{name}': "
                       f"p99 {last[name]['lag_ms']['p99']:.0f} ms" for name in ("before", "twice", "half")
                       if last[name]["lag_ms"]["p99"] > LAG_MS]
    return {"date": datetime.date.today().isoformat(), "machine": machine(), "rounds": rounds,
            "version": version(Sluice, options.build), "faults": faults,
            "bounds": list(judged(rounds))}


def main():
    options = arguments()
    stop_on_signals()
    try:
        prepare(options.build, PROGRAMS)
        result = measure(options)
    except Failed as why:
        say(f"loadgen/overload/run: {why}")
        return 2
    print(text(result), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(result))
    return verdict("loadgen/overload/run", result, options.check)


if __name__ == "__main__":
    sys.exit(main())
