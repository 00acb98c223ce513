"""Histograms of token counts on one ladder of edges: 0, 1, 2, 3, 4, 6, 8, 12, 16 … (pure)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping

from eyas.report.document import Histogram, Lengths

KINDS = ("prompt", "reasoning", "answer")
_OCTAVES = 26


def _ladder() -> tuple[int, ...]:
    steps = [0, 1, 2, 3]
    for octave in range(2, _OCTAVES):
        steps += [1 << octave, 3 << (octave - 1)]
    return tuple(steps)


EDGES = _ladder()
"""A quarter to a half more from one to the next; the last is beyond any context."""


class Measured:
    """Counts lengths by dataset and kind."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, dict[str, Counter[int]]] = defaultdict(
            lambda: {kind: Counter[int]() for kind in KINDS}
        )

    def add(self, dataset: str, prompt: int, reasoning: int, answer: int) -> None:
        """Take in one answer."""
        counts = self._counts[dataset]
        for kind, tokens in zip(KINDS, (prompt, reasoning, answer), strict=True):
            counts[kind][bisect_right(EDGES, tokens) - 1] += 1

    def lengths(self) -> dict[str, Lengths]:
        """The histograms; those of one kind reach from the shortest to the longest of all datasets."""
        reach = {kind: self._reach(kind) for kind in KINDS}
        return {
            name: Lengths(**{kind: _histogram(counts[kind], *reach[kind]) for kind in KINDS})
            for name, counts in sorted(self._counts.items())
        }

    def _reach(self, kind: str) -> tuple[int, int]:
        bins = [number for counts in self._counts.values() for number in counts[kind]]
        return (min(bins), max(bins)) if bins else (0, -1)


def _histogram(counts: Mapping[int, int], first: int, last: int) -> Histogram:
    return Histogram(edges=list(EDGES[first : last + 2]), counts=[counts.get(i, 0) for i in range(first, last + 1)])
