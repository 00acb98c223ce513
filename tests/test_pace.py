"""How many may fly: cuts, pauses, probes, growth, endpoints set aside; counters never go wrong."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from eyas.engine.pace import (
    EPOCH,
    FIRST,
    FIRST_HOLD,
    FLOOR,
    LEEWAY,
    LEEWAY_SHARE,
    MOST_HOLD,
    MOST_PAUSE,
    PATIENCE,
    USED,
    Pace,
    Window,
)

MOMENTS = st.floats(0, 60, allow_nan=False)
HINTS = st.none() | st.floats(0, 120)


def full(limit: int = 100, carried: int | None = None) -> Window:
    """A window with as much in flight as it allows, some of it (without a number: all) accepted."""
    window = Window(limit, limit, ceiling=limit)
    for number in range(limit):
        window.started()
        if number < (limit if carried is None else carried):
            window.accepted()
    return window


@given(st.lists(st.tuples(MOMENTS, HINTS, st.booleans()), max_size=60))
def test_a_window_is_cut_once_an_epoch_at_most(refusals: list[tuple[float, float | None, bool]]) -> None:
    """However many are refused, and whatever is accepted between: between two cuts lies an epoch."""
    window = full(100, carried=60)
    cuts: list[float] = []
    for at, hint, accepted in sorted(refusals, key=lambda each: each[0]):
        if accepted:
            window.accepted()
        before = window.last_cut
        window.rejected(at, hint)
        if window.last_cut != before:
            cuts.append(at)
    assert all(later >= sooner + EPOCH for sooner, later in pairwise(cuts))


@given(st.lists(st.tuples(MOMENTS, st.floats(0, 120)), min_size=1, max_size=20), st.floats(0, 1, exclude_max=True))
def test_no_pause_is_shorter_than_retry_after(refusals: list[tuple[float, float]], share: float) -> None:
    """Whatever else is refused, accepted or hinted at: before Retry-After is over nothing starts."""
    window = full(50)
    until = 0.0
    for at, hint in sorted(refusals):
        window.rejected(at, hint)
        window.accepted()
        until = max(until, at + hint)
        assert window.paused_until == until
        assert not window.room(at + (until - at) * share * 0.999) or until == at
    window.ended(accepted=True)
    assert window.room(until)


@given(st.integers(1, 3000), st.integers(0, 3000))
def test_a_cut_goes_to_what_is_carried(limit: int, carried: int) -> None:
    """The window stays at what the endpoint has just shown that it can, and where nothing was accepted it is not cut at all."""
    window = full(limit, min(carried, limit))
    window.rejected(0.0, None)
    assert window.limit == (min(carried, limit) or limit)


def test_what_was_carried_a_moment_ago_counts() -> None:
    """Answers that end together, by an outage say, are no reason to cut the window to nothing."""
    window = full(100)
    window.grow(1.0, 0.25)
    for _ in range(100):
        window.ended(accepted=True)
    window.started()
    window.rejected(1.1, None)
    assert window.limit == 100


def test_without_streaming_what_flies_for_long_is_carried() -> None:
    """Headers that come with the end are no reason to cut a window to nothing."""
    window = full(100, carried=0)
    for second in range(8):
        window.grow(float(second), 1.0)
    window.accepted()
    window.ended(accepted=True)
    window.rejected(8.0, None)
    assert 95 <= window.limit <= 100


def test_a_pause_without_a_hint_doubles() -> None:
    """Half a second, doubled by each probe that is refused, five seconds at most; an acceptance resets it."""
    window = full(10)
    window.rejected(0.0, None)
    window.rejected(0.1, None)
    assert window.paused_until == 0.6, "what was sent before the pause doubles nothing"
    for _ in range(10):
        window.ended(accepted=True)
    pauses: list[float] = []
    for _ in range(6):
        at = window.paused_until
        assert window.room(at)
        window.started()
        window.rejected(at, None)
        window.ended(accepted=False)
        pauses.append(round(window.paused_until - at, 6))
    assert pauses == [1, 2, 4, MOST_PAUSE, MOST_PAUSE, MOST_PAUSE]
    window.started()
    window.accepted()
    window.rejected(9000.0, None)
    assert window.paused_until == 9000.5


@given(st.lists(st.sampled_from(["refuse", "lose", "wait"]), max_size=40), HINTS)
def test_one_probe_at_a_time(steps: list[str], hint: float | None) -> None:
    """After a refusal one request goes first, until one is let in; only one that is not heard of for long is followed by another."""
    window = full(50)
    window.resize(1000)
    window.rejected(0.0, hint)
    now, sent = window.paused_until, 0
    for step in steps:
        if window.room(now):
            window.started()
            sent += 1
        assert not window.room(now)
        assert window.in_flight == 50 + sent
        if step == "refuse" and sent:
            window.rejected(now, hint)
            window.ended(accepted=False)
            sent, now = sent - 1, window.paused_until
        elif step == "lose" and sent:
            for _ in range(sent):
                window.ended(accepted=False)
            sent = 0
        elif step == "wait":
            now += PATIENCE
    if sent == 0:
        assert window.room(now)
        window.started()
    window.accepted()
    for _ in range(10):
        window.ended(accepted=True)
    assert window.room(now), "it was let in: the others follow"


def test_a_window_that_is_not_used_does_not_grow() -> None:
    """Nothing is learned of an endpoint's room where less flies than may."""
    idle = Window(50, 100, in_flight=int(50 * USED) - 1)
    for second in range(1000):
        idle.grow(float(second), 1.0)
    assert idle.limit == 50


