"""What starts next: one pool over all datasets, quotas that foresee what flies, and a reservation that fits the cap.

`Admission` is the seam for policies; `Strict` reserves each request in full, `Metered` (metered.py) what it is likely to cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from eyas.engine.choice import Choice
from eyas.engine.pace import Pace
from eyas.engine.pool import Candidate, Pool
from eyas.engine.quotas import Quotas
from eyas.engine.tail import Tail
from eyas.ledger import reservation
from eyas.plan import Route
from eyas.state import State

__all__ = ["Admission", "Admitted", "Blocked", "Candidate", "Flying", "Pool", "Quotas", "Strict"]


class Admitted(NamedTuple):
    """What starts: on which route, under which reservation (nano-dollars)."""

    candidate: Candidate
    route: Route
    reserved: int


class Blocked(NamedTuple):
    """Why nothing starts. `money`: a reservation does not fit; `room`: every route that fits is full or paused.

    With neither there is nothing to ask for now.
    """

    money: bool = False
    room: bool = False


class Flying(NamedTuple):
    """A request in flight: its attempt, what was admitted, and the tokens that came, as far as its pieces tell."""

    attempt: int
    admitted: Admitted
    tokens: int


class Admission(Protocol):
    """Says what starts next."""

    choice: Choice

    def next(self, now: float) -> Admitted | Blocked:
        """The next request to send, taken out of the pool; or why there is none."""
        ...

    def servable(self) -> bool:
        """Whether some waiting work could still be sent on some route, now or later."""
        ...

    def reserve(self, reserved: int) -> None:
        """Make sure of the money of a request about to be sent."""
        ...

    def watch(self, flights: Iterable[Flying], now: float) -> list[int]:
        """Look at what flies, a few times a second; gives the attempts to end now for the cap's sake."""
        ...


@dataclass(slots=True)
class Strict:
    """Every request is reserved in full before it is sent: settled + reserved + unknown never passes the cap (I1)."""

    state: State
    pool: Pool
    quotas: Quotas
    routes: tuple[Route, ...]
    pace: Pace
    max_tokens: Callable[[str], int]
    choice: Choice = field(init=False)
    _tail: Tail = field(init=False)

    def __post_init__(self) -> None:
        self.choice = Choice(self.routes, self.state, self.pool, self.pace)
        self._tail = Tail(self.state, self.pool, self.quotas, self.routes, lambda: self.pace.most, self.max_tokens)

    def next(self, now: float) -> Admitted | Blocked:
        """The first work of the pool that its quota wants, a route has room for, and the cap covers."""
        self._tail.look(now)
        open_routes = self.choice.open(now)
        if not open_routes:
            return Blocked(room=True)
        money = room = False
        for candidate in self.pool.heads(now, self.quotas.progress):
            if not self.quotas.admits(candidate.work.dataset):
                continue
            most = self.max_tokens(candidate.work.dataset)
            route = self.choice.route(candidate, most, open_routes)
            if route is None:
                room = True
                continue
            reserved = reservation(route.prices, candidate.tokens, most)
            admitted = Admitted(candidate, route, reserved)
            if not self.covers(admitted):
                money = True
                continue
            self.pool.take(candidate)
            self.quotas.started(candidate.work.dataset)
            return admitted
        return Blocked(money=money, room=room)

    def covers(self, admitted: Admitted) -> bool:
        """Whether the cap covers one more request."""
        return self.state.money.fits(admitted.reserved)

    def reserve(self, reserved: int) -> None:
        """Make sure of the money of a request about to be sent.

        Raises:
            CapReached: it does not fit below the cap.
        """
        self.state.money.reserve(reserved)

    def watch(self, flights: Iterable[Flying], now: float) -> list[int]:  # noqa: ARG002  # all is reserved
        """Look at what flies; gives the attempts to end now. Where all is reserved in full there are none."""
        return []

    def servable(self) -> bool:
        """Whether some waiting work could still be sent on some route, now or later."""
        usable, waiting = self.choice.usable(), self.pool.sooner_or_later()
        return any(self.choice.route(c, self.max_tokens(c.work.dataset), usable) is not None for c in waiting)
