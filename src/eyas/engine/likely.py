"""Which answers are likely to be long, told from the size of their prompts and from other answers to the same prompt. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

FEWEST = 100
"""Answers of a dataset before which nothing is foretold."""

THIRD = 1 / 3
"""The share of works that go first. All by length would be worse: at the end requests could not be sent as fast as short
answers end."""

MOST_FIRST = 0.5
CLEARLY = 1.2
"""Times the mean that an expected length must be to count as long."""

_PRIOR = 5
_BINS = 64


@dataclass(slots=True)
class ByPrompt:
    """Lengths of one dataset's answers by the size of the prompt, in half powers of two."""

    answers: list[int] = field(default_factory=lambda: [0] * _BINS)
    tokens: list[int] = field(default_factory=lambda: [0] * _BINS)
    count: int = 0
    total: int = 0

    def add(self, prompt: int, tokens: int, answers: int = 1) -> None:
        """So many answers of so many tokens came, to prompts of so many."""
        index = _bin(prompt)
        self.answers[index] += answers
        self.tokens[index] += answers * tokens
        self.count += answers
        self.total += answers * tokens

    def expected(self, prompt: int, others: Sequence[int] = ()) -> float:
        """Tokens expected of an answer; `others` are lengths of answers to the same prompt, of which one says the most."""
        return (sum(others) + self._of_bin(_bin(prompt))) / (len(others) + 1)

    def threshold(self) -> float:
        """The expected tokens from which a work is one of the likely-long third; infinite where sizes tell nothing."""
        if self.count < FEWEST:
            return math.inf
        mean = self.total / self.count
        long, share = math.inf, 0.0
        for index in sorted((i for i in range(_BINS) if self.answers[i]), key=self._of_bin, reverse=True):
            expected, more = self._of_bin(index), self.answers[index] / self.count
            if expected < CLEARLY * mean or share + more > MOST_FIRST or share >= THIRD:
                break
            long, share = expected, share + more
        return long

    def _of_bin(self, index: int) -> float:
        """The bin's mean, drawn to that of all answers while it holds few."""
        mean = self.total / self.count if self.count else 0.0
        return (self.tokens[index] + _PRIOR * mean) / (self.answers[index] + _PRIOR)


def _bin(prompt: int) -> int:
    return min(_BINS - 1, round(2 * math.log2(prompt + 1)))
