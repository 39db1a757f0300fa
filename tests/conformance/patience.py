"""Clients that stop in the middle: each a row that ends by time alone."""
import time

import wire
from rows import Over, Row, big, began, post, request


class Wait(Row):
    """A row whose end comes after `least` to `most` seconds."""

    def __init__(self, section, title, steps, want, least, most, **more):
        super().__init__(section, title, steps, want, probe=None, **more)
        self.least, self.most = least, most

    def settle(self, talk):
        awaited = self.want.keys() - {0}
        talk.flush()
        deadline = time.monotonic() + self.most + 3
        while not talk.is_closed and not (awaited and all(
                talk.stream(number).reset is not None for number in awaited)):
            if not talk.read(deadline):
                break

    def run(self, target):
        """(outcome, seconds)."""
        before = time.monotonic()
        talk = self.talk(target)
        try:
            if self.opening:
                talk.open()
            talk.play(self.steps)
            self.settle(talk)
        except Over:
            talk.wait_closed()
        seconds = time.monotonic() - before
        outcome = talk.outcome(None)
        if outcome.get(0) == "silent":  # nobody asked
            del outcome[0]
        talk.close()
        return outcome, seconds


def drip(talk):
    """A byte of window every second is no progress."""
    for _ in range(12):
        talk.send(wire.window(1, 1))
        if talk.wait(lambda: talk.stream(1).is_over, 1):
            return


GONE = "goaway NO_ERROR"
WAITS = [
    Wait("3.4", "no preface", [], GONE, 4, 8, opening=False),
    Wait("3.4", "half a preface", [wire.PREFACE[:12]], GONE, 4, 8, opening=False),
    Wait("3.4", "no SETTINGS behind the preface", [wire.PREFACE], GONE, 4, 8, opening=False),
    Wait("6.5.3", "SETTINGS never acknowledged", [wire.PREFACE, wire.settings()],
         "goaway SETTINGS_TIMEOUT", 9, 13, opening=False, acknowledge=False),
    Wait("6.2", "half a HEADERS", [lambda talk: request()(talk)[:20]], GONE, 4, 8),
    Wait("6.10", "no CONTINUATION", [request(end_headers=False)], GONE, 4, 8),
    Wait("8.1", "a body that never comes", [post()], {1: "408 reset NO_ERROR"}, 9, 14),
    Wait("8.1", "a body that never ends", [post(), wire.data(1, b"x")],
         {1: "408 reset NO_ERROR"}, 9, 14),
    Wait("6.9", "no window for the answer",
         [wire.settings((wire.INITIAL_WINDOW, 0)), request(), began()],
         {1: "200 reset CANCEL"}, 4, 9),
    Wait("6.9", "an answer whose window drips",
         [wire.settings((wire.INITIAL_WINDOW, 0)), big(), began(), drip],
         {1: "200 reset CANCEL"}, 4, 9),
]
