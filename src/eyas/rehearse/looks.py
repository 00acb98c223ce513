"""How often a rehearsal looks at what flies: seldom while nothing hangs on it, as often as a run does where it matters.

A look costs tens of microseconds for each answer in flight, and a run takes four a second. In between, the engine adds and
subtracts what starts and ends, so far from every quota and from the cap nothing is decided by a look.
"""

from __future__ import annotations

from dataclasses import dataclass

from eyas.engine.pace import Pace
from eyas.engine.run import TICK, Engine
from eyas.ledger import cost_of
from eyas.types import Prices

FAR = 0.2
"""Between two looks while every quota and the cap are far, by the mean seconds of an answer."""
EMPTYING = 0.02
"""The same while what is left flies."""
CLOSING = 0.01
"""The same while a quota fills, or near the cap where streams are ended for its sake."""
FEWEST = 20
"""Answers below which nothing is known of their seconds."""
CLOSE = 0.6
"""A quota is near when what is not foreseen yet is this share of what flies."""
CAP_CLOSE = 0.97
"""The share of the cap, as it is foreseen, from which it is near."""


def next_look(engine: Engine) -> float:
    """Seconds until the next look."""
    books = engine.books
    config, money, coming = books.setting.config, books.state.money, books.quotas.coming
    answers = sum(provider.answers for provider in books.state.providers.values())
    if answers < FEWEST:
        return TICK
    mean = sum(provider.seconds for provider in books.state.providers.values()) / answers
    if config.budget.mode == "metered" and money.cap is not None:
        price = max(route.prices.completion for route in books.setting.served.routes)
        foreseen = money.settled + money.unknown + cost_of(Prices(0, price), 0, round(sum(coming.values())))
        if foreseen > CAP_CLOSE * money.cap:
            return max(TICK, CLOSING * mean)
    quotas = [(coming.get(name, 0.0), each.quota) for name, each in books.state.datasets.items() if each.quota.limit]
    if not any((quota.limit or 0) - quota.kept - flies < CLOSE * flies for flies, quota in quotas):
        return max(TICK, FAR * mean)
    emptying = len(engine.flights) < 0.9 * config.limits.in_flight
    return max(TICK, (EMPTYING if emptying else CLOSING) * mean)


@dataclass(slots=True)
class Stepped(Pace):
    """Windows that grow in the steps of a run, however seldom the engine looks."""

    grown: float = 0.0

    def room(self, tag: str, now: float) -> bool:
        """Whether a request to that endpoint may start now."""
        self._step(now)
        return Pace.room(self, tag, now)

    def grow(self, now: float, seconds: float) -> None:
        """Time passed."""
        del seconds
        self._step(now)

    def _step(self, now: float) -> None:
        self.grown = self.grown or now
        while self.grown + TICK <= now:
            self.grown += TICK
            Pace.grow(self, self.grown, TICK)
