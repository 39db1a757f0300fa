"""The good client beside an attack: a process of its own, so that nothing but the
gateway and the machine can make it wait.

Twenty requests a second on one connection, the flag and a poll of the line in turn.
Reads one JSON line (url, ca, paths, headers, pid), then answers each further line with
what happened since the last: {"seconds": […], "errors": […]}. From each wait the time is
taken off for which the kernel kept this process or the gateway's worker from a
processor: that is the machine's doing, and tests share it with others.
"""
import json
import os
import select
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "harness"), os.path.join(os.path.dirname(TESTS), "conf")]
from h2client import H2, Lost  # noqa: E402

EVERY = 0.05
MOST_ERRORS = 5
WARM_UP = 20


def schedule(task):
    """(seconds a task was ready and had no processor, its slices); zeros where the
    kernel does not say."""
    try:
        with open(f"{task}/schedstat") as file:
            _, waited, slices = file.read().split()
            return int(waited) / 1e9, int(slices)
    except OSError:
        return 0, 0


class Good:
    def __init__(self, url, ca, paths, headers, pid):
        self.paths, self.headers = paths, headers
        self.connection = H2(url, ca, timeout=10)
        self.made, self.seconds, self.errors, self.tasks = 0, [], [], []
        threads = [f"/proc/{pid}/task/{tid}" for tid in os.listdir(f"/proc/{pid}/task")]
        before = {task: schedule(task)[1] for task in threads}
        for _ in range(WARM_UP):
            self.ask()
        self.seconds = []
        worker = max(threads, key=lambda task: schedule(task)[1] - before[task])
        self.tasks = [worker, "/proc/self"]

    def withheld(self):
        return sum(schedule(task)[0] for task in self.tasks)

    def ask(self):
        path = self.paths[self.made % len(self.paths)]
        self.made += 1
        began, withheld = time.monotonic(), self.withheld()
        try:
            answer = self.connection.get(path, self.headers)
        except (OSError, Lost) as why:
            self.errors.append(f"{path}: {why!r}")
            return
        waited = time.monotonic() - began
        self.seconds.append(max(0, waited - (self.withheld() - withheld)))
        if answer.status not in (200, 202):
            self.errors.append(f"{path}: {answer}")
        elif answer.json.get("ticket"):
            self.headers["sluice-ticket"] = answer.json["ticket"]

    def report(self):
        print(json.dumps({"seconds": self.seconds, "errors": self.errors}), flush=True)
        self.seconds, self.errors = [], []


def main():
    stdin = os.fdopen(0, "rb", buffering=0)  # select knows of no buffer
    good = Good(**json.loads(stdin.readline()))
    due = time.monotonic()
    while len(good.errors) < MOST_ERRORS:
        left = due - time.monotonic()
        if select.select([stdin], [], [], max(left, 0))[0]:
            if not stdin.readline():
                return 0
            good.report()
        elif left <= 0:
            good.ask()
            due = max(due + EVERY, time.monotonic())
    while stdin.readline():
        good.report()
    return 1


if __name__ == "__main__":
    sys.exit(main())
