"""How many may fly, by endpoint. Pure: the clock is handed in as `now` (seconds, monotonic).

The simplest controller that holds: an endpoint's window starts at the run's whole limit; a rejection pauses it
(Retry-After, or a doubling half second) and, once an epoch, sets the window to what the endpoint carries at that moment,
which is what it has just shown that it can, but never cuts more than half of what flies. A used window grows again, by 2 %
a second at first and twice as fast after each epoch without a rejection. A stray 429 so costs a pause, not the window.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FLOOR = 5
EPOCH = 5.0
GROWTH = 0.02
MOST_GROWTH = 0.5
FIRST_PAUSE = 0.5
MOST_PAUSE = 30.0
MOST_MISSERVED = 3


@dataclass(slots=True)
class Window:
    """One endpoint's (or the account's) window. `carried` counts requests that were accepted and still run."""

    limit: float
    most: int
    in_flight: int = 0
    carried: int = 0
    paused_until: float = 0.0
    last_cut: float = -1e9
    pause: float = FIRST_PAUSE
    misserved: int = 0
    aside: str = ""
    for_good: bool = False

    def room(self, now: float) -> bool:
        """Whether one more may start now."""
        return not self.aside and now >= self.paused_until and self.in_flight < int(self.limit)

    def started(self) -> None:
        """A request was sent."""
        self.in_flight += 1

    def accepted(self) -> None:
        """Its headers came with status 200."""
        self.carried += 1
        self.pause = FIRST_PAUSE

    def ended(self, *, accepted: bool) -> None:
        """It ended."""
        self.in_flight -= 1
        self.carried -= accepted

    def rejected(self, now: float, retry_after: float | None) -> None:
        """It was refused for want of room: 429, 503, or the account's in-flight budget."""
        if now - self.last_cut >= EPOCH:
            self.last_cut = now
            self.limit = min(self.limit, max(FLOOR, self.carried, self.in_flight / 2))
            if retry_after is None:
                self.pause = min(self.pause * 2, MOST_PAUSE)
        self.paused_until = max(self.paused_until, now + (retry_after if retry_after is not None else self.pause))

    def grow(self, now: float, seconds: float) -> None:
        """Time passed; a window that is used grows."""
        quiet = (now - self.last_cut) / EPOCH
        if quiet >= 1 and self.in_flight >= 0.8 * self.limit:
            rate = min(MOST_GROWTH, GROWTH * 2.0 ** min(quiet - 1, 10))
            self.limit = min(self.most, self.limit + max(1.0, rate * self.limit) * seconds)


@dataclass(slots=True)
class Pace:
    """All windows of a run: one an endpoint tag, and one for the account."""

    most: int
    account: Window = field(init=False)
    endpoints: dict[str, Window] = field(default_factory=dict[str, Window])

    def __post_init__(self) -> None:
        self.account = Window(self.most, self.most)

    def window(self, tag: str) -> Window:
        """The window of an endpoint."""
        found = self.endpoints.get(tag)
        return found if found is not None else self.endpoints.setdefault(tag, Window(self.most, self.most))

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
