"""loadgen/strategies/run: rounds, medians, table, plot. See docs/strategies.md."""
import argparse
import datetime
import json
import math
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[1:1] = [os.path.join(os.path.dirname(HERE), "peers"), os.path.join(ROOT, "conf")]
from command import alone, machine, prepare, say, stop_on_signals, verdict  # noqa: E402
from report import table_lines  # noqa: E402
from run.process import Failed  # noqa: E402
from run.redis import Redis  # noqa: E402
from run.stack import BUILD, Stack, end_earlier  # noqa: E402

NAMES = ("naive", "lock_pay_500", "lock_pay_200", "lock_logic", "optimistic", "conditional", "batch",
         "segments", "units", "spop", "origin_batch", "origin_off")
PROGRAMS = ("origin/sluice-origin", "loadgen/sluice-load")
FIELDS = ("sales_per_s", "ceiling_per_s", "lock_held_us", "retries", "gave_up", "p99_us", "oversold")
LEAST, P99_US = 6, 30_000  # origin_batch: times conditional; at half its rate


def arguments():
    parser = argparse.ArgumentParser(
        prog="sluice-load strategies", epilog="docs/strategies.md tells how to read the figures.",
        description="Lets the same buyers at the same stock in every way to hold a unit.")
    parser.add_argument("--standby", action="store_true",
                        help="each commit waits for a synchronous standby")
    parser.add_argument("--only", metavar="A,B", default=",".join(NAMES), help="these alone")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="3")
    parser.add_argument("--seconds", type=int, default=5, metavar="N", help="of each, at most (5)")
    parser.add_argument("--units", type=int, default=200_000, metavar="N", help="of stock (200000)")
    parser.add_argument("--connections", type=int, default=16, metavar="N",
                        help="to PostgreSQL, of all but the origin (16)")
    parser.add_argument("--buyers", type=int, default=256, metavar="N",
                        help="at the origin at the same time (256)")
    parser.add_argument("--half", action="store_true",
                        help="then origin_batch at half its rate, for its p99 there")
    parser.add_argument("--plot", metavar="DIR", help="write strategies.svg there")
    parser.add_argument("--build", default=BUILD, metavar="FOLDER", help="where sluice is built (build)")
    parser.add_argument("--json", action="store_true",
                        help="one JSON array on standard output, the table on standard error")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bound is missed")
    options = parser.parse_args()
    options.only = options.only.split(",")
    for name, most in (("rounds", 20), ("seconds", 600), ("units", 10_000_000),
                       ("connections", 64), ("buyers", 4096)):
        if not 1 <= getattr(options, name) <= most:
            parser.error(f"--{name}: expected 1..{most}")
    if set(options.only) - set(NAMES):
        parser.error(f"--only: expected some of {','.join(NAMES)}")
    return options


class Servers:
    """PostgreSQL, perhaps its standby, the origin, Redis; all private, all ours."""

    def __init__(self, options, folder):
        end_earlier(folder)
        self.stack = Stack(folder, build=options.build, nodes=0)
        self.redis = None
        self.options, self.file = options, os.path.join(folder, "servers.json")

    def __enter__(self):
        try:
            self.stack.start_postgres()
            if self.options.standby:
                self.stack.start_standby()
            self.stack.start_origin()
            if "spop" in self.options.only:
                self.redis = Redis(self.stack.folder)
                self.redis.start()
            self.write(self.redis.url if self.redis else None)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def write(self, redis):
        with open(self.file, "w") as out:
            json.dump({"postgres": self.stack.postgres.url, "origin": self.stack.origin.url,
                       "service_token": self.stack.service_token, "redis": redis}, out)
        os.chmod(self.file, 0o600)

    def close(self):
        if self.redis:
            self.redis.remove()
        self.stack.stop()
        shutil.rmtree(self.stack.folder, ignore_errors=True)

    def settings(self):
        names = ("server_version", "fsync", "synchronous_commit", "full_page_writes",
                 "synchronous_standby_names")
        return {name: self.stack.postgres.tell(f"show {name}") for name in names}


