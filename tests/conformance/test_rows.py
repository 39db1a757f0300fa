"""Every row of the tables, against the gateway."""
import pytest

import blocks
import connection
import frames
import malformed
import messages
import streams
from run.process import wait_until

ROWS = (connection.ROWS + streams.ROWS + frames.ROWS + messages.ROWS + blocks.ROWS
        + malformed.ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(target, row):
    outcome, talk = row.play(target)
    assert outcome == row.want
    if row.check:
        row.check(talk)


@pytest.mark.parametrize("row", malformed.FORWARDED, ids=lambda row: row.name)
def test_what_an_application_gets(target, gateway, row):
    before = len(gateway.upstream.seen)
    outcome, _ = row.play(target)
    assert outcome == row.want
    (head, body), = gateway.upstream.seen[before:]
    assert body == b"body" and head[":method"] == "POST" and head[":path"] == target.sink
    assert {name: head.get(name) for name in row.kept} == row.kept
    assert not [name for name in row.gone if name in head], head
    assert not [name for name, value in head.items() if "6.6.6.6" in value
                or "evil" in value or "_" in name], head


def test_nothing_malformed_reaches_an_application(target, gateway):
    """Each with a body, to be sent on; the one good request behind them comes alone."""
    before = len(gateway.upstream.seen)
    rows = [row for row in messages.LENGTHS + messages.TRAILERS
            if row.want == {1: messages.MALFORMED}]
    assert len(rows) > 20
    for row in rows:
        row.play(target)
    good = malformed.FORWARDED[0]
    good.play(target)
    wait_until(lambda: len(gateway.upstream.seen) > before, 5, "the good request")
    assert len(gateway.upstream.seen) == before + 1, gateway.upstream.seen[before:]


def test_names_are_told_apart():
    names = [row.name for row in ROWS]
    assert sorted(set(names)) == sorted(names)
