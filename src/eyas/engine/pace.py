"""How many may fly, by endpoint. Pure: the clock is handed in as `now` (seconds, monotonic).

A window an endpoint, and one for the account. A refusal pauses a window (Retry-After, or a doubling half second) and, once an
epoch, cuts it to what the endpoint carries. After a pause one probe goes first. A window that is used grows again, by 1, 2, 4 …
a second, and waits the longer for it the more often it was refused at the same place. What flies never jumps: it rises by a
share of the window a second. What each of these earns is measured by bench/pace.py and stands in docs/pace.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

FLOOR = 1
FIRST = 30
"""Requests: the least that a cut leaves, and an endpoint's window at the beginning."""
EPOCH = 5.0
"""Seconds within which a window is cut once at most; what it carried is remembered for one to two of them."""
FIRST_HOLD = 2.0
MOST_HOLD = 14.0
"""Seconds from a cut until a window grows: at first, and where it is refused again and again."""
STEP = 1.0
"""Seconds from one step of growth to the next: most refusals of the first are back before the second."""
RISE = 0.06
LEAST_RISE = 30.0
"""How fast a window, and what flies in it, may rise: a share of the window a second, or so many a second if that is more."""
LEEWAY = 5
LEEWAY_SHARE = 0.01
"""By how much what flies may rise within a tick: so many requests, or that share of the window if that is more."""
BACK = 3.0
"""Each refusal divides the next step of growth by this: one alone slows growth down, a burst has it begin with 1 again."""
USED = 0.8
"""Share of a window that flies where it may grow."""
NEAR = 0.02
LEAST_NEAR = 10.0
"""Two cuts were at the same place if they differ by less than this share of the window, or by fewer than so many requests."""
FIRST_PAUSE = 0.5
MOST_PAUSE = 5.0
"""Seconds of a pause without Retry-After: the first, and after many probes that were refused."""
PATIENCE = 5.0
"""Seconds after which a probe that was neither let in nor refused is followed by another."""
MOST_MISSERVED = 3
NEVER = -1e9


@dataclass(slots=True)
class Shown:
    """What a window has shown that it carries: the most requests within the last one to two epochs."""

    lately: float = 0.0
    before: float = 0.0
    turned: float = NEVER

    @property
    def most(self) -> float:
        """The most of both."""
        return max(self.lately, self.before)

    def saw(self, carried: float) -> None:
        """So many are carried now."""
        self.lately = max(self.lately, carried)

    def turn(self, now: float) -> None:
        """Forget what is older than two epochs."""
        if now >= self.turned + EPOCH:
            self.before, self.lately, self.turned = self.lately, 0.0, now


@dataclass(slots=True)
class Window:
    """One endpoint's (or the account's) window: `limit` requests may fly, FLOOR to `most`; `ceiling` of them until the next tick.

    `carried` counts requests that were accepted and still run, `fresh` those that were sent in the last second or two.
    `probing`: one request goes first, and nothing more until it is let in; `probed` is when it was sent. `heard`: something was
    accepted since the last cut. `cut_to` is the limit that the last cut left, `stepped` the time of the last step of growth.
    `part` is the share of an endpoint that is this window's, where others ask it too: it feels its way up by so much of a step.
    """

    limit: float
    most: int
    ceiling: float = FIRST
    in_flight: int = 0
    carried: int = 0
    fresh: float = 0.0
    shown: Shown = field(default_factory=Shown)
    paused_until: float = 0.0
    pause: float = FIRST_PAUSE
    probing: bool = False
    probed: float | None = None
    heard: bool = False
    last_cut: float = NEVER
    cut_to: float = 0.0
    hold: float = 0.0
    step: float = LEAST_RISE
    stepped: float = NEVER
    clock: float = 0.0
    part: float = 1.0
    misserved: int = 0
    aside: str = ""
    for_good: bool = False

    def room(self, now: float) -> bool:
        """Whether one more may start now."""
        self.clock = now
        if self.aside or now < self.paused_until:
            return False
        if self.probing:
            return self.in_flight < self.most and self._may_probe(now)
        return self.in_flight < int(min(self.limit, self.ceiling))

    def _may_probe(self, now: float) -> bool:
        # Without streaming the headers come with the end, so there is always something that was not heard of.
        return self.probed is None or self.in_flight == self.carried or now >= self.probed + PATIENCE

    def started(self) -> None:
        """A request was sent."""
        self.in_flight += 1
        self.fresh += 1
        if self.probing:
            self.probed = self.clock

    def accepted(self) -> None:
        """Its headers came with status 200."""
        self.carried += 1
        self.pause = FIRST_PAUSE
        self.heard = True
        self._look()
        if self.probing:
            self.probing, self.probed = False, None
            self.ceiling = self.in_flight + self._leeway()

    def ended(self, *, accepted: bool) -> None:
        """It ended. Where many end at once, most likely by an outage, not as many start at once."""
        self.in_flight -= 1
        self.carried -= accepted
        self.ceiling = min(self.ceiling, self.in_flight + self._leeway())

    def rejected(self, now: float, retry_after: float | None) -> None:
        """It was refused for want of room: 429, 503, or the account's in-flight budget."""
        self.clock = now
        if self.probed is not None and retry_after is None:
            self.pause = min(2 * self.pause, MOST_PAUSE)
        self.probing, self.probed = True, None
        self.paused_until = max(self.paused_until, now + (self.pause if retry_after is None else retry_after))
        self.step = max(1.0, self.step / BACK)
        # Where nothing was let in since the last cut, a refusal says that the endpoint is away, not how much it carries.
        if self.heard and now >= self.last_cut + EPOCH:
            self._cut(now)

    def _cut(self, now: float) -> None:
        carries = max(FLOOR, self.shown.most)
        near = max(LEAST_NEAR, NEAR * self.limit)
        again = self.limit - self.cut_to < near and self.cut_to - carries < near
        self.hold = min(MOST_HOLD, max(EPOCH, 2 * self.hold)) if again else FIRST_HOLD
        self.limit = self.cut_to = min(self.limit, carries)
        self.last_cut, self.heard = now, False

    def grow(self, now: float, seconds: float) -> None:
        """Time passed; a window that is used grows."""
        self.clock = now
        self.fresh *= 0.5**seconds
        self.shown.turn(now)
        if self.heard:
            self._look()
        self.ceiling = max(min(self.ceiling, self.limit), self.in_flight + 1 + self._rise() * seconds)
        if self.probing or now < self.last_cut + self.hold:
            self.stepped = now
        elif now >= self.stepped + STEP and self.in_flight >= USED * self.limit:
            self.limit = min(self.most, self.limit + self.step)
            self.step = min(2 * self.step, self._rise())
            self.stepped = now

    def resize(self, most: int) -> None:
        """The run's limit is another one now; a window below it grows as ever."""
        self.limit, self.most = min(self.limit, most), most

    def _leeway(self) -> float:
        return max(LEEWAY, LEEWAY_SHARE * self.limit)

    def _rise(self) -> float:
        return max(LEAST_RISE * self.part, RISE * self.limit)

    def _look(self) -> None:
        # What has flown for long and was not refused is carried, whether or not its headers came.
        self.shown.saw(max(self.carried, self.in_flight - self.fresh))


