"""Which route a request takes: the first with room, in the order of what a token that will be exported costs there. Pure.

Where nothing is billed, as at replicas of a server of the user's, it is the one with the least in flight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from eyas.engine.pace import Pace
from eyas.engine.pool import Candidate, Pool
from eyas.plan import Route, ordered
from eyas.state import State

REORDER = 5.0
"""Seconds between two orders of the routes."""


@dataclass(slots=True)
class Choice:
    """The routes of a session. `dropped` are tags that the user took out of it (`eyas tune`)."""

    routes: tuple[Route, ...]
    state: State
    pool: Pool
    pace: Pace
    dropped: set[str] = field(default_factory=set[str])
    _ordered: tuple[Route, ...] = ()
    _next: float = -math.inf

    def open(self, now: float) -> list[Route]:
        """Routes that a request may take now, the best first."""
        if now >= self._next:
            self._next = now + REORDER
            self._ordered = ordered(self.routes, self.state.providers)
        free = [route for route in self._ordered if route.tag not in self.dropped and self.pace.room(route.tag, now)]
        if len(free) > 1 and all(route.prices.free for route in free):
            free.sort(key=lambda route: (route.rank, self.pace.window(route.tag).in_flight))
        return free

    def usable(self) -> list[Route]:
        """Routes that a request may take, now or later."""
        return [route for route in self.routes if not self.out(route.tag)]

    def out(self, tag: str) -> bool:
        """Whether nothing is sent there: it was set aside, or dropped."""
        return tag in self.dropped or bool(self.pace.window(tag).aside)

    def route(self, candidate: Candidate, most: int, among: list[Route]) -> Route | None:
        """The first of those that takes a work of max_tokens `most`; one that failed it only if there is no other at all."""
        tools = bool(candidate.prompt.tools)
        fit = [route for route in among if route.serves(candidate.tokens, most, tools=tools)]
        avoid = self.pool.avoid.get(candidate.work)
        repeat = self.pool.repeats.get(candidate.work)
        if repeat and repeat.fetch:
            return next((route for route in fit if route.tag == repeat.tag), None)
        if repeat and not self.out(repeat.tag) and any(r.tag == repeat.tag for r in self.routes):
            return next((route for route in fit if route.tag == repeat.tag), None)
        if not avoid or not fit:
            return fit[0] if fit else None
        others = [route for route in fit if route.tag not in avoid]
        if others:
            return others[0]
        usable = {r.tag for r in self.usable() if r.serves(candidate.tokens, most, tools=tools)}
        return fit[0] if usable <= avoid else None
