"""Output lengths still to come, from lengths seen: Kaplan-Meier residuals. Pure.

Short answers finish first and long ones are over-represented among those in flight, so neither the mean of finished
answers nor that mean times the number in flight foresees what is coming. Each answer in flight is an observation censored
at the tokens that it has so far (Kaplan and Meier, 1958, https://doi.org/10.1080/01621459.1958.10501452).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

FIRST_EDGE = 16
BINS = 90
FEWEST_AT_RISK = 5

FEWEST = 20
"""Answers before which nothing is said of how long they take."""
TENTHS = 10
"""Times are counted in tenths of a second, up to LONGEST of them."""
LONGEST = 7200 * TENTHS
ALL = ""
"""The name under which times of all datasets stand together; no dataset has it."""
_SURE = 2000


def edges(most: int) -> list[float]:
    """Bin edges in tokens: 0, then geometric steps from 16 to `most` (= max_tokens)."""
    if most <= FIRST_EDGE:
        return [0.0, float(most)]
    ratio = math.exp(math.log(most / FIRST_EDGE) / (BINS - 1))
    return [0.0, *(FIRST_EDGE * ratio**step for step in range(BINS - 1)), float(most)]


@dataclass(slots=True)
class Lengths:
    """Lengths of one dataset's answers, up to `most` tokens each."""

    most: int
    _edges: list[float] = field(init=False)
    _deaths: list[int] = field(init=False)
    _exposed: list[int] = field(init=False)
    finished: int = 0
    total: int = 0

    def __post_init__(self) -> None:
        self._edges = edges(self.most)
        self._deaths = [0] * (len(self._edges) - 1)
        self._exposed = [0] * (len(self._edges) - 1)

    def add(self, tokens: int, answers: int = 1) -> None:
        """So many answers ended at that many tokens; one that reached `most` was cut there, and counts as censored."""
        index = self.bin(tokens)
        if tokens < self.most:
            self._deaths[index] += answers
        self._exposed[index] += answers
        self.finished += answers
        self.total += answers * tokens

    def bin(self, tokens: float) -> int:
        """Index of the bin that holds a length."""
        return min(max(bisect.bisect_right(self._edges, tokens) - 1, 0), len(self._deaths) - 1)

    def residuals(self, in_flight: Iterable[int]) -> Residuals:
        """Expected tokens still to come, given the tokens that each answer in flight has so far.

        Where fewer than 5 answers reached a bin nothing is known of it: the tail is taken to run to `most`.
        """
        flying = self._counts(in_flight)
        exposed = [ended + flies for ended, flies in zip(self._exposed, flying, strict=True)]
        at_risk = list(accumulate(reversed(exposed)))[::-1]
        means, squares = [0.0] * (len(self._deaths) + 1), [0.0] * (len(self._deaths) + 1)
        widths = [high - low for low, high in pairwise(self._edges)]
        for index in range(len(self._deaths) - 1, -1, -1):
            known = at_risk[index] >= FEWEST_AT_RISK
            hazard = self._deaths[index] / at_risk[index] if known else 0.0
            width, mean, square = widths[index], means[index + 1], squares[index + 1]
            means[index] = hazard * width / 2 + (1 - hazard) * (width + mean)
            squares[index] = hazard * width**2 / 3 + (1 - hazard) * (width**2 + 2 * width * mean + square)
        beyond = list(accumulate(reversed(self._deaths)))[::-1]
        return Residuals(self, means, squares, beyond, flying)

    def longer(self, in_flight: Iterable[int] = ()) -> tuple[list[float], list[float]]:
        """Bin edges in tokens, and the share of answers that is longer than each: 1 at the first, 0 at the last.

        Where fewer than 5 answers reached a bin, lengths fall off there as they do over the longest quarter: exponentially.
        """
        exposed = [ended + flies for ended, flies in zip(self._exposed, self._counts(in_flight), strict=True)]
        at_risk = [*accumulate(reversed(exposed))][::-1]
        widths = [high - low for low, high in pairwise(self._edges)]
        last = max((index for index, deaths in enumerate(self._deaths) if deaths), default=0)
        first = next((index for index, risk in enumerate(at_risk) if 4 * risk <= at_risk[0]), last)
        longest = range(min(first, last), len(widths))
        deaths = sum(self._deaths[index] for index in longest)
        lived = sum(widths[index] * (at_risk[index] - exposed[index] / 2) for index in longest)
        excess = lived / deaths if deaths else math.inf
        shares = [1.0]
        for index, width in enumerate(widths):
            known = at_risk[index] >= FEWEST_AT_RISK
            stays = 1 - self._deaths[index] / at_risk[index] if known else math.exp(-width / max(excess, 1.0))
            shares.append(shares[-1] * stays)
        return self._edges, [*shares[:-1], 0.0]

    def _counts(self, in_flight: Iterable[int]) -> list[int]:
        """How many stand in each bin: thousands are counted anew a few times a second."""
        counts, last, bins = [0] * (len(self._deaths) + 2), len(self._deaths), self._edges
        for tokens in in_flight:
            counts[bisect.bisect_right(bins, tokens)] += 1
        counts[1] += counts[0]
        counts[last] += counts[last + 1]
        return counts[1 : last + 1]


