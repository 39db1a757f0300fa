"""The table of rows, the table of bounds, and how both are told.

A round has one value for each row and server. A row tells their median and range;
a bound compares medians, and its range is that of the ratios inside a round.
"""
import statistics
from dataclasses import dataclass

# row: (what, unit, digits)
ROWS = {
    "warm": ("flag of a sold-out sale, 100 connections × 10 streams", "µs", 2),
    "instructions": ("the same, user-space instructions", "", 0),
    "line": ("the line's 410 for that sale, likewise", "µs", 2),
    "line_flag": ("the flag in turn with it", "µs", 2),
    "poll": ("a place in a line that stands still, likewise", "µs", 2),
    "poll_flag": ("the flag in turn with it", "µs", 2),
    "single": ("flag, one request at a time, 500 connections", "µs", 2),
    "calls": ("the same, system calls", "", 2),
    "handshake": ("new connection, full TLS 1.3 handshake, one request", "µs", 0),
    "resume": ("the same with a ticket", "µs", 0),
    "accepted": ("tickets accepted", "%", 1),
    "idle": ("idle connection after one request", "KiB", 1),
    "proxy_h1": ("forwarded request, application speaks HTTP/1.1", "µs", 2),
    "proxy_h2c": ("forwarded request, sluice-origin (h2c by sluice, HTTP/1.1 by others)", "µs", 2),
}


@dataclass(frozen=True)
class Bound:
    """Sluice's `row` against a peer's, or `peer` None: against its own row `of`, or,
    `of` None too, by itself. `least`: the limit is a lower one."""
    row: str
    limit: float
    goal: float = None
    peer: str = None
    of: str = None
    least: bool = False

    @property
    def name(self):
        by = f" ÷ {self.peer}" if self.peer else f" ÷ own {self.of}" if self.of else ""
        return f"{self.row}{by}"


BOUNDS = (
    Bound("warm", 0.75, 0.65, peer="h2o"),
    Bound("warm", 0.50, peer="nghttpd"),
    Bound("warm", 0.30, peer="nginx"),
    Bound("instructions", 6500, 5000),
    Bound("line", 1.1, of="line_flag"),
    Bound("poll", 1.5, of="poll_flag"),
    Bound("single", 0.90, 0.80, peer="h2o"),
    Bound("calls", 3),
    Bound("handshake", 1.0, 0.92, peer="nginx"),
    Bound("resume", 1.0, peer="nginx"),
    Bound("resume", 0.9, 0.8, of="handshake"),
    Bound("accepted", 99, least=True),
    Bound("idle", 20, 15),
    Bound("proxy_h1", 1.0, 0.9, peer="haproxy"),
    Bound("proxy_h2c", 0.65, 0.5, peer="haproxy"),
)


def judge(bound, rounds):
    """The bound with what was measured, or None where one side was not."""
    ours = [values.get(bound.row, {}).get("sluice") for values in rounds]
    if bound.peer or bound.of:
        other = [values.get(bound.of or bound.row, {}).get(bound.peer or "sluice")
                 for values in rounds]
    else:
        other = [1] * len(rounds)
    pairs = [(a, b) for a, b in zip(ours, other) if a is not None and b]
    if not pairs:
        return None
    value = statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)
    ratios = [a / b for a, b in pairs]

    def within(limit):
        return value >= limit if bound.least else value <= limit
    return {"bound": bound.name, "value": value, "min": min(ratios), "max": max(ratios),
            "rounds": len(pairs), "limit": bound.limit, "goal": bound.goal,
            "least": bound.least, "kept": within(bound.limit),
            "goal_kept": None if bound.goal is None else within(bound.goal)}


def judgements(rounds):
    return [said for said in (judge(bound, rounds) for bound in BOUNDS) if said]


# Rows that are not set against another server's same row.
OWN = {"line": "line_flag", "poll": "poll_flag"}


def comparisons(rounds):
    """Each row of ours beside each peer's, medians; what only we have, beside our flag."""
    medians = {}
    for row in ROWS:
        names = {name for values in rounds for name in values.get(row, {})}
        medians[row] = {name: statistics.median(values[row][name] for values in rounds
                                                if name in values.get(row, {})) for name in names}
    for row, (_, unit, _) in ROWS.items():
        ours = medians[row].get("sluice")
        pairs = {"flag": medians[OWN[row]].get("sluice")} if row in OWN else medians[row]
        for peer, theirs in sorted(pairs.items()):
            if peer != "sluice" and ours is not None and theirs:
                yield {"test": row, "peer": peer, "ours": ours, "theirs": theirs,
                       "ratio": ours / theirs, "unit": unit or row}


def spread(values, digits):
    text = f"{statistics.median(values):,.{digits}f}"
    if len(values) > 1:
        text += f" ({min(values):,.{digits}f}..{max(values):,.{digits}f})"
    return text


def table_lines(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def rows_of(rounds, names):
    for row, (what, unit, digits) in ROWS.items():
        cells = [[values[row][name] for values in rounds if name in values.get(row, {})]
                 for name in names]
        if any(cells):
            yield [f"{what}: {unit}" if unit else what,
                   *(spread(cell, digits) if cell else "" for cell in cells)]


def bound_rows(rounds):
    for said in judgements(rounds):
        digits = 2 if said["limit"] < 10 else 1 if said["limit"] < 100 else 0
        word = "at least" if said["least"] else "at most"
        goal = "" if said["goal"] is None else f"{said['goal']:,}"
        verdict = "missed" if not said["kept"] else "goal" if said["goal_kept"] else "kept"
        yield [said["bound"], spread([said["value"]], digits),
               f"{said['min']:,.{digits}f}..{said['max']:,.{digits}f}",
               f"{word} {said['limit']:,}", goal, verdict]


def text(result):
    """Both tables in Markdown, under a line that says where and when."""
    machine = result["machine"]
    lines = [f"{result['date']}, {machine['cores']} cores of {machine['cpu']}, Linux "
             f"{machine['kernel']}; {len(result['rounds'])} rounds, scale {result['scale']:g}; "
             + ", ".join(result["versions"].values()), "",
             *table_lines(["what", *result["versions"]],
                          rows_of(result["rounds"], list(result["versions"])))]
    bounds = list(bound_rows(result["rounds"]))
    if bounds:
        lines += ["", *table_lines(["bound", "measured", "rounds", "limit", "goal", "verdict"], bounds)]
    return "\n".join(lines)
