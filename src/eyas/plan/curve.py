"""How long answers are: which share of them is still being written after so many tokens. Pure.

A plan asks what answers would be under another max_tokens, so it needs the whole curve and not a mean. Lengths are
heavy-tailed and follow no law (https://arxiv.org/abs/2604.07931), so the curve is Kaplan and Meier's product-limit
estimate (1958, https://doi.org/10.1080/01621459.1958.10501452) wherever answers were seen.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import NormalDist

HORIZON = 1 << 20
"""Tokens beyond which no answer is thought of."""

_STEPS = 400
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Curve:
    """A step function: the share `alive[i]` of all answers is longer than a length in [edges[i], edges[i + 1]).

    Attributes:
        edges: tokens, rising from 0; the last step has no end.
        alive: shares in [0, 1], never rising.
        areas, moments: the integrals of S(t) and of 2t S(t) from 0 to each edge.
    """

    edges: tuple[float, ...]
    alive: tuple[float, ...]
    areas: tuple[float, ...]
    moments: tuple[float, ...]

    @classmethod
    def of(cls, edges: Sequence[float], alive: Sequence[float]) -> Curve:
        """The curve with these steps."""
        steps = list(zip(pairwise(edges), alive, strict=False))
        areas = accumulate(((high - low) * share for (low, high), share in steps), initial=0.0)
        moments = accumulate(((high**2 - low**2) * share for (low, high), share in steps), initial=0.0)
        return cls(tuple(edges), tuple(alive), tuple(areas), tuple(moments))

    def beyond(self, tokens: float) -> float:
        """The share of answers that would be longer than so many tokens."""
        return self.alive[self._step(tokens)]

    def mean(self, most: float) -> float:
        """Mean tokens of answers that are cut at `most`."""
        step = self._step(most)
        return self.areas[step] + (most - self.edges[step]) * self.alive[step]

    def variance(self, most: float) -> float:
        """Variance of the tokens of answers that are cut at `most`."""
        step = self._step(most)
        square = self.moments[step] + (most**2 - self.edges[step] ** 2) * self.alive[step]
        return max(0.0, square - self.mean(most) ** 2)

    def excess(self, start: float, most: float) -> float:
        """Mean tokens of an answer, cut at `most`, that lie after its first `start`."""
        return self.mean(most) - self.mean(min(max(0.0, start), most))

    def quantile(self, share: float, most: float) -> float:
        """The length, cut at `most`, that the given share of answers does not pass; `share` in [0, 1)."""
        step = bisect.bisect_left(self.alive, share - 1.0, key=lambda alive: -alive)
        return min(self.edges[step], most) if step < len(self.edges) else most

    def _step(self, tokens: float) -> int:
        return max(0, bisect.bisect_right(self.edges, tokens) - 1)


def kaplan_meier(ended: Iterable[int], cut: Iterable[int]) -> Curve:
    """The curve that answers tell.

    Args:
        ended: tokens of answers that came to their own end.
        cut: tokens of answers that were cut at them, by max_tokens or by a broken stream, and would have gone on.

    Where nothing is known of the longest, because the last ones were all cut, they are taken to run on for ever.
    """
    deaths, censored = Counter(ended), Counter(cut)
    at_risk, share = deaths.total() + censored.total(), 1.0
    steps = {0.0: 1.0}
    for tokens in sorted({*deaths, *censored}):
        if deaths[tokens]:
            share *= 1 - deaths[tokens] / at_risk
            steps[float(tokens)] = share
        at_risk -= deaths[tokens] + censored[tokens]
    return Curve.of(list(steps), list(steps.values()))


def lognormal(mean: float, sigma: float, most: int) -> Curve:
    """The curve of a stated law: log-normal, scaled so that answers cut at `most` have that mean.

    A mean within 2 % of `most` cannot be had and is taken as that.
    """
    wanted = min(mean, 0.98 * most)
    low, high = math.log(wanted) - sigma**2 / 2, math.log(HORIZON)
    for _ in range(40):
        middle = (low + high) / 2
        if _law(middle, sigma).mean(most) < wanted:
            low = middle
        else:
            high = middle
    return _law(high, sigma)


def _law(mu: float, sigma: float) -> Curve:
    ratio = math.log(HORIZON) / (_STEPS - 1)
    edges = [0.0, *(math.exp(ratio * step) for step in range(_STEPS))]
    shares = [1.0, *(1 - _NORMAL.cdf((math.log(edge) - mu) / sigma) for edge in edges[1:])]
    return Curve.of(edges, [(a + b) / 2 for a, b in pairwise(shares)] + [shares[-1]])
