"""How many may fly: cuts, pauses, growth, endpoints set aside; counters never go wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from eyas.engine.pace import EPOCH, FLOOR, MOST_PAUSE, Pace, Window


def full(limit: int = 100, carried: int = 0) -> Window:
    """A window with as much in flight as it allows, some of it accepted."""
    window = Window(limit, limit)
    for number in range(limit):
        window.started()
        if number < carried:
            window.accepted()
    return window


def test_one_cut_an_epoch() -> None:
    """A burst of rejections cuts once; after an epoch the next one may cut again."""
    window = full(100, carried=80)
    for _ in range(50):
        window.rejected(10.0, 1.0)
    assert window.limit == 80
    for _ in range(60):
        window.ended(accepted=True)
    window.rejected(10.0 + EPOCH - 0.01, 1.0)
    assert window.limit == 80
    window.rejected(10.0 + EPOCH, 1.0)
    assert window.limit == 20, "20 are carried, of 40 in flight"


@given(st.integers(1, 3000), st.integers(0, 3000))
def test_a_cut_never_goes_below_what_is_carried_or_half_of_what_flies(limit: int, carried: int) -> None:
    """The window stays at what the endpoint shows that it can, half of what flies, or the floor."""
    window = full(limit, min(carried, limit))
    window.rejected(0.0, None)
    assert window.limit <= limit
    assert window.limit >= min(limit, max(FLOOR, min(carried, limit), limit / 2))


def test_a_pause_is_what_retry_after_says_or_doubles() -> None:
    """Retry-After rules; without it half a second doubles an epoch, to half a minute, and an acceptance resets it."""
    window = Window(10, 10)
    window.rejected(0.0, 7.0)
    assert not window.room(6.9)
    assert window.room(7.0)
    window.rejected(1.0, 0.5)
    assert not window.room(6.9), "a shorter hint does not end a longer pause"
    pauses = []
    for epoch in range(2, 12):
        at = epoch * 100.0
        window.rejected(at, None)
        pauses.append(window.paused_until - at)
    assert pauses == [1, 2, 4, 8, 16, MOST_PAUSE, MOST_PAUSE, MOST_PAUSE, MOST_PAUSE, MOST_PAUSE]
    window.accepted()
    window.rejected(9000.0, None)
    assert window.paused_until == 9001.0


def test_a_used_window_grows_back_and_an_idle_one_does_not() -> None:
    """After a cut it grows only when an epoch was quiet, faster with each, and never above the run's limit."""
    window = full(100, carried=20)
    window.rejected(0.0, 0.0)
    assert window.limit == 50
    window.grow(EPOCH - 0.1, 1.0)
    assert window.limit == 50
    window.grow(EPOCH, 1.0)
    first = window.limit - 50
    assert first == pytest.approx(1.0)
    before = window.limit
    window.grow(EPOCH * 4, 1.0)
    assert window.limit - before > 4 * first
    for _ in range(100):
        window.grow(EPOCH * 9, 1.0)
    assert window.limit == 100
    idle = Window(50, 100, in_flight=3)
    idle.grow(1000.0, 100.0)
    assert idle.limit == 50


def test_three_misserved_answers_set_an_endpoint_aside() -> None:
    """Only that endpoint: others go on, and pauses of one set aside are not waited for."""
    pace = Pace(10)
    pace.misserved("a")
    pace.misserved("a")
    assert pace.room("a", 0.0)
    pace.misserved("a")
    assert not pace.room("a", 1e9)
    assert pace.window("a").aside
    assert pace.room("b", 0.0)
    pace.window("a").rejected(0.0, 100.0)
    assert pace.next_room(0.0) is None
    pace.window("b").rejected(0.0, 5.0)
    pace.account.rejected(0.0, 2.0)
    assert pace.next_room(0.0) == 2.0
    assert not pace.room("c", 1.0), "the account's pause holds everywhere"
    pace.set_aside("b", "404")
    assert pace.next_room(3.0) is None


class Traffic(RuleBasedStateMachine):
    """Requests to two endpoints start, are accepted or rejected, and end, while the clock goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.pace = Pace(20)
        self.now = 0.0
        self.flying: list[tuple[str, bool]] = []

    @rule(tag=st.sampled_from("ab"))
    def start(self, tag: str) -> None:
        """One more, where there is room."""
        if self.pace.room(tag, self.now):
            self.pace.started(tag)
            self.flying.append((tag, False))

    @precondition(lambda self: any(not accepted for _, accepted in self.flying))
    @rule()
    def accept(self) -> None:
        """The oldest that waits for its headers gets them."""
        place = next(n for n, (_, accepted) in enumerate(self.flying) if not accepted)
        tag = self.flying[place][0]
        self.flying[place] = (tag, True)
        self.pace.accepted(tag)

    @precondition(lambda self: self.flying)
    @rule(hint=st.none() | st.floats(0, 10), account=st.booleans(), data=st.data())
    def end(self, hint: float | None, account: bool, data: st.DataObject) -> None:
        """One ends; one without headers was rejected."""
        tag, accepted = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        if not accepted:
            (self.pace.account if account else self.pace.window(tag)).rejected(self.now, hint)
        self.pace.ended(tag, accepted=accepted)

    @rule(seconds=st.floats(0.01, 60))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds
        self.pace.grow(self.now, seconds)

    @invariant()
    def counters_are_right(self) -> None:
        """Counts are those of what flies, windows stay within the run's limit, and room comes back by itself."""
        windows = {tag: self.pace.window(tag) for tag in "ab"}
        for tag, window in windows.items():
            mine = [accepted for each, accepted in self.flying if each == tag]
            assert (window.in_flight, window.carried) == (len(mine), sum(mine))
        assert self.pace.account.in_flight == len(self.flying) <= 20
        assert self.pace.account.carried == sum(w.carried for w in windows.values())
        for window in (self.pace.account, *windows.values()):
            assert FLOOR <= window.limit <= 20
            assert window.paused_until <= self.now + MOST_PAUSE
        if not self.flying:
            assert self.pace.room("a", self.now + MOST_PAUSE)


TestTraffic = Traffic.TestCase
