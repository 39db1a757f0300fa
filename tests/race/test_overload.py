"""The overload run works and judges; what it measures is not looked at here."""
import json
import os
import subprocess
import sys

import pytest

from conftest import PROGRAMS
from run.stack import ROOT

sys.path.insert(0, os.path.join(ROOT, "loadgen/overload"))
import overload  # noqa: E402
from command import verdict  # noqa: E402

RUN = os.path.join(ROOT, "loadgen/overload/run")


def test_small_run_tells_every_figure():
    done = subprocess.run(
        [RUN, "--build", PROGRAMS, "--rounds", "1", "--connections", "40", "--newcomers", "10",
         "--seconds", "1", "--json"], stdin=subprocess.DEVNULL, text=True, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode in (0, 1), done.stderr  # 1: a busy machine made the sender late
    result = json.loads(done.stdout)
    (one,) = result["rounds"]
    assert [said["bound"] for said in result["bounds"]] == [name for name, *_ in overload.BOUNDS]
    assert one["capacity"] > 0 and one["twice"]["offered"] > one["before"]["offered"] / 2 > 0
    assert one["before"]["good_ms"]["count"] > 0 and one["half"]["good_ms"]["count"] > 0
    assert (done.returncode == 1) == bool(result["faults"])


def made_up(p99=50, share=0.7, last_bad_ms=0):
    phase = {"good_ms": {"p99": p99}, "share": share, "shed": 5, "newcomers": {"refused": 5},
             "residents": {"lost": 0}, "given_up": 0, "offered": 100, "last_bad_ms": last_bad_ms}
    return {"twice": phase, "half": phase}


@pytest.mark.parametrize("worse, bound", [
    ({"p99": 101}, "p99 of accepted answers, ms"), ({"share": 0.4}, "accepted, of what one core can do"),
    ({"last_bad_ms": 1001}, "until nothing is refused or late, ms")])
def test_a_bound_is_missed_by_the_median(worse, bound):
    def missed(rounds):
        bounds = list(overload.judged(rounds))
        names = [said["bound"] for said in bounds if not said["kept"]]
        assert verdict("run", {"faults": [], "bounds": bounds}, True) == (1 if names else 0)
        assert verdict("run", {"faults": [], "bounds": bounds}, False) == 0
        return names
    good, bad = made_up(), made_up(**worse)
    assert missed([good, bad, good]) == []
    assert bound in missed([bad, good, bad])


def test_a_late_sender_is_a_fault():
    assert verdict("run", {"faults": ["late"], "bounds": []}, False) == 1
