"""The end of a session: among the works that are certain to be asked, the likely-long ones go first. Pure.

Which works are asked is the order's business alone: were it length's, the data would be biased. So a work is brought
forward only when it is asked in any case: all of a dataset without a quota; with one, so many as fit into what is still
wanted by a wide margin; and none where the money does not cover all that is wanted. And only near the end: when more wait
than four times as many as may fly, the order changes nothing, and an interrupted session keeps a plain sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from eyas.engine.likely import FEWEST
from eyas.engine.pool import Candidate, Pool
from eyas.engine.quotas import Quotas
from eyas.ledger import cost_of
from eyas.plan import Route
from eyas.state import State
from eyas.types import Verdict, Work

LOOK = 1.0
"""Seconds between two looks."""

AHEAD = 4
"""Works that are brought forward at most, in requests that may fly. Simulated, 1200 works at 100 in flight and 24 000 at 2000,
size and length correlated by 0.65: 7 % and 3 % less time on average, and little more with 6."""

CERTAIN = 0.8
"""The share of what is still wanted that may be promised."""

_SIGMAS = 3.0
_FEWEST_AHEAD = 30
_AT_ONCE = 1000


def surely(room: float, mean: float, deviation: float) -> int:
    """How many answers fit into `room` tokens, whatever chance brings: k with k·mean + 3·√k·deviation within 80 % of it."""
    if room <= 0 or mean <= 0:
        return 0
    spread = _SIGMAS * deviation
    root = (math.sqrt(spread**2 + 4 * mean * CERTAIN * room) - spread) / (2 * mean)
    return int(root**2)


@dataclass(slots=True)
class Tail:
    """Brings works of a pool forward. `most` are the requests that may fly now, `max_tokens` those of an answer by dataset."""

    state: State
    pool: Pool
    quotas: Quotas
    routes: tuple[Route, ...]
    most: Callable[[], int]
    max_tokens: Callable[[str], int]
    _next: float = -math.inf

    def look(self, now: float) -> None:
        """Bring forward what is certain by now, once a second."""
        if now < self._next:
            return
        self._next = now + LOOK
        again = [candidate.work.dataset for works in (self.pool.again, self.pool.later) for candidate in works]
        wanted = {name: self._wanted(name, again.count(name)) for name in self.pool.fresh if self.pool.unasked(name)}
        if sum(wanted.values()) > AHEAD * self.most() or not self._paid_for(wanted):
            return
        for name in wanted:
            self._bring_forward(name, again.count(name))

    def _wanted(self, name: str, again: int) -> float:
        """How many more of a dataset's works will be asked, as far as that is known."""
        waiting = again + self.pool.unasked(name)
        room = self._room(name)
        return waiting if room is None else min(waiting, max(0.0, room) / max(1.0, self.quotas.residuals[name].fresh))

    def _room(self, name: str) -> float | None:
        """Tokens that a dataset's quota still wants beside what flies; None without a quota."""
        quota = self.state.datasets[name].quota
        return None if quota.limit is None else quota.limit - quota.kept - self.quotas.foreseen(name)

    def _paid_for(self, wanted: dict[str, float]) -> bool:
        """Whether the cap leaves no doubt that all of it can be asked."""
        money = self.state.money
        if money.cap is None:
            return True
        cost = 0.0
        for name, works in wanted.items():
            dataset = self.state.datasets[name]
            if not dataset.quota.kept:
                return False
            # Short answers come first: their mean cost would be too low.
            length = self.quotas.residuals[name].fresh * self.quotas.residuals[name].caution
            cost += (works + self.quotas.flying.get(name, 0)) * length * dataset.cost / dataset.quota.kept
        last = max((self._dearest(name) for name in wanted), default=0)
        return cost + last <= CERTAIN * (money.cap - money.settled - money.unknown)

    def _dearest(self, name: str) -> int:
        """About the most that one request reserves, nano-dollars: the last one of all must find so much free."""
        most = self.max_tokens(name)
        return max(cost_of(route.prices, most, most) for route in self.routes)

    def _bring_forward(self, name: str, again: int) -> None:
        by_prompt, window = self.quotas.by_prompt.get(name), self.pool.windows.get(name)
        if by_prompt is None or by_prompt.count < FEWEST:
            return
        more, room = len(self.pool.fresh[name]), self._room(name)
        if room is not None:
            if self.state.datasets[name].turns:
                return  # what was begun is finished first: how much of the quota later turns will take is not known
            residuals = self.quotas.residuals[name]
            mean = residuals.fresh * residuals.caution
            ahead = surely(room, mean, math.sqrt(residuals.spread(0))) - again
            more = min(more, ahead - len(window or ())) if ahead >= _FEWEST_AHEAD else 0
        long = by_prompt.threshold()
        if long == math.inf and self.state.datasets[name].samples > 1:
            long = 2 * by_prompt.total / by_prompt.count  # other answers to its prompt may tell
        if more > 0 and long < math.inf:
            self.pool.bring_forward(name, min(more, _AT_ONCE), lambda candidate: self._long(candidate, long))

    def _long(self, candidate: Candidate, long: float) -> bool:
        """Whether it is likely to be long; later turns of what was begun go first in any case."""
        work = candidate.work
        expected = self.quotas.by_prompt[work.dataset].expected(candidate.tokens, tuple(self._others(work)))
        return work.turn > 0 or expected >= long

    def _others(self, work: Work) -> Iterable[int]:
        """Lengths of the answers to other samples of its prompt."""
        samples = self.state.datasets[work.dataset].samples
        for sample in range(samples if samples > 1 else 0):
            known = self.state.works.get(Work(work.dataset, work.prompt_id, work.turn, sample))
            if known is not None and known.verdict is Verdict.DONE:
                yield known.tokens
