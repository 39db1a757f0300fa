"""conf/quickstart after the packages are there: build, start, hold the race, report."""
import argparse
import datetime
import json
import os
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "conf"))
from run import build  # noqa: E402
from run.process import Failed, locked, wait_until  # noqa: E402
from run.stack import BUILD, Stack, end_earlier, left_running  # noqa: E402

RUN = os.path.join(BUILD, "run")
RACE_RUN = os.path.join(BUILD, "run-race")
PROGRAMS = ("gateway/sluice", "gateway/sluicectl", "origin/sluice-origin",
            "loadgen/sluice-load")


def say(text):
    print(text, file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(
        prog="conf/quickstart",
        description="Builds sluice, starts it with a private PostgreSQL and holds a sale.",
        epilog="What follows -- goes to `sluice-load race`, e.g. -- --unpaid 0.3 --hold-seconds 2")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--serve", action="store_true",
                      help="hold no race: leave all running with an open sale `demo`")
    what.add_argument("--stop", action="store_true", help="end what --serve left running")
    parser.add_argument("--buyers", type=int, default=10000, metavar="N")
    parser.add_argument("--units", type=int, default=100, metavar="N")
    parser.add_argument("--nodes", type=int, default=1, metavar="N",
                        help="gateways; more than one needs --redis")
    parser.add_argument("--redis", action="store_true",
                        help="keep the line in Redis, for a fleet of gateways")
    parser.add_argument("--json", action="store_true",
                        help="one JSON object on standard output, all else on standard error")
    given, race = sys.argv[1:], []
    if "--" in given:
        cut = given.index("--")
        given, race = given[:cut], given[cut + 1:]
    options = parser.parse_args(given)
    options.race = race
    for name in ("buyers", "units", "nodes"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if options.nodes > 1 and not options.redis:
        parser.error("--nodes above 1 needs --redis: the memory store serves one gateway")
    if options.redis:
        parser.error("--redis is not available in this version: its store is the memory of one gateway")
    return options


def open_demo_sale(stack, units):
    """The sale that --serve leaves: tenant shop, item grinder, open now."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    calls = (
        ("/v1/tenants/shop/items/grinder", {"total": units}),
        ("/v1/sales/demo", {
            "tenant": "shop", "item": "grinder", "opens_at": now, "identity": "guest",
            "overbook": 1.0, "upstream": "shop",
            "match": [{"host": None, "path": "/demo", "prefix": True}]}))
    for path, body in calls:
        answer = stack.origin.put(path, body)
        if answer.status not in (200, 201):
            raise Failed(f"PUT {path} was answered {answer.status}: {answer.body.decode()}")

    def is_open():
        answer = stack.admin.get("/v1/sales/demo")
        return answer.status == 200 and answer.json.get("state") == "open"
    wait_until(is_open, 10, "sale demo open at the gateway")


def serve(options):
    end_earlier(RUN)
    stack = Stack(RUN, nodes=options.nodes)
    try:
        stack.start()
        open_demo_sale(stack, options.units)
        file = stack.write_addresses()
    except BaseException:
        stack.stop()
        raise
    if options.json:
        print(json.dumps(stack.addresses()))
        return 0
    sale = f"{stack.url}/_sluice/v1/sales/demo"
    print(f"""
Running, with {options.units} units of shop/grinder in the open sale `demo`:
  shoppers   {stack.url}/demo
  flag       curl --cacert {stack.ca} {sale}
  admin      {stack.admin.url}   token in {stack.operator_token}
  origin     {stack.origin.url}   token in {stack.service_token}
  all        {file}
  end it     conf/quickstart --stop
""".rstrip())
    return 0


REPORT = """
{buyers:,} buyers, {units:,} units, {duration_s:.1f} s
  sold          {sold:>8,}   oversold {oversold}, unsold {unsold}
  refused       {refused:>8,}   of them while a unit stayed free: {refused_while_free}
  left          {left:>8,}
  passes        {passes_issued:>8,}   units per account at most {max_units_per_account}
  asked behind  {origin_requests:>8,}   for those refused: {origin_requests_for_refused}
  inversions    {fifo_inversions:>8,}   of first come, first served"""


def print_report(report):
    print(REPORT.format(**report))
    rows = report.get("answers") or {}
    if rows:
        print(f"  {'answers':<14}{'count':>10}{'p50 ms':>10}{'p99 ms':>10}{'p999 ms':>10}")
    for name, row in sorted(rows.items()):
        times = "".join(f"{row[key] / 1000:>10.1f}" for key in ("p50_us", "p99_us", "p999_us"))
        print(f"  {name:<14}{row['count']:>10,}{times}")
    print(f"  available + held + sold = total: {'yes' if report['invariant_ok'] else 'NO'}")
    print("The sale held." if report["ok"] else "It did NOT hold: " + "; ".join(report["why"]))


def hold_race(stack, options):
    """The report of `sluice-load race`, as a dict."""
    command = [stack.program("loadgen/sluice-load"), "race", "--json",
               "--addresses", stack.write_addresses(),
               "--buyers", str(options.buyers), "--units", str(options.units), *options.race]
    say(f"holding the sale: {options.units:,} units, {options.buyers:,} buyers")
    race = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        output, _ = race.communicate()
    finally:
        if race.poll() is None:
            race.terminate()
            race.wait(10)
    try:
        return json.loads(output)
    except ValueError:
        raise Failed(f"sluice-load race ended with {race.returncode} and no report:\n"
                     f"{output}\nlogs are in {stack.folder}") from None


def race(options):
    folder = RACE_RUN if left_running(RUN) else RUN
    end_earlier(folder)
    stack = Stack(folder, nodes=options.nodes)
    try:
        stack.start()
        report = hold_race(stack, options)
    finally:
        stack.stop()
    if options.json:
        print(json.dumps(report))
    else:
        print_report(report)
    if not report["ok"]:
        say(f"logs are in {folder}")
    return 0 if report["ok"] else 1


def stop_on_signal(signo, _frame):
    raise SystemExit(128 + signo)


def main():
    options = arguments()
    for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signo, stop_on_signal)
    if options.stop:
        end_earlier(RUN)
        end_earlier(RACE_RUN)
        return 0
    try:
        with locked(os.path.join(BUILD, "quickstart.lock"), lambda: say(
                "conf/quickstart: another one runs here; waiting for its end")):
            is_new = not os.path.exists(os.path.join(BUILD, "build.ninja"))
            build.make(BUILD, *(["-Dtests=false"] if is_new else []), targets=PROGRAMS)
            return serve(options) if options.serve else race(options)
    except Failed as why:
        say(f"conf/quickstart: {why}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
