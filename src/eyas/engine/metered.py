"""Admission by what answers are likely to cost: streamed tokens, Kaplan-Meier residuals, and a margin.

A full reservation of max_tokens for each request leaves most of a budget idle: an answer rarely runs that far. Metered
admission counts what was streamed and what is expected to come, with a Bernstein margin for what chance may add; when
more is coming after all, the stop-loss ends the youngest streams, whose text is kept. Only providers that stop billing
when a stream ends are metered; the rest is reserved in full. Bound: cap, exceeded with probability DELTA if answers of a
dataset are alike over the run, and else by what comes between two looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from eyas.engine.admit import Admitted, Flying, Strict
from eyas.forecast import Residuals
from eyas.ledger import MILLION, cost_of, prompt_upper
from eyas.plan import Route
from eyas.providers.cancel import stops
from eyas.state import Attempt

DELTA = 1e-2
"""The chance that is left to pass the cap, under exchangeable answers."""

LAG = 2.0
"""Seconds of text that may be on its way while we look."""


@dataclass
class Metered(Strict):
    """Admits what the cap covers in all likelihood, and ends streams before it is passed."""

    _expected: float = 0.0
    _variance: float = 0.0
    _largest: float = 0.0
    _looked: float = 0.0
    _streamed: dict[int, float] = field(default_factory=dict[int, float])

    @cached_property
    def _metered(self) -> dict[str, Route]:
        """The routes whose streams can be ended."""
        return {route.tag: route for route in self.routes if all(stops(endpoint) for endpoint in route.endpoints)}

    def covers(self, admitted: Admitted) -> bool:
        """Whether the cap covers one more request: in full, or in all likelihood."""
        money = self.state.money
        if money.fits(admitted.reserved):
            self._add(admitted)
            return True
        expected, variance = self._cost(Flying(0, admitted, 0), cautious=True)
        largest = max(self._largest, float(admitted.reserved))
        total = money.settled + self._unknown() + self._expected + expected
        if money.cap is None or total + _margin(self._variance + variance, largest) <= money.cap:
            self._add(admitted)
            return True
        return False

    def reserve(self, reserved: int) -> None:
        """Nothing is reserved in full: `covers` and `watch` keep the cap."""

    def watch(self, flights: Iterable[Flying], now: float) -> list[int]:
        """Count anew what flies; gives the attempts whose streams must end, youngest first."""
        flights = tuple(flights)
        self._largest = max((float(flying.admitted.reserved) for flying in flights), default=0.0)
        costs = {flying.attempt: self._cost(flying, cautious=True) for flying in flights}
        self._expected = sum(cost for cost, _ in costs.values())
        self._variance = sum(variance for _, variance in costs.values())
        # A stream without a token has no generation id yet: ended now, its cost would never be known.
        soft = [flying for flying in flights if flying.tokens and flying.admitted.route.tag in self._metered]
        coming = self._rate(soft, now) * LAG
        cap = self.state.money.cap
        if cap is None:
            return []
        spent = self.state.money.settled + self._unknown()
        if spent + sum(self._so_far(flying) for flying in flights) + coming >= cap:
            return [flying.attempt for flying in soft]
        return self._too_many(soft, spent + sum(self._cost(flying, cautious=False)[0] for flying in flights) - cap)

    def _rate(self, soft: Sequence[Flying], now: float) -> float:
        """Nano-dollars a second that the streams cost that can be ended."""
        costs = {flying.attempt: self._so_far(flying) for flying in soft}
        came = sum(cost - self._streamed[attempt] for attempt, cost in costs.items() if attempt in self._streamed)
        seconds = now - self._looked
        self._streamed, self._looked = costs, now
        return max(0.0, came) / seconds if seconds > 0 else 0.0

    def _too_many(self, soft: list[Flying], excess: float) -> list[int]:
        """The youngest streams that must end so that what is expected fits again."""
        ended: list[int] = []
        for flying in sorted(soft, key=lambda flying: -flying.attempt):
            if excess <= 0:
                break
            excess -= self._cost(flying, cautious=False)[0] - self._so_far(flying)
            ended.append(flying.attempt)
        return ended

    def _add(self, admitted: Admitted) -> None:
        expected, variance = self._cost(Flying(0, admitted, 0), cautious=True)
        self._expected += expected
        self._variance += variance

    def _so_far(self, flying: Flying) -> float:
        """Nano-dollars that an answer in flight has cost by now; all of its reservation where it cannot be ended."""
        route = self._metered.get(flying.admitted.route.tag)
        if route is None:
            return float(flying.admitted.reserved)
        return float(cost_of(route.prices, prompt_upper(flying.admitted.candidate.tokens), flying.tokens))

    def _cost(self, flying: Flying, *, cautious: bool) -> tuple[float, float]:
        """(expected nano-dollars, variance) of an answer to its end."""
        (candidate, route, reserved), tokens = flying.admitted, flying.tokens
        residuals = self.quotas.residuals.get(candidate.work.dataset)
        if route.tag not in self._metered or residuals is None:
            return float(reserved), 0.0
        left = _left(residuals, tokens, self.max_tokens(candidate.work.dataset), cautious=cautious)
        price = route.prices.completion / MILLION
        return min(float(reserved), self._so_far(flying) + price * left), price**2 * residuals.spread(tokens)

    def _unknown(self) -> float:
        """Nano-dollars held for outcomes that are not known: what was streamed, where our end of a stream ended it."""
        return sum(self._held(attempt) for attempt in self.state.unknown())

    def _held(self, attempt: Attempt) -> float:
        route = self._metered.get(attempt.tag)
        kept = attempt.settled.tokens if attempt.settled else 0
        if route is None or not kept or not attempt.generation_id:
            return float(attempt.reserved)
        prompt = self.state.prompt_tokens(attempt.work)
        return min(float(attempt.reserved), cost_of(route.prices, prompt_upper(prompt), prompt_upper(kept)))


def _left(residuals: Residuals, tokens: int, most: int, *, cautious: bool) -> float:
    """Tokens expected to come of an answer that has so many."""
    expected = residuals.left(tokens) * (residuals.caution if cautious else 1.0)
    return min(float(most - tokens), expected)


def _margin(variance: float, largest: float) -> float:
    """What chance adds to an expected cost with probability DELTA at most (Bernstein), nano-dollars."""
    return math.sqrt(2 * math.log(1 / DELTA) * variance) + largest * math.log(1 / DELTA) / 3
