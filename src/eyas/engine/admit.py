"""What starts next: one pool over all datasets, quotas that foresee what flies, and a reservation that fits the cap.

`Admission` is the seam for policies; `Strict` reserves each request in full, `Metered` (metered.py) what it is likely to cost.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from eyas.engine.pace import Pace
from eyas.engine.recover import Repeat
from eyas.forecast import Lengths, Residuals
from eyas.ledger import reservation
from eyas.plan import Route
from eyas.state import State
from eyas.types import Prompt, Work

DEVIATIONS = 2.0
"""Standard deviations of what flies that a quota leaves room for: an answer begun too many cannot be taken back."""


class Candidate(NamedTuple):
    """A work, its prompt, and what our count of the prompt is."""

    work: Work
    prompt: Prompt
    tokens: int


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

    def next(self, now: float) -> Admitted | Blocked:
        """The next request to send, taken out of the pool; or why there is none."""
        ...

    def servable(self) -> bool:
        """Whether some waiting work could still be sent on some route, now or later."""
        ...

    def reserve(self, reserved: int) -> None:
        """Make sure of the money of a request about to be sent."""
        ...

    def watch(self, flights: Sequence[Flying], now: float) -> list[int]:
        """Look at what flies, a few times a second; gives the attempts to end now for the cap's sake."""
        ...


@dataclass(slots=True)
class Quotas:
    """Foreseen tokens by dataset: what flies, and what one more answer would bring.

    `shares` are the tokens wanted of each dataset, in any unit; empty: the datasets take turns by the pool's order.
    """

    state: State
    lengths: dict[str, Lengths]
    shares: Mapping[str, float] = field(default_factory=dict[str, float])
    residuals: dict[str, Residuals] = field(default_factory=dict[str, Residuals])
    coming: dict[str, float] = field(default_factory=dict[str, float])
    variance: dict[str, float] = field(default_factory=dict[str, float])
    doubt: dict[str, float] = field(default_factory=dict[str, float])
    flying: dict[str, int] = field(default_factory=dict[str, int])

    def refresh(self, in_flight: Mapping[str, Iterable[int]]) -> None:
        """Look again: tokens that each answer in flight has so far, by dataset."""
        for name, lengths in self.lengths.items():
            so_far = list(in_flight.get(name, ()))
            self.residuals[name] = lengths.residuals(so_far)
            self.coming[name] = self.residuals[name].coming(so_far)
            self.variance[name] = sum(map(self.residuals[name].spread, so_far))
            self.doubt[name] = sum(map(self.residuals[name].doubt, so_far))
            self.flying[name] = len(so_far)

    def admits(self, dataset: str) -> bool:
        """Whether one more answer of that dataset is wanted."""
        coming = 0.0
        if self.flying.get(dataset):
            coming = self.coming[dataset] + DEVIATIONS * math.hypot(
                math.sqrt(self.variance[dataset]), self.doubt[dataset]
            )
        return self.state.datasets[dataset].quota.admits(coming, self.residuals[dataset].fresh)

    def progress(self, dataset: str) -> float:
        """Tokens kept and in flight of a dataset over its share; the one with the least is the next to be asked."""
        share = self.shares.get(dataset)
        kept = self.state.datasets[dataset].quota.kept
        return (kept + self.coming.get(dataset, 0.0)) / share if share else 0.0

    def started(self, dataset: str) -> None:
        """One more flies."""
        self.coming[dataset] = self.coming.get(dataset, 0.0) + self.residuals[dataset].fresh
        self.variance[dataset] = self.variance.get(dataset, 0.0) + self.residuals[dataset].spread(0)
        self.doubt[dataset] = self.doubt.get(dataset, 0.0) + self.residuals[dataset].doubt(0)
        self.flying[dataset] = self.flying.get(dataset, 0) + 1


