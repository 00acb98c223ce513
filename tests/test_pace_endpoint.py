"""A window in front of an endpoint with slots: does it find what the endpoint carries, and come back after trouble?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eyas.engine.pace import FIRST, MOST_HOLD, MOST_PAUSE, Window

TICK = 0.25


class Endpoint:
    """An endpoint with slots behind a window: it answers at the next tick; `slots` 0 is down. One answer ends each `every` ticks."""

    def __init__(self, window: Window, slots: int, every: int = 8) -> None:
        self.window, self.slots, self.every = window, slots, every
        self.running = self.ticks = self.refused = self.most_sent = 0

    @property
    def now(self) -> float:
        """Seconds."""
        return self.ticks * TICK

    def play(self, seconds: float, hint: float | None = None) -> None:
        """Keep the window as full as it allows for so long."""
        until = self.now + seconds
        while self.now < until:
            self.tick(hint)

    def tick(self, hint: float | None) -> None:
        """What was sent is answered, an answer may end, time passes, and what has room is sent."""
        for _ in range(self.window.in_flight - self.running):
            if self.running < self.slots:
                self.running += 1
                self.window.accepted()
            else:
                self.refused += 1
                self.window.rejected(self.now, hint)
                self.window.ended(accepted=False)
        self.ticks += 1
        if self.running and self.ticks % self.every == 0:
            self.end(1)
        self.window.grow(self.now, TICK)
        before = self.window.in_flight
        while self.window.room(self.now):
            self.window.started()
        self.most_sent = max(self.most_sent, self.window.in_flight - before)

    def end(self, answers: int) -> None:
        """So many answers end."""
        self.running -= answers
        for _ in range(answers):
            self.window.ended(accepted=True)


def test_a_lone_refusal_costs_a_pause_and_not_the_window() -> None:
    """A stray 429 at a provider with room: the same window flies a few seconds later, and it goes on to grow."""
    endpoint = Endpoint(Window(FIRST, 1000), slots=10_000)
    endpoint.play(20)
    before = endpoint.window.in_flight
    endpoint.window.rejected(endpoint.now, None)
    endpoint.play(3)
    assert endpoint.window.in_flight >= before
    endpoint.play(10)
    assert endpoint.window.in_flight > before + 50


def test_what_flies_rises_slowly() -> None:
    """A window that is wide from the start is not filled at once."""
    endpoint = Endpoint(Window(600, 600), slots=600)
    endpoint.play(30)
    assert endpoint.running >= 595
    assert endpoint.most_sent <= FIRST


def test_an_outage_does_not_shrink_the_window() -> None:
    """While nothing is let in, refusals say nothing of the size: the window is as wide afterwards, and few were refused."""
    endpoint = Endpoint(Window(FIRST, 2000), slots=600)
    endpoint.play(120)
    assert endpoint.running >= 590
    endpoint.slots, endpoint.refused = 0, 0
    endpoint.end(endpoint.running)
    endpoint.play(300)
    assert endpoint.window.limit >= 590
    assert endpoint.refused <= 300 / MOST_PAUSE + 2 * FIRST
    endpoint.slots = 600
    endpoint.play(MOST_PAUSE + 20)
    assert endpoint.running >= 540


@given(
    slots=st.integers(3, 700),
    later=st.integers(3, 700),
    most=st.integers(20, 800),
    every=st.integers(2, 40),
    hint=st.none() | st.floats(0, 10),
)
def test_it_regrows_to_what_is_carried(slots: int, later: int, most: int, every: int, hint: float | None) -> None:
    """After troubles of every kind the window finds what the endpoint carries then, however much that is, and stays there."""
    endpoint = Endpoint(Window(min(FIRST, most), most), slots, every)
    endpoint.play(40, hint)
    endpoint.slots = 0
    endpoint.play(30, hint)
    endpoint.slots = later
    # Answers that run beyond the new slots end first, one each few ticks.
    endpoint.play(120 + max(0, endpoint.running - later) * every * TICK, hint)
    carries = min(later, most)
    # While a pause lasts, the slots of answers that end stand empty.
    gone = (max(hint or 0, MOST_PAUSE) + 1) / (every * TICK)
    assert endpoint.running >= 0.9 * carries - gone - 1
    assert endpoint.running <= carries


def test_a_window_that_is_full_is_felt_for_rarely() -> None:
    """At an endpoint that carries 300, about one in so many seconds is refused, and the window moves by a few only."""
    endpoint = Endpoint(Window(FIRST, 2000), slots=300)
    endpoint.play(120)
    endpoint.refused = 0
    limits: list[float] = []
    for _ in range(300):
        endpoint.play(1.0)
        limits.append(endpoint.window.limit)
    assert endpoint.refused <= 2 * 300 / MOST_HOLD
    assert 295 <= min(limits) <= max(limits) <= 310
