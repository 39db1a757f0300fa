"""Running `sluice-load race` against a stack, and judging what it reports."""
import json
import subprocess
import tempfile


class Race:
    """A race under way: `wait` for its report, look at it meanwhile."""

    def __init__(self, stack, **options):
        words = []
        for name, value in options.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        self.stack = stack
        self.errors = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(
            [stack.program("loadgen/sluice-load"), "race", "--json",
             "--addresses", stack.write_addresses(), *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def is_running(self):
        return self.child.poll() is None

    def holds(self):
        """Holds granted so far, by the database's own count."""
        text = self.stack.postgres.psql("select count(*) from sluice.hold").stdout.strip()
        return int(text) if text.isdigit() else 0

    def wait(self, seconds=300):
        try:
            output, _ = self.child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.communicate()
            raise AssertionError(f"the race has not ended after {seconds} s: {self.said()}") from None
        try:
            report = json.loads(output)
        except ValueError:
            raise AssertionError(f"no report, exit {self.child.returncode}: {output} {self.said()}") \
                from None
        report["exit"] = self.child.returncode
        return report

    def said(self):
        self.errors.seek(0)
        return self.errors.read()[-2000:]

    def end(self):
        if self.is_running():
            self.child.kill()
            self.child.wait()


def run_race(stack, seconds=300, **options):
    race = Race(stack, **options)
    try:
        return race.wait(seconds)
    finally:
        race.end()


def told(report):
    """All of it, for an assert, which would print a dict without its middle."""
    return json.dumps(report)


def assert_held(report, buyers, units, passes=None):
    """Exactly the stock was sold, in order, and those refused cost nothing."""
    assert report["ok"] is True and report["exit"] == 0 and report["why"] == [], told(report)
    assert (report["buyers"], report["units"]) == (buyers, units), told(report)
    assert (report["sold"], report["oversold"], report["unsold"]) == (units, 0, 0), told(report)
    assert (report["refused_while_free"], report["fifo_inversions"]) == (0, 0), told(report)
    assert report["origin_requests_for_refused"] == 0 and report["invariant_ok"] is True, told(report)
    assert buyers >= report["sold"] + report["refused"] + report["left"] - report["units"], told(report)
    if passes is not None:
        assert units <= report["passes_issued"] <= passes, told(report)
