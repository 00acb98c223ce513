"""Each prompt of a set once through all that RUN.toml asks of it, and the order of those that stay."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from eyas.config import Dataset
from eyas.errors import UsageError
from eyas.prompts.contaminate import Benchmarks, Contaminated
from eyas.prompts.gather import Gathered, Settings
from eyas.prompts.language import languages, speaks
from eyas.prompts.near import Sketches, firsts
from eyas.prompts.order import Order, order_of
from eyas.prompts.read import TEXT_PREFIX, BadRow
from eyas.prompts.select import Ids
from eyas.prompts.spool import Spool
from eyas.prompts.words import user_texts
from eyas.types import Prompt, Source

Count = Callable[[Prompt], int]
"""Tokens of a prompt by the target's own tokenizer; a UsageError puts its row in quarantine."""


@dataclass(slots=True)
class Sieve:
    """What a set keeps of its prompts, and what it has removed by the keys of RUN.toml.

    Attributes:
        rows, tokens, turns: of the prompts that stayed, in the order in which they were asked about.
    """

    dataset: Dataset
    count: Count
    benchmarks: Benchmarks | None
    spoken: frozenset[str]
    sketches: Sketches | None
    contaminated: Spool[Contaminated]
    rows: array[int] = field(default_factory=lambda: array("I"))
    tokens: array[int] = field(default_factory=lambda: array("I"))
    turns: array[int] = field(default_factory=lambda: array("I"))
    removed: Counter[str] = field(default_factory=Counter[str])

    @classmethod
    def of(cls, dataset: Dataset, settings: Settings, count: Count, benchmarks: Benchmarks | None) -> Sieve:
        """The sieve of a set.

        Raises:
            UsageError: an extra that it needs is not installed, or a language is not known.
        """
        return cls(
            dataset,
            count,
            benchmarks,
            languages(dataset.languages) if dataset.languages else frozenset(),
            Sketches(dataset.near_duplicates) if dataset.near_duplicates else None,
            Spool(Contaminated, settings.folder),
        )

    def take(self, row: int, found: Gathered) -> None:
        """Ask about one prompt, cheap questions first: keep it, count why not, or put its row in quarantine."""
        prompt = found.prompts[row]
        key = self._unwanted(prompt)
        if key is None:
            try:
                tokens = self.count(prompt)
            except UsageError as error:
                found.quarantine(_bad(prompt, str(error)))
                return
            key = self._unfit(tokens)
            if key is None:
                self.rows.append(row)
                self.tokens.append(tokens)
                self.turns.append(len(prompt.turns))
                if self.sketches:
                    self.sketches.add(user_texts(prompt))
                return
        self.removed[key] += 1

    def ordered(self, found: Gathered, seed: int) -> Order:
        """Numbers into `rows` and `tokens` in the order of the seed; near duplicates of earlier ones are removed."""
        rows = np.frombuffer(self.rows, np.uintc)
        order = order_of(seed, Ids(np.frombuffer(found.ids, np.uint64)[rows]))
        if self.sketches is None or self.dataset.near_duplicates is None:
            return order

        def texts(number: int) -> list[str]:
            return list(user_texts(found.prompts[int(rows[order[number]])]))

        stay = firsts(self.sketches.keys()[order], self.dataset.near_duplicates, texts)
        self.removed["near_duplicates"] += len(order) - int(stay.sum())
        return order[stay]

    def _unwanted(self, prompt: Prompt) -> str | None:
        if self.spoken and not speaks(user_texts(prompt), self.spoken):
            return "languages"
        if self.benchmarks and (shared := self.benchmarks.shared(prompt)):
            source = prompt.source or Source("", 0)
            name = f"{prompt.dataset}/{prompt.id}"
            self.contaminated.add(Contaminated(name, source.file, source.line, *shared))
            return "decontaminate"
        return None

    def _unfit(self, tokens: int) -> str | None:
        if tokens < (self.dataset.min_prompt_tokens or 0):
            return "min_prompt_tokens"
        most = self.dataset.max_prompt_tokens
        return "max_prompt_tokens" if most is not None and tokens > most else None


def _bad(prompt: Prompt, reason: str) -> BadRow:
    source = prompt.source or Source("", 0)
    return BadRow(source.file, source.line, reason, str(prompt.messages[-1].get("content"))[:TEXT_PREFIX])