def test_what_flies_never_jumps() -> None:
    """Where many answers end at once not as many start at once; one that ends is replaced at once."""
    window = full(600)
    window.grow(1.0, 0.25)
    window.ended(accepted=True)
    assert window.room(1.0)
    for _ in range(500):
        window.ended(accepted=True)
    sent = 0
    while window.room(1.0):
        window.started()
        sent += 1
    assert LEEWAY <= sent <= LEEWAY_SHARE * 600 + 1


def test_growth_waits_longer_where_it_is_refused_again() -> None:
    """The first wait is short; refused at the same place again and again, it doubles to the longest."""
    window, now = full(100), 0.0
    holds: list[float] = []
    for _ in range(5):
        window.accepted()
        window.rejected(now, None)
        window.ended(accepted=True)
        holds.append(window.hold)
        now += 20
    assert holds == [FIRST_HOLD, EPOCH, 2 * EPOCH, MOST_HOLD, MOST_HOLD]


@pytest.mark.parametrize(("most", "limits"), [(500, (500, FIRST)), (10, (10, 10)), (5000, (5000, FIRST))])
def test_the_runs_limit_may_change(most: int, limits: tuple[int, int]) -> None:
    """A smaller limit holds from the next request on; a larger one is the account's at once, and an endpoint's by growth."""
    pace = Pace(2000)
    for _ in range(20):
        pace.started("a")
        pace.accepted("a")
    pace.resize(most)
    assert (pace.most, pace.account.limit, pace.window("a").limit) == (most, *limits)
    assert pace.room("a", 1.0) == (most > 20)
    pace.account.limit = 7
    pace.resize(most + 1)
    assert pace.account.limit == 7, "an account that was cut grows by itself"


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


def test_the_accounts_probe_is_one_for_all() -> None:
    """After a 402 of the in-flight budget one request goes first, wherever it goes."""
    pace = Pace(100)
    pace.account.rejected(0.0, 2.0)
    assert pace.room("a", 2.0)
    pace.started("a")
    assert not pace.room("b", 2.0)
    pace.accepted("a")
    assert pace.room("b", 2.0)


class Traffic(RuleBasedStateMachine):
    """Requests to two endpoints start, are accepted or rejected, and end, while the clock goes on and the limit changes."""

    def __init__(self) -> None:
        super().__init__()
        self.pace = Pace(20)
        self.now = 0.0
        self.flying: list[tuple[str, bool]] = []

    @rule(tag=st.sampled_from("ab"))
    def start(self, tag: str) -> None:
        """One more, where there is room."""
        if self.pace.room(tag, self.now):
            assert len(self.flying) < self.pace.most
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

    @rule(most=st.integers(1, 60))
    def resize(self, most: int) -> None:
        """The user changes the run's limit."""
        self.pace.resize(most)

    @invariant()
    def counters_are_right(self) -> None:
        """Counts are those of what flies, windows stay within the run's limit, and room comes back by itself."""
        windows = {tag: self.pace.window(tag) for tag in "ab"}
        for tag, window in windows.items():
            mine = [accepted for each, accepted in self.flying if each == tag]
            assert (window.in_flight, window.carried) == (len(mine), sum(mine))
        assert self.pace.account.in_flight == len(self.flying)
        assert self.pace.account.carried == sum(w.carried for w in windows.values())
        for window in (self.pace.account, *windows.values()):
            assert FLOOR <= window.limit <= self.pace.most == window.most
            assert window.paused_until <= self.now + 10
        if not self.flying:
            assert self.pace.room("a", self.now + 10)


TestTraffic = Traffic.TestCase
