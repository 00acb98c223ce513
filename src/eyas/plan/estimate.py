"""What a plan takes for granted of each dataset: the lengths of its answers and the speed of a stream, and why. Pure."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from eyas.config import RunConfig
from eyas.plan.curve import Curve, kaplan_meier, lognormal
from eyas.state import State
from eyas.types import Finish, Verdict

FEWEST = 5
"""Answers of a dataset below which they tell too little to plan by."""

Z10 = 1.2815515655446004
"""The tenth and ninetieth percentile of a normal law lie so many deviations from its mean."""


class Source(StrEnum):
    """Where an estimate comes from; the order is from the best known to the least.

    ANSWERS are those of the run itself, a pilot's among them. EXPECTED is the dataset's expected_tokens. PRIOR is nothing
    but experience with other models and prompts: its error is the same for all datasets, so it does not average out.
    """

    ANSWERS = "answers"
    EXPECTED = "expected_tokens"
    PRIOR = "prior"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Lengths of one dataset's answers. `doubt` is the deviation of the logarithm of their mean: 0 is certainty."""

    source: Source
    curve: Curve
    doubt: float
    answers: int = 0

    def mean_at(self, deviations: float, most: int) -> float:
        """The mean of answers cut at `most`, so many deviations of its doubt above what is expected."""
        mean = self.curve.mean(most)
        return min(float(most), mean * math.exp(deviations * self.doubt - self.doubt**2 / 2))


@dataclass(frozen=True, slots=True)
class Prior:
    """A stated law: mean tokens, deviation of the logarithm of one answer, and of the mean itself."""

    mean: float
    sigma: float
    doubt: float


THINKING = Prior(mean=2000, sigma=1.1, doubt=0.8)
"""No public distribution of answers with thinking on was found: a guess, from a third of it to three times as much."""

INSTANT = Prior(mean=350, sigma=0.9, doubt=0.8)
"""343 tokens in 12,031 requests to Kimi (Mooncake's conversation trace), 211 in Azure's of 2023, 28 there for code."""

STATED_DOUBT = 0.3
"""What `expected_tokens` may be off: from two thirds of it to one and a half times."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Tokens of a dataset's answers that ended by themselves, and of those that were cut."""

    ended: list[int] = field(default_factory=list[int])
    cut: list[int] = field(default_factory=list[int])


def seen(state: State) -> dict[str, Seen]:
    """What the answers of a run tell, by dataset."""
    found: dict[str, Seen] = {}
    for attempt in state.attempts.values():
        if attempt.answered and attempt.settled is not None:
            of = found.setdefault(attempt.work.dataset, Seen())
            whole = attempt.settled.verdict is Verdict.DONE and attempt.settled.finish is not Finish.LENGTH
            (of.ended if whole else of.cut).append(attempt.settled.tokens)
    return found


def estimate(config: RunConfig, name: str, of: Seen | None) -> Estimate:
    """The best estimate there is: the run's answers, else what RUN.toml expects, else the prior."""
    most, prior = config.max_tokens(name), THINKING if config.thinking(name) else INSTANT
    if of is not None and len(of.ended) + len(of.cut) >= FEWEST:
        curve = kaplan_meier(of.ended, of.cut)
        return Estimate(Source.ANSWERS, curve, _doubt(curve, most, len(of.ended)), len(of.ended) + len(of.cut))
    stated = config.dataset(name).expected_tokens
    if stated is not None:
        return Estimate(Source.EXPECTED, lognormal(stated, prior.sigma, most), STATED_DOUBT)
    return Estimate(Source.PRIOR, lognormal(prior.mean, prior.sigma, most), prior.doubt)


def _doubt(curve: Curve, most: int, ended: int) -> float:
    """Standard error of the mean of so many answers, relative to it, as a deviation of its logarithm."""
    mean = curve.mean(most)
    freedom = max(1, ended - 1)
    student = 1 + (Z10**2 + 1) / (4 * freedom)  # Student's tenth percentile over the normal one, to first order
    relative = student * math.sqrt(curve.variance(most) / max(1, ended)) / mean if mean else 0.0
    return math.sqrt(math.log1p(relative**2))


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second of one stream: at worst, expected, at best. `answers` is how many it was measured on; 0: a prior."""

    slow: float
    expected: float
    fast: float
    answers: int = 0


PRIOR_SPEED = Speed(8.0, 15.0, 30.0)
"""A run of 42 M tokens with 2000 in flight kept 10 tokens/s a slot over its whole length, its emptying tail included."""

_FEWEST_TIMED = 20


def speed(state: State, but: Container[str] = ()) -> Speed:
    """Speed of a stream in the run so far; the prior while fewer than 20 answers tell it. Half as fast or slow may come.

    `but` are tags whose answers tell nothing of those who will be asked.
    """
    ends = [a.settled for a in state.attempts.values() if a.answered and a.settled is not None and a.tag not in but]
    timed: Sequence[tuple[int, float]] = [
        (each.tokens, each.seconds) for each in ends if each.seconds > 0 < each.tokens
    ]
    if len(timed) < _FEWEST_TIMED:
        return PRIOR_SPEED
    mean = sum(tokens for tokens, _ in timed) / sum(seconds for _, seconds in timed)
    return Speed(mean / 1.5, mean, mean * 1.5, len(timed))