def _nobody(_tag: str, _retry_after: float | None) -> None:
    """Nobody else asks."""


@dataclass(slots=True)
class Pace:
    """All windows of a run: one an endpoint tag, and one for the account. `most` is the run's limit, see `resize`.

    `part` is the share of every endpoint that is this process's, where others of the run ask it too; `heard` gets what it is refused
    (a tag, empty for the account, and Retry-After).
    """

    most: int
    part: float = 1.0
    heard: Callable[[str, float | None], None] = _nobody
    account: Window = field(init=False)
    endpoints: dict[str, Window] = field(default_factory=dict[str, Window])

    def __post_init__(self) -> None:
        # The account's own limit is not known, and its endpoints' windows are felt for one by one: it starts whole.
        self.account = Window(self.most, self.most, ceiling=self.most)

    def resize(self, most: int) -> None:
        """At most so many may fly from now on (1 or more). What flies above it is left to end."""
        whole = self.account.limit >= self.most
        self.most = most
        for window in (self.account, *self.endpoints.values()):
            window.resize(most)
        if whole:
            self.account.limit = most

    def window(self, tag: str) -> Window:
        """The window of an endpoint."""
        found = self.endpoints.get(tag)
        if found is None:
            first = min(max(FLOOR, FIRST * self.part), self.most)
            found = self.endpoints[tag] = Window(first, self.most, first, step=LEAST_RISE * self.part, part=self.part)
        return found

    def rejected(self, tag: str, now: float, retry_after: float | None) -> None:
        """A request to that endpoint (empty: the account) was refused for want of room."""
        self.refused_elsewhere(tag, now, retry_after)
        self.heard(tag, retry_after)

    def refused_elsewhere(self, tag: str, now: float, retry_after: float | None) -> None:
        """The same, of another process of the run: what the endpoint carries is less for this one too."""
        (self.window(tag) if tag else self.account).rejected(now, retry_after)

    def bound(self, tag: str, slots: int) -> None:
        """A server of the user's answers so many at once: a few more wait there, so that none of its slots is ever idle."""
        most = min(self.most, slots + max(2, slots // 8))
        self.endpoints[tag] = Window(most, most, ceiling=most)

    def room(self, tag: str, now: float) -> bool:
        """Whether a request to that endpoint may start now."""
        return self.account.room(now) and self.window(tag).room(now)

    def started(self, tag: str) -> None:
        """A request to that endpoint was sent."""
        self.account.started()
        self.window(tag).started()

    def accepted(self, tag: str) -> None:
        """Its headers came with status 200."""
        self.account.accepted()
        self.window(tag).accepted()

    def ended(self, tag: str, *, accepted: bool) -> None:
        """It ended."""
        self.account.ended(accepted=accepted)
        self.window(tag).ended(accepted=accepted)

    def misserved(self, tag: str) -> str:
        """An answer came from elsewhere or in the wrong mode; three of them set the endpoint aside. Gives why, if it is news."""
        window = self.window(tag)
        window.misserved += 1
        if window.misserved < MOST_MISSERVED:
            return ""
        return self.set_aside(tag, f"{MOST_MISSERVED} answers came from elsewhere or in the wrong mode")

    def set_aside(self, tag: str, reason: str, *, for_good: bool = True) -> str:
        """Ask that endpoint no more in this session, or (not `for_good`) until it is taken back. Gives the reason, if it is news."""
        window = self.window(tag)
        fresh = not window.aside
        window.aside = reason
        window.for_good |= for_good
        return reason if fresh else ""

    def take_back(self, tag: str) -> None:
        """Ask that endpoint again, unless it was set aside for good."""
        window = self.window(tag)
        if not window.for_good:
            window.aside = ""

    def grow(self, now: float, seconds: float) -> None:
        """Time passed."""
        for window in (self.account, *self.endpoints.values()):
            window.grow(now, seconds)

    def next_room(self, now: float) -> float | None:
        """The next moment at which a pause ends; None if nothing is paused."""
        ends = [
            w.paused_until for w in (self.account, *self.endpoints.values()) if w.paused_until > now and not w.aside
        ]
        return min(ends, default=None)
