"""What flies and what one more answer would bring, foreseen for each dataset's quota. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from eyas.engine.likely import ByPrompt
from eyas.forecast import Lengths, Residuals, Times
from eyas.state import State
from eyas.types import Verdict, Work

DEVIATIONS = 2.0
"""Standard deviations of what flies that a quota leaves room for: an answer begun too many cannot be taken back."""

MOST_LEARNED = 50_000
"""Answers of each dataset that a session learns lengths from when it begins; more would only take time."""


@dataclass(slots=True)
class Quotas:
    """Foreseen tokens by dataset: what flies, and what one more answer would bring.

    `shares` are the tokens wanted of each dataset, in any unit; empty: the datasets take turns by the pool's order.
    `by_prompt` are the lengths seen by the size of the prompt, `times` the seconds that answers of this session took.
    """

    state: State
    lengths: dict[str, Lengths]
    shares: Mapping[str, float] = field(default_factory=dict[str, float])
    residuals: dict[str, Residuals] = field(default_factory=dict[str, Residuals])
    coming: dict[str, float] = field(default_factory=dict[str, float])
    variance: dict[str, float] = field(default_factory=dict[str, float])
    doubt: dict[str, float] = field(default_factory=dict[str, float])
    flying: dict[str, int] = field(default_factory=dict[str, int])
    by_prompt: dict[str, ByPrompt] = field(default_factory=dict[str, ByPrompt])
    times: Times = field(default_factory=Times)

    @classmethod
    def of(cls, state: State, most: Mapping[str, int], shares: Mapping[str, float]) -> Quotas:
        """With the last answers that earlier sessions brought; `most` is max_tokens by dataset."""
        quotas = cls(state, {name: Lengths(tokens) for name, tokens in most.items()}, shares)
        for (name, prompt, tokens), answers in Counter(_last(state, most)).items():
            quotas._learn(name, prompt, tokens, answers)
        return quotas

    def learn(self, work: Work, prompt: int, tokens: int, seconds: float = 0.0) -> None:
        """A whole answer of so many tokens came, to a prompt of so many; it took so many seconds (0: not known)."""
        self._learn(work.dataset, prompt, tokens, 1)
        if seconds:
            self.times.add(work.dataset, seconds)

    def _learn(self, dataset: str, prompt: int, tokens: int, answers: int) -> None:
        self.lengths[dataset].add(tokens, answers)
        self.by_prompt.setdefault(dataset, ByPrompt()).add(prompt, tokens, answers)

    def refresh(self, in_flight: Mapping[str, Iterable[int]]) -> None:
        """Look again: tokens that each answer in flight has so far, by dataset."""
        for name, lengths in self.lengths.items():
            so_far = list(in_flight.get(name, ()))
            self.residuals[name] = lengths.residuals(so_far)
            foreseen = self.residuals[name].all_flying()
            self.coming[name] = sum(so_far) + foreseen.left
            self.variance[name], self.doubt[name] = foreseen.variance, foreseen.doubt
            self.flying[name] = len(so_far)

    def foreseen(self, dataset: str) -> float:
        """Tokens that what flies will have brought, with room for what chance may add."""
        if not self.flying.get(dataset):
            return 0.0
        chance = math.hypot(math.sqrt(self.variance[dataset]), self.doubt[dataset])
        return self.coming[dataset] + DEVIATIONS * chance

    def admits(self, dataset: str) -> bool:
        """Whether one more answer of that dataset is wanted."""
        return self.state.datasets[dataset].quota.admits(self.foreseen(dataset), self.residuals[dataset].fresh)

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


def _last(state: State, names: Collection[str]) -> Iterator[tuple[str, int, int]]:
    """(dataset, tokens of the prompt, tokens of the answer) of the last whole answers of those datasets."""
    seen = dict.fromkeys(names, 0)
    prompts = {name: dataset.prompts for name, dataset in state.datasets.items()}
    for work, known in reversed(state.works.items()):
        name = work.dataset
        if seen.get(name, MOST_LEARNED) < MOST_LEARNED and known.verdict is Verdict.DONE:
            seen[name] += 1
            yield name, known.prompt_tokens if work.turn else prompts[name].get(work.prompt_id, 0), known.tokens