class Foreseen(NamedTuple):
    """Expected tokens still to come, their variance, and the standard error of what is expected."""

    left: float
    variance: float
    doubt: float


@dataclass(frozen=True, slots=True)
class Residuals:
    """What is still to come of one dataset's answers: by bin its mean in tokens, and the mean of its square.

    `beyond`: answers that are known to have ended in that bin or a later one; `flying`: those in flight that stand in it.
    """

    lengths: Lengths
    means: list[float]
    squares: list[float]
    beyond: list[int]
    flying: list[int]

    @property
    def fresh(self) -> float:
        """Expected length of an answer not begun."""
        return self.means[0]

    def left(self, tokens: int) -> float:
        """Expected tokens to come of an answer that has `tokens` so far."""
        return self.means[self.lengths.bin(tokens)]

    def spread(self, tokens: int) -> float:
        """Variance of the tokens to come of an answer that has `tokens` so far."""
        return self._spread(self.lengths.bin(tokens))

    def doubt(self, tokens: int) -> float:
        """Standard error of `left`: what is not known of the mean itself, which all answers in flight share."""
        return self._doubt(self.lengths.bin(tokens))

    def _spread(self, index: int) -> float:
        return max(0.0, self.squares[index] - self.means[index] ** 2)

    def _doubt(self, index: int) -> float:
        return math.sqrt(self._spread(index) / max(1, self.beyond[index]))

    def all_flying(self) -> Foreseen:
        """What is still to come of all answers in flight together."""
        bins = [(index, count) for index, count in enumerate(self.flying) if count]
        return Foreseen(
            left=sum(count * self.means[index] for index, count in bins),
            variance=sum(count * self._spread(index) for index, count in bins),
            doubt=sum(count * self._doubt(index) for index, count in bins),
        )

    @property
    def caution(self) -> float:
        """Factor on expected tokens while few answers have finished: what is known of their lengths is not sure yet."""
        seen = self.lengths.finished
        return 1 + 3 / math.sqrt(max(seen, 1)) if seen < _SURE else 1.0

    def coming(self, in_flight: Iterable[int]) -> float:
        """Expected tokens, so far and to come, of all answers in flight: what they will add to what is kept."""
        return sum(tokens + self.left(tokens) for tokens in in_flight)


class Times:
    """How long answers took, by dataset, in tenths of a second."""

    def __init__(self) -> None:
        self._known: dict[str, Lengths] = {}

    def add(self, dataset: str, seconds: float) -> None:
        """A whole answer took so many seconds."""
        for name in (dataset, ALL):
            known = self._known.get(name) or self._known.setdefault(name, Lengths(LONGEST))
            known.add(round(seconds * TENTHS))

    def of(self, dataset: str) -> Lengths | None:
        """Those of a dataset; of all where it has few; None where all have few."""
        own, every = self._known.get(dataset), self._known.get(ALL)
        known = own if own is not None and own.finished >= FEWEST else every
        return known if known is not None and known.finished >= FEWEST else None