def measure(options, servers, name, tag, **more):
    words = {"servers": servers.file, "only": name, "tag": tag, "units": options.units,
             "seconds": options.seconds, "connections": options.connections,
             "buyers": options.buyers, **more}
    argv = [os.path.join(options.build, "loadgen/sluice-load"), "strategies"]
    for key, value in words.items():
        argv += [f"--{key}", str(value)]
    done = subprocess.run(["setpriv", "--pdeathsig", "KILL", *argv], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=options.seconds + 180)
    if done.returncode != 0:
        raise Failed(f"{name}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)[0]


def middle(rows):
    """The round in the middle; what was sold twice or lost counts in whichever it was seen."""
    rows = sorted(rows, key=lambda row: row["sales_per_s"])
    row = dict(rows[len(rows) // 2])
    row.update({name: max(each[name] for each in rows) for name in ("oversold", "lost")})
    row["rounds"] = [each["sales_per_s"] for each in rows]
    return row


def faults_of(rows):
    """The naive way is to be seen to oversell, and no other."""
    for row in rows:
        if (row["oversold"] > 0) != (row["strategy"] == "naive"):
            yield f"{row['strategy']} sold {row['oversold']} units more than it took from stock"
        if row["lost"] > 0 and row["strategy"] != "spop":
            yield f"{row['strategy']} lost {row['lost']} units"


def bounds_of(rows):
    by_name = {row["strategy"]: row for row in rows}
    ours, other = by_name.get("origin_batch"), by_name.get("conditional")
    if ours and other and other["sales_per_s"]:
        value = ours["sales_per_s"] / other["sales_per_s"]
        yield {"bound": "origin_batch ÷ conditional", "value": value, "limit": LEAST, "least": True,
               "kept": value >= LEAST}
    if ours and "half" in ours:
        value = ours["half"]["p99_us"]
        yield {"bound": "origin_batch's p99 at half its rate, µs", "value": value,
               "limit": P99_US, "least": False, "kept": value <= P99_US}


def run(options):
    rows = {name: [] for name in options.only}
    with Servers(options, os.path.join(BUILD, "run-strategies")) as servers:
        for number in range(options.rounds):
            for name in options.only:
                rows[name].append(measure(options, servers, name, f"r{number}"))
                say(f"round {number + 1}, {name}: {rows[name][-1]['sales_per_s']:,.0f}/s")
        result = [middle(rows[name]) for name in options.only]
        if options.half and "origin_batch" in options.only:
            ours = next(row for row in result if row["strategy"] == "origin_batch")
            halves = [measure(options, servers, "origin_batch", f"h{number}",
                              rate=round(ours["sales_per_s"] / 2), buyers=min(4096, 4 * options.buyers))
                      for number in range(options.rounds)]
            halves.sort(key=lambda row: row["p99_us"])
            ours["half"] = halves[len(halves) // 2]
        return {"date": datetime.date.today().isoformat(), "machine": machine(), "rows": result,
                "settings": servers.settings(), "faults": list(faults_of(result)),
                "bounds": list(bounds_of(result))}


def text(result):
    where, told = result["machine"], result["settings"]
    lines = [f"{result['date']}, {where['cores']} cores of {where['cpu']}, Linux {where['kernel']}; "
             f"PostgreSQL {told['server_version']}, fsync {told['fsync']}, synchronous_commit "
             f"{told['synchronous_commit']}, standby {told['synchronous_standby_names'] or 'none'}", ""]
    head = ["way", "sales/s", "rounds", "ceiling/s", "lock held µs", "sales a lock", "retries",
            "gave up", "p99 ms", "oversold", "lost"]
    rows = [[r["strategy"], f"{r['sales_per_s']:,.0f}",
             f"{r['rounds'][0]:,.0f}..{r['rounds'][-1]:,.0f}", f"{r['ceiling_per_s']:,.0f}",
             f"{r['lock_held_us']:,.0f}", f"{r['sold'] / max(1, r['locks']):,.1f}",
             f"{r['retries']:,}", f"{r['gave_up']:,}", f"{r['p99_us'] / 1000:,.1f}",
             f"{r['oversold']:,}", f"{r['lost']:,}"] for r in result["rows"]]
    lines += table_lines(head, rows)
    if result["bounds"]:
        said = [[b["bound"], f"{b['value']:,.1f}",
                 f"{'at least' if b['least'] else 'at most'} {b['limit']:,}",
                 "kept" if b["kept"] else "missed"] for b in result["bounds"]]
        lines += ["", *table_lines(["bound", "measured", "limit", "verdict"], said)]
    return "\n".join(lines)


# -- the plot: a bar for what was sold, a mark where the formula ends --------------

WIDTH, ROW, LEFT, TOP = 900, 30, 130, 50


def svg(result):
    rows = [row for row in result["rows"] if row["sales_per_s"] > 0]
    most = max(max(row["sales_per_s"], row["ceiling_per_s"]) for row in rows)
    decades = max(1, math.ceil(math.log10(most)))

    def x(value):
        return LEFT + (WIDTH - LEFT - 90) * min(1, math.log10(max(1, value)) / decades)
    bottom = TOP + ROW * len(rows)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 40}" '
           'font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="white"/>')
    standby = "a synchronous standby" if result["settings"]["synchronous_standby_names"] else "no standby"
    yield (f'<text x="{LEFT}" y="22">units of one item sold in a second, {standby}; '
           '<tspan fill="#d62728">|</tspan> sales per lock ÷ time it is held</text>')
    for decade in range(decades + 1):
        at = x(10 ** decade)
        yield (f'<line x1="{at:.1f}" y1="{TOP - 10}" x2="{at:.1f}" y2="{bottom}" stroke="#dddddd"/>'
               f'<text x="{at:.1f}" y="{bottom + 20}" text-anchor="middle">{10 ** decade:,}</text>')
    for number, row in enumerate(rows):
        y, end, mark = TOP + ROW * number, x(row["sales_per_s"]), x(row["ceiling_per_s"])
        colour = "#d62728" if row["oversold"] or row["lost"] else (
            "#2ca02c" if row["strategy"].startswith("origin") else "#1f77b4")
        yield (f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{row["strategy"]}</text>'
               f'<rect x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="20" fill="{colour}"/>'
               f'<line x1="{mark:.1f}" y1="{y - 3}" x2="{mark:.1f}" y2="{y + 23}" '
               'stroke="#d62728" stroke-width="2"/>'
               f'<text x="{max(end, mark) + 6:.1f}" y="{y + 15}">{row["sales_per_s"]:,.0f}</text>')
    yield "</svg>\n"


def main():
    options = arguments()
    stop_on_signals()
    try:
        prepare(options.build, PROGRAMS)
        with alone(os.path.join(BUILD, "run-strategies")):
            result = run(options)
    except (Failed, OSError, subprocess.TimeoutExpired) as why:
        say(f"sluice-load strategies: {why}")
        return 2
    print(text(result), file=sys.stderr if options.json else sys.stdout)
    if options.plot:
        os.makedirs(options.plot, exist_ok=True)
        with open(os.path.join(options.plot, "strategies.svg"), "w") as out:
            out.write("\n".join(svg(result)))
    if options.json:
        print(json.dumps(result["rows"]))
    return verdict("sluice-load strategies", result, options.check)


if __name__ == "__main__":
    sys.exit(main())