@dataclass(slots=True)
class Pool:
    """Works to ask: rejected ones first, then each dataset's in its order.

    `repeats` are bodies to send again; a work that has one waits for its time.
    """

    fresh: dict[str, deque[tuple[int, Candidate]]] = field(default_factory=dict[str, deque[tuple[int, Candidate]]])
    again: deque[Candidate] = field(default_factory=deque[Candidate])
    avoid: dict[Work, set[str]] = field(default_factory=dict[Work, set[str]])
    repeats: dict[Work, Repeat] = field(default_factory=dict[Work, Repeat])

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> Pool:
        """A pool of works in the order given."""
        pool = cls()
        for place, candidate in enumerate(candidates):
            pool.fresh.setdefault(candidate.work.dataset, deque()).append((place, candidate))
        return pool

    @property
    def size(self) -> int:
        """How many works wait."""
        return len(self.again) + sum(map(len, self.fresh.values()))

    def put_back(self, candidate: Candidate, avoid: str = "") -> None:
        """Ask it again, before any fresh one; not on the route `avoid` if there is another."""
        self.again.append(candidate)
        if avoid:
            self.avoid.setdefault(candidate.work, set()).add(avoid)

    def go_on(self, candidate: Candidate) -> None:
        """The next turn of a conversation: before the others of its dataset, so that what was begun is finished first."""
        queue = self.fresh.setdefault(candidate.work.dataset, deque())
        queue.appendleft((queue[0][0] if queue else 0, candidate))

    def ask_again(self, repeats: Mapping[Work, Repeat]) -> None:
        """Have lost answers asked for by the bodies that may have brought them, each when its time has come."""
        self.repeats |= repeats
        for name, queue in self.fresh.items():
            self.again.extend(candidate for _, candidate in queue if candidate.work in repeats)
            self.fresh[name] = deque(item for item in queue if item[1].work not in repeats)

    def now_due(self, work: Work, mark: str, now: float) -> None:
        """The attempt with that mark is over for its provider too: a repeat of its body need not wait any more."""
        repeat = self.repeats.get(work)
        if repeat and repeat.mark == mark:
            self.repeats[work] = replace(repeat, after=min(repeat.after, now))

    def waiting(self, wanted: Callable[[str], bool]) -> bool:
        """Whether any work of a wanted dataset waits that is owed: one that is only fetched is not."""
        return any(wanted(c.work.dataset) for c in self.again if not self.fetched(c.work)) or any(
            q and wanted(name) for name, q in self.fresh.items()
        )

    def fetched(self, work: Work) -> bool:
        """Whether only what the API's cache holds of it is wanted."""
        repeat = self.repeats.get(work)
        return repeat is not None and repeat.fetch

    def heads(self, now: float, progress: Callable[[str], float] = lambda _: 0.0) -> list[Candidate]:
        """What may be next, in order: the works to ask again whose time has come, then each dataset's first fresh one.

        Of the datasets the one with the least progress comes first, and of equals the one whose work stands first.
        """
        fresh = sorted((progress(name), *queue[0]) for name, queue in self.fresh.items() if queue)
        again = (c for c in self.again if c.work not in self.repeats or self.repeats[c.work].after <= now)
        return [*again, *(candidate for _, _, candidate in fresh)]

    def take(self, candidate: Candidate) -> None:
        """It starts."""
        queue = self.fresh.get(candidate.work.dataset)
        if queue and queue[0][1] is candidate:
            queue.popleft()
        else:
            self.again.remove(candidate)


@dataclass(slots=True)
class Strict:
    """Every request is reserved in full before it is sent: settled + reserved + unknown never passes the cap (I1)."""

    state: State
    pool: Pool
    quotas: Quotas
    routes: tuple[Route, ...]
    pace: Pace
    max_tokens: Callable[[str], int]

    def next(self, now: float) -> Admitted | Blocked:
        """The first work of the pool that its quota wants, a route has room for, and the cap covers."""
        money = room = False
        open_routes = [route for route in self.routes if self.pace.room(route.tag, now)]
        for candidate in self.pool.heads(now, self.quotas.progress):
            if not self.quotas.admits(candidate.work.dataset):
                continue
            route = self._route(candidate, open_routes)
            if route is None:
                room = True
                continue
            reserved = reservation(route.prices, candidate.tokens, self.max_tokens(candidate.work.dataset))
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

    def watch(self, flights: Sequence[Flying], now: float) -> list[int]:  # noqa: ARG002  # all is reserved
        """Look at what flies; gives the attempts to end now. Where all is reserved in full there are none."""
        return []

    def servable(self) -> bool:
        """Whether some waiting work could still be sent on some route, now or later."""
        usable = [route for route in self.routes if not self.pace.window(route.tag).aside]
        return any(self._route(candidate, usable) is not None for candidate in self.pool.heads(math.inf))

    def _route(self, candidate: Candidate, among: list[Route]) -> Route | None:
        """The cheapest route with room; one that failed this work only if there is no other at all."""
        most = self.max_tokens(candidate.work.dataset)
        tools = bool(candidate.prompt.tools)
        fit = [route for route in among if route.serves(candidate.tokens, most, tools=tools)]
        avoid = self.pool.avoid.get(candidate.work)
        repeat = self.pool.repeats.get(candidate.work)
        if repeat and repeat.fetch:
            return next((route for route in fit if route.tag == repeat.tag), None)
        if repeat and not self.pace.window(repeat.tag).aside and any(r.tag == repeat.tag for r in self.routes):
            return next((route for route in fit if route.tag == repeat.tag), None)
        if not avoid or not fit:
            return fit[0] if fit else None
        others = [route for route in fit if route.tag not in avoid]
        if others:
            return others[0]
        usable = {
            r.tag
            for r in self.routes
            if not self.pace.window(r.tag).aside and r.serves(candidate.tokens, most, tools=tools)
        }
        return fit[0] if usable <= avoid else None
