"""loadgen/peers/compare: builds, starts, loads, tells. See docs/performance.md."""
import argparse
import datetime
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "conf"))
import loads  # noqa: E402
import report  # noqa: E402
import servers  # noqa: E402
from bench import Bench  # noqa: E402
from command import alone, machine, prepare, say, stop_on_signals, verdict, version  # noqa: E402
from run.process import Failed  # noqa: E402
from run.stack import BUILD  # noqa: E402

PROGRAMS = ("gateway/sluice", "origin/sluice-origin", "loadgen/peers/visits")
# test: (the programs it needs, whether one round is enough)
TESTS = {
    "warm": (["h2load"], False),
    "line": (["h2load"], False),
    "poll": (["h2load"], False),
    "single": (["h2load"], False),
    "handshake": (["h2load"], False),
    "proxy_h1": (["h2load", "nginx"], False),
    "proxy_h2c": (["h2load"], False),
    "idle": (["h2load"], False),
    "calls": (["h2load", "strace"], True),
    "instructions": (["h2load", "valgrind"], True),
}
TOOLS = ("curl", "openssl", "setpriv", "taskset")


def names(known):
    def read(text):
        wanted = text.split(",")
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"no {', '.join(unknown)}; there are: {', '.join(known)}")
        return wanted
    return read


def arguments():
    servers_known = [kind.name for kind in servers.ALL]
    parser = argparse.ArgumentParser(
        prog="loadgen/peers/compare", epilog="docs/performance.md tells how to read the figures.",
        description="Compares what sluice costs with nginx, h2o, haproxy and nghttpd: each with "
                    "one worker on one core, loaded from another one, in interleaved rounds.")
    parser.add_argument("--tests", type=names(TESTS), default=list(TESTS), metavar="A,B",
                        help=f"of: {','.join(TESTS)} (all)")
    parser.add_argument("--targets", type=names(servers_known), default=servers_known,
                        metavar="A,B", help=f"of: {','.join(servers_known)} (all)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="3")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X",
                        help="multiplies durations and numbers (1); below 0.1 a mere trial")
    parser.add_argument("--build", default=BUILD, metavar="FOLDER",
                        help="where sluice is built, and will be (build)")
    parser.add_argument("--json", action="store_true",
                        help="an array on standard output, the tables on standard error")
    parser.add_argument("--save", metavar="FILE", help="writes all rounds, for --read")
    parser.add_argument("--check", action="store_true",
                        help="exit 1 when a bound is missed, too")
    parser.add_argument("--read", metavar="FILE", help="tell what an earlier --save wrote")
    options = parser.parse_args()
    if options.rounds < 1 or not 0 < options.scale <= 100:
        parser.error("--rounds must be at least 1, --scale above 0 and at most 100")
    options.chosen = [kind for kind in servers.ALL if kind.name in options.targets]
    return options


def check_programs(options):
    wanted = [*TOOLS, *(word for kind in options.chosen for word in kind.programs),
              *(word for test in options.tests for word in TESTS[test][0])]
    missing = sorted({word for word in wanted if not shutil.which(word)})
    if missing:
        raise Failed(f"missing: {', '.join(missing)}; `conf/packages peers` installs them, "
                     "--targets and --tests leave out what needs them")


def measure(options):
    """All rounds, as the JSON object that is told."""
    result = {"date": datetime.date.today().isoformat(), "machine": machine(),
              "scale": options.scale, "rounds": [],
              "versions": {kind.name: version(kind, options.build) for kind in options.chosen}}
    folder = os.path.join(BUILD, "run-peers")
    with alone(folder), Bench(options.build, folder, options.chosen, options.scale) as bench:
        if "proxy_h1" in options.tests:
            bench.start_shop()
        for number in range(options.rounds):
            result["rounds"].append({})
            for test in options.tests:
                if number > 0 and TESTS[test][1]:
                    continue
                rows = getattr(loads, test)(bench)
                result["rounds"][-1].update(rows)
                say(f"round {number + 1}: {test} " + json.dumps(
                    {row: {name: round(value, 3) for name, value in by_name.items()}
                     for row, by_name in rows.items()}))
        result["faults"] = bench.faults
    return result


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    options = arguments()
    stop_on_signals()
    try:
        if options.read:
            with open(options.read) as file:
                result = json.load(file)
        else:
            check_programs(options)
            prepare(options.build, PROGRAMS)
            result = measure(options)
    except Failed as why:
        say(f"loadgen/peers/compare: {why}")
        return 2
    result["bounds"] = report.judgements(result["rounds"])
    print(report.text(result), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(list(report.comparisons(result["rounds"]))))
    if options.save:
        with open(options.save, "w") as file:
            json.dump(result, file)
    return verdict("loadgen/peers/compare", result, options.check)


if __name__ == "__main__":
    sys.exit(main())
