"""The yield table: what was asked for and paid, step by step down to supervised tokens, with the reason of each loss.

Money is held as nano-dollars, and is US dollars in the table. Each step's rows and dollars are those of the step before
it less the losses at it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from eyas.exporters.tally import Fact
from eyas.types import NANO

STEPS = ("prompts", "answers", "label", "kept", "max_length", "supervised")
"""Answers wanted → done or partial → label passes the policy → not dropped → within --max-length → mask 1."""


class Step(msgspec.Struct, frozen=True):
    """What is left at a step: rows, ids of answers (0 for `prompts`: not known), dollars."""

    step: str
    rows: int
    tokens: int
    usd: float


class Loss(msgspec.Struct, frozen=True):
    """What is lost on the way to a step. `requests` are those whose money bought nothing that is kept."""

    step: str
    reason: str
    rows: int
    requests: int
    tokens: int
    usd: float


class Yield(msgspec.Struct, frozen=True):
    """The table of one dataset or of all."""

    steps: tuple[Step, ...]
    losses: tuple[Loss, ...]

    @property
    def share(self) -> float:
        """The share of the dollars paid that became supervised tokens; 0 where nothing was paid."""
        return self.steps[-1].usd / self.steps[0].usd if self.steps[0].usd else 0.0


class Yields(msgspec.Struct, frozen=True):
    """All in all, and by dataset."""

    total: Yield
    datasets: dict[str, Yield]


class Unanswered(msgspec.Struct, frozen=True):
    """What a dataset lost before it had answers: works without one (`rows`), and money that bought none (`nano`)."""

    dataset: str
    reason: str
    rows: int = 0
    requests: int = 0
    nano: int = 0


class Funnel:
    """Sums up losses and facts; the result does not depend on their order."""

    def __init__(self, unanswered: Iterable[Unanswered]) -> None:
        self._sums: defaultdict[str, _Sums] = defaultdict(_Sums)
        for each in unanswered:
            sums = self._sums[each.dataset]
            sums.reach("prompts", each.rows, 0, each.nano)
            sums.lose("answers", each.reason, (each.rows, each.requests, 0, each.nano))

    def add(self, fact: Fact) -> None:
        """Count one answer."""
        sums, cost = self._sums[fact.dataset], fact.cost or 0
        sums.reach("prompts", 1, 0, cost)
        for step in STEPS[1:-2]:
            if step == fact.step:
                break
            sums.reach(step, 1, fact.tokens, cost)
        if fact.step:
            sums.lose(fact.step, fact.reason, (1, 0, fact.tokens, cost))
            return
        kept, supervised = fact.part(fact.kept), fact.part(fact.supervised)
        sums.reach("max_length", 1, fact.kept, kept)
        sums.reach("supervised", 1, fact.supervised, supervised)
        if fact.kept < fact.tokens:
            sums.lose("max_length", "ids beyond --max-length", (0, 0, fact.tokens - fact.kept, cost - kept))
        if fact.supervised < fact.kept:
            masked = fact.kept - fact.supervised
            sums.lose("supervised", "ids that are not sure, masked", (0, 0, masked, kept - supervised))

    def yields(self) -> Yields:
        """The tables."""
        total = _Sums()
        for sums in self._sums.values():
            total.join(sums)
        return Yields(total.table(), {name: self._sums[name].table() for name in sorted(self._sums)})


class _Sums:
    """[rows, tokens, nano] by step, and [rows, requests, tokens, nano] by step and reason."""

    def __init__(self) -> None:
        self._steps: dict[str, list[int]] = {step: [0, 0, 0] for step in STEPS}
        self._losses: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])

    def reach(self, step: str, rows: int, tokens: int, nano: int) -> None:
        _add(self._steps[step], (rows, tokens, nano))

    def lose(self, step: str, reason: str, amounts: tuple[int, int, int, int]) -> None:
        _add(self._losses[step, reason], amounts)

    def join(self, other: _Sums) -> None:
        for step, amounts in other._steps.items():
            _add(self._steps[step], amounts)
        for key, amounts in other._losses.items():
            _add(self._losses[key], amounts)

    def table(self) -> Yield:
        order = sorted(self._losses.items(), key=lambda item: (STEPS.index(item[0][0]), item[0][1]))
        return Yield(
            tuple(Step(step, rows, tokens, nano / NANO) for step, (rows, tokens, nano) in self._steps.items()),
            tuple(
                Loss(step, reason, rows, requests, tokens, nano / NANO)
                for (step, reason), (rows, requests, tokens, nano) in order
            ),
        )


def _add(sums: list[int], amounts: Iterable[int]) -> None:
    for place, amount in enumerate(amounts):
        sums[place] += amount
