"""How long the gateway waits for what a client owes, and what it says in the end.

The waits run side by side, from the first row on."""
import pytest

from patience import WAITS


@pytest.mark.parametrize("wait", WAITS, ids=lambda wait: wait.name)
def test_wait(patience, target, wait):
    outcome, seconds = patience[wait.name].result(timeout=30)
    assert outcome == wait.want
    assert wait.least <= seconds <= wait.most, seconds
