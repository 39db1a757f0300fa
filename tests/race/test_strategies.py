"""Every way to hold a unit works and is judged; how fast it is is not looked at here."""
import json
import os
import subprocess
import sys

import pytest

from conftest import PROGRAMS
from run.stack import ROOT

sys.path.insert(0, os.path.join(ROOT, "loadgen/strategies"))
import strategies  # noqa: E402

UNITS, CONNECTIONS = 200, 4


def test_only_the_naive_way_oversells(tmp_path):
    done = subprocess.run(
        [os.path.join(PROGRAMS, "loadgen/sluice-load"), "strategies", "--rounds", "1", "--seconds", "1",
         "--units", str(UNITS), "--connections", str(CONNECTIONS), "--buyers", "32", "--json",
         "--plot", str(tmp_path)], stdin=subprocess.DEVNULL, text=True, timeout=600,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert tuple(row["strategy"] for row in rows) == strategies.NAMES
    for row in rows:
        assert set(strategies.FIELDS) <= set(row) and row["sold"] > 0 and row["p99_us"] > 0, row
        assert row["sales_per_s"] > 0 and row["ceiling_per_s"] > 0 and row["lock_held_us"] > 0, row
        assert (row["oversold"] > 0) == (row["strategy"] == "naive"), row
        assert row["strategy"] == "naive" or row["sold"] <= UNITS, row
        # A kill between the two steps of each connection's last sale.
        assert row["lost"] == (CONNECTIONS if row["strategy"] == "spop" else 0), row
    plot = (tmp_path / "strategies.svg").read_text()
    assert all(f">{name}</text>" in plot for name in strategies.NAMES)


def row(name, **more):
    return {"strategy": name, "sales_per_s": 100, "oversold": 0, "lost": 0, **more}


@pytest.mark.parametrize("rows, faults", [
    ([row("naive", oversold=3), row("conditional"), row("spop", lost=4)], 0),
    ([row("naive")], 1), ([row("conditional", oversold=1)], 1), ([row("origin_off", lost=1)], 1)])
def test_a_way_that_errs_otherwise_is_a_fault(rows, faults):
    assert len(list(strategies.faults_of(rows))) == faults


def test_the_round_in_the_middle_is_told_with_all_that_was_oversold():
    told = strategies.middle([row("naive", sales_per_s=n, oversold=9 - n) for n in (7, 1, 5)])
    assert (told["sales_per_s"], told["oversold"], told["rounds"]) == (5, 8, [1, 5, 7])


@pytest.mark.parametrize("ours, half_us, kept", [
    (600, 30_000, [True, True]), (599, 30_001, [False, False])])
def test_bounds_compare_medians(ours, half_us, kept):
    rows = [row("conditional"), row("origin_batch", sales_per_s=ours, half={"p99_us": half_us})]
    assert [said["kept"] for said in strategies.bounds_of(rows)] == kept
