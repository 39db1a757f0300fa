"""One gateway for all attacks, or one of its own for a test that needs other options."""
import pytest

from beside import ROWS, Field, beside
from run.process import free_port

STRICT = {
    "limits": {"network_strikes": 20, "network_closed": "3s", "idle": "4s",
               "max_requests_per_connection": 2000, "max_connections": 40},
    "limiter": {"network_failures_per_minute": 40},
    "origin": {"request_timeout": "500ms"}, "snapshot": {"away_after": "30s"},
    "upstreams": {"gone": {"address": f"127.0.0.1:{free_port()}"}},
    "log": {"level": "debug"},
}

@pytest.fixture(scope="session")
def field():
    made = Field()
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="session")
def strict_field():
    made = Field(**STRICT)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def strict(strict_field):
    """The gateway with little room and short patience, its good client on a new connection."""
    strict_field.befriend()
    return strict_field


@pytest.fixture
def own_field():
    """Makes fields with options of their own."""
    made = []

    def make(**options):
        made.append(Field(**options))
        return made[-1].start()
    try:
        yield make
    finally:
        for one in made:
            one.stop()


@pytest.fixture
def attack(field, request):
    with beside(field, request.node.name) as attack:
        yield attack


@pytest.fixture
def strict_attack(strict, request):
    with beside(strict, request.node.name) as attack:
        yield attack


def pytest_terminal_summary(terminalreporter):
    say = terminalreporter.write_line
    say("test | cut off | good client in ms: p99 quiet, p99 attacked, worst (answers) | growth in MiB")
    for name, noted, quiet, attacked, worst, answers, growth in ROWS:
        grown = "-" if growth is None else f"{growth:.1f}"
        said = "; ".join(dict.fromkeys(noted))
        say(f"{name} | {said} | {quiet:.1f}, {attacked:.1f}, {worst:.1f} ({answers}) | {grown}")
