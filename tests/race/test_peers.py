"""The comparison with other servers runs, judges, and leaves nothing behind.
What it measures is not looked at: a test machine is no place for that."""
import glob
import json
import os
import subprocess
import sys

import pytest

from conftest import PROGRAMS
from run.stack import ROOT

sys.path.insert(0, os.path.join(ROOT, "loadgen/peers"))
import main as peers  # noqa: E402
import report  # noqa: E402
from run.process import Failed  # noqa: E402

COMPARE = os.path.join(ROOT, "loadgen/peers/compare")


def run(*words, seconds=240):
    """Ended politely when it takes too long, so that it takes its servers with it."""
    child = subprocess.Popen([COMPARE, *words], stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, errors = child.communicate(timeout=seconds)
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait(60)
    return subprocess.CompletedProcess(words, child.returncode, output, errors)


def leftovers():
    """Folders of the comparison, and processes that were started with a file in one."""
    found = set(glob.glob("/var/tmp/sluice-run-peers-*"))
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().decode(errors="replace")
        except OSError:
            continue
        if "sluice-run-peers-" in words or "/run-peers/" in words:
            found.add(words)
    return found


def test_small_comparison_fills_every_row(tmp_path):
    before, saved = leftovers(), tmp_path / "rounds.json"
    done = run("--build", PROGRAMS, "--targets", "sluice,nghttpd", "--rounds", "1", "--scale",
               "0.003", "--json", "--save", str(saved), "--tests",
               "warm,line,poll,handshake,proxy_h2c,idle,calls")
    assert done.returncode == 0, done.stderr
    result = json.loads(saved.read_text())
    assert result["faults"] == []
    (values,) = result["rounds"]
    both, ours = {"sluice", "nghttpd"}, {"sluice"}
    assert {row: set(by_name) for row, by_name in values.items()} == {
        "warm": both, "line": ours, "line_flag": ours, "poll": ours, "poll_flag": ours,
        "handshake": both, "resume": both, "accepted": both, "proxy_h2c": ours,
        "idle": both, "calls": both}
    assert values["accepted"]["sluice"] == 100
    assert 1 < values["calls"]["sluice"] < 20
    assert "warm ÷ nghttpd" in [said["bound"] for said in result["bounds"]]
    assert report.ROWS["warm"][0] in done.stderr
    check_comparisons(json.loads(done.stdout), values)
    assert leftovers() == before


def check_comparisons(told, values):
    """The array for programs: each of our rows beside each peer's."""
    pairs = {"line": "flag", "poll": "flag", **{row: "nghttpd" for row in (
        "warm", "handshake", "resume", "accepted", "idle", "calls")}}
    assert {said["test"]: said["peer"] for said in told} == pairs and len(told) == len(pairs)
    for said in told:
        assert set(said) == {"test", "peer", "ours", "theirs", "ratio", "unit"}
        assert said["ours"] == values[said["test"]]["sluice"]
        assert said["ratio"] == said["ours"] / said["theirs"] and said["unit"]


@pytest.mark.parametrize("words, why", [
    (["--tests", "warm,cold"], "no cold"), (["--targets", "apache"], "no apache"),
    (["--rounds", "0"], "--rounds"), (["--scale", "0"], "--scale")])
def test_wrong_words_are_refused(words, why):
    done = run(*words)
    assert done.returncode == 2 and why in done.stderr and not done.stdout


def test_missing_program_is_named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["compare", "--tests", "warm", "--targets", "sluice,h2o"])
    monkeypatch.setattr(peers.shutil, "which", lambda word: None if word == "h2o" else word)
    with pytest.raises(Failed, match="missing: h2o;.*conf/packages peers"):
        peers.check_programs(peers.arguments())


def told(rounds, *more, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({
        "date": "2030-01-01", "machine": {"cores": 2, "cpu": "a machine", "kernel": "6"},
        "scale": 1, "versions": {"sluice": "sluice 1", "h2o": "h2o 2"}, "rounds": rounds,
        "faults": []}))
    return run("--read", str(path), *more)


@pytest.mark.parametrize("h2o, code, verdict", [(4.1, 0, "kept"), (3.9, 1, "missed"), (5, 0, "goal")])
def test_check_fails_when_a_bound_is_missed(h2o, code, verdict, tmp_path):
    rounds = [{"warm": {"sluice": 3.0, "h2o": value}} for value in (9, h2o, 1)]
    done = told(rounds, "--check", tmp_path=tmp_path)
    assert done.returncode == code, done.stdout
    assert f"| {verdict} |" in done.stdout
    assert told(rounds, tmp_path=tmp_path).returncode == 0


def test_bound_compares_medians_and_tells_the_range_of_rounds():
    rounds = [{"warm": {"sluice": a, "h2o": b}} for a, b in ((2, 4), (3, 5), (8, 5))]
    (said,) = report.judgements(rounds)
    assert (said["value"], said["min"], said["max"]) == (3 / 5, 0.5, 1.6)


def test_lower_limit_of_accepted_tickets():
    verdicts = [report.judgements([{"accepted": {"sluice": share}}])[0]["kept"]
                for share in (98.9, 99, 100)]
    assert verdicts == [False, True, True]
