"""What a dataset's answers will cost under a quota: tokens and dollars, low, expected and worst. Pure.

Low and high are the tenth and the ninetieth percentile, expected is the mean. Worst is every answer at max_tokens on the dearest endpoint that may serve
it, which is what `strict` reserves; where a quota ends a dataset before its prompts do, it is the quota filled by such
answers, and as many prompts as short answers would need: more than can happen at once. All of them rise with quota and price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from eyas.ledger import cost_of
from eyas.plan.estimate import Z10, Estimate, Source
from eyas.plan.facts import Group, Rung, SetFacts
from eyas.types import Prices

ROOM = 1000
"""Streams that one endpoint is taken to carry at once while a run has not shown it: what is more goes to the next."""

VISIBLE = 0.35
"""The share of an answer with thinking on that is no reasoning and so comes back in the history of later turns: a prior."""

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Market:
    """Who answers: the endpoints by preference, how many requests fly, and tokens that each brought where that is known."""

    rungs: tuple[Rung, ...]
    in_flight: int
    observed: Mapping[str, int]

    def shares(self, serve: Sequence[int]) -> list[float]:
        """The share of the work that each of these rungs is expected to do; the sum is 1."""
        weights = [float(self.observed.get(self.rungs[each].tag, 0)) for each in serve]
        if not sum(weights) and not any(self.rungs[each].prices.completion for each in serve):
            return [1 / len(serve)] * len(serve)  # servers of one's own are asked alike
        if not sum(weights):
            left = float(self.in_flight)
            for place in range(len(serve)):
                weights[place] = min(left, ROOM)
                left -= weights[place]
        return [weight / sum(weights) for weight in weights]

    def lowest(self, serve: Sequence[int]) -> Prices:
        """The lowest of their prices, each part by itself."""
        prices = [self.rungs[each].prices for each in serve]
        return Prices(min(p.prompt for p in prices), min(p.completion for p in prices), min(p.request for p in prices))

    def dearest(self, serve: Sequence[int]) -> Prices:
        """The highest of their prices, each part by itself."""
        prices = [self.rungs[each].prices for each in serve]
        return Prices(max(p.prompt for p in prices), max(p.completion for p in prices), max(p.request for p in prices))


@dataclass(frozen=True, slots=True)
class Load:
    """So many answers with so many tokens in all."""

    answers: float
    tokens: float


@dataclass(frozen=True, slots=True)
class SetCost:
    """One dataset under a quota: the load that is expected, and nano-dollars. `floor` is what is expected, at the lowest prices.

    `low_tokens` and `high_tokens` are the tenth and ninetieth percentile of the load's. `short` says that the prompts are not expected to fill the quota.
    """

    facts: SetFacts
    estimate: Estimate
    quota: int | None
    load: Load
    low_tokens: float
    high_tokens: float
    low: int
    floor: int
    expected: int
    high: int
    worst: int
    short: bool


@dataclass(frozen=True, slots=True)
class Costs:
    """All datasets, and the nano-dollars of their sum; what is common to all sets does not average out in it."""

    sets: tuple[SetCost, ...]
    low: int
    expected: int
    high: int
    worst: int


def costs(
    facts: Mapping[str, SetFacts],
    estimates: Mapping[str, Estimate],
    market: Market,
    quotas: Mapping[str, int | None],
) -> Costs:
    """What is still to come under these quotas (output tokens of a dataset in all, None for every prompt)."""
    sets = tuple(_set_cost(of, estimates[name], market, quotas[name]) for name, of in facts.items())
    floor, expected = sum(each.floor for each in sets), sum(each.expected for each in sets)
    return Costs(
        sets,
        low=max(0, floor - _together([(each.estimate.source, each.floor - each.low) for each in sets])),
        expected=expected,
        high=expected + _together([(each.estimate.source, each.high - each.expected) for each in sets]),
        worst=sum(each.worst for each in sets),
    )


def _together(deviations: Sequence[tuple[Source, int]]) -> int:
    """The deviation of a sum: what rests on a prior is wrong for all alike and adds, the rest averages out."""
    common = sum(deviation for source, deviation in deviations if source is Source.PRIOR)
    own = sum(deviation**2 for source, deviation in deviations if source is not Source.PRIOR)
    return math.isqrt(common**2 + own)


def _set_cost(of: SetFacts, estimate: Estimate, market: Market, quota: int | None) -> SetCost:
    left = None if quota is None else max(0, quota - of.kept)
    load = _expected(of, estimate, left)
    low, worst = _low(of, estimate, left, load), _worst(of, estimate, left, load)
    prices = {serve: (market.lowest(serve), market.dearest(serve)) for serve in of.groups}
    history = estimate.curve.mean(of.max_tokens) * (VISIBLE if of.thinking else 1.0)
    floor = {serve: [(1.0, lowest)] for serve, (lowest, _) in prices.items()}
    mixed = {
        serve: [(share, market.rungs[i].prices) for i, share in zip(serve, market.shares(serve), strict=True)]
        for serve in of.groups
    }
    at_floor = pay(of, load, floor, history)
    expected = max(at_floor, pay(of, load, mixed, history))
    high = _high(of, estimate, left, load)
    return SetCost(
        facts=of,
        estimate=estimate,
        quota=quota,
        load=load,
        low_tokens=low.tokens,
        high_tokens=high.tokens,
        low=min(at_floor, pay(of, low, floor, history)),
        floor=at_floor,
        expected=expected,
        high=max(expected, pay(of, high, mixed, history)),
        worst=max(expected, _reserved(of, worst, prices)),
        short=left is not None and load.tokens < 0.995 * left,
    )


def pay(of: SetFacts, load: Load, mix: Mapping[tuple[int, ...], Sequence[tuple[float, Prices]]], history: float) -> int:
    """Nano-dollars of a load that falls on the groups alike; `history` is tokens of an earlier answer in a later turn."""
    return sum(
        sum(
            _bill(prices, (group.prompt_tokens + group.history * history) * part * share, tokens * share, works * share)
            for share, prices in mix[serve]
        )
        for serve, group, part, works, tokens in _parts(of, load)
    )


def _reserved(of: SetFacts, load: Load, prices: Mapping[tuple[int, ...], tuple[Prices, Prices]]) -> int:
    """As `pay`, each prompt with the margin that a reservation has, and the history as long as it may get."""
    return sum(
        _bill(
            prices[serve][1],
            (1.05 * (group.prompt_tokens + group.history * of.max_tokens) + 65 * group.works) * part,
            tokens,
            works,
        )
        + (0 if prices[serve][1].free else math.ceil(works))  # each reservation is rounded up by itself
        for serve, group, part, works, tokens in _parts(of, load)
    )


def _parts(of: SetFacts, load: Load) -> list[tuple[tuple[int, ...], Group, float, float, float]]:
    """Of each group: which rungs serve it, the share of it that is asked, its answers and their tokens."""
    works = of.works
    if not works:
        return []
    part = load.answers / works
    return [(serve, g, part, g.works * part, load.tokens * g.works / works) for serve, g in of.groups.items()]


def _bill(prices: Prices, prompt_tokens: float, completion_tokens: float, requests: float) -> int:
    tokens = cost_of(Prices(prices.prompt, prices.completion), math.ceil(prompt_tokens), math.ceil(completion_tokens))
    return tokens + math.ceil(requests * prices.request)


def _law(of: SetFacts, estimate: Estimate) -> tuple[float, float]:
    """All tokens that the owed works would bring, as a log-normal: (mean of the logarithm, its deviation)."""
    mean, works = estimate.curve.mean(of.max_tokens), of.works
    spread = math.log1p(estimate.curve.variance(of.max_tokens) / (works * mean**2)) + estimate.doubt**2
    return math.log(works * mean) - spread / 2, math.sqrt(spread)


def _expected(of: SetFacts, estimate: Estimate, left: int | None) -> Load:
    works, mean = of.works, estimate.curve.mean(of.max_tokens)
    if not works or not mean or left == 0:
        return Load(0.0, 0.0)
    if left is None:
        return Load(works, works * mean)
    mu, sigma = _law(of, estimate)
    if sigma < 1e-9:
        tokens = min(float(left), works * mean)
    else:
        # The mean of a log-normal cut at the quota.
        point = (math.log(left) - mu) / sigma
        tokens = works * mean * _NORMAL.cdf(point - sigma) + left * (1 - _NORMAL.cdf(point))
    return Load(min(works, tokens / mean), min(tokens, float(left), works * mean))


def _low(of: SetFacts, estimate: Estimate, left: int | None, load: Load) -> Load:
    if not load.tokens:
        return load
    mu, sigma = _law(of, estimate)
    tokens = min(load.tokens, math.exp(mu - Z10 * sigma))
    if left is None:
        return Load(load.answers, tokens)
    longest = estimate.mean_at(Z10, of.max_tokens)  # long answers fill a quota with fewer prompts
    return Load(min(load.answers, left / longest) if longest else load.answers, tokens)


def _high(of: SetFacts, estimate: Estimate, left: int | None, load: Load) -> Load:
    if not load.tokens:
        return load
    mu, sigma = _law(of, estimate)
    tokens = min(math.exp(mu + Z10 * sigma), of.works * float(of.max_tokens))
    if left is None:
        return Load(load.answers, max(load.tokens, tokens))
    shortest = estimate.mean_at(-Z10, of.max_tokens)
    answers = min(float(of.works), left / shortest) if shortest else load.answers
    return Load(max(load.answers, answers), max(load.tokens, min(tokens, float(left))))


def _worst(of: SetFacts, estimate: Estimate, left: int | None, load: Load) -> Load:
    works, most = of.works, of.max_tokens
    if left is None or not load.tokens:
        return Load(works, works * float(most)) if left is None else load
    shortest = estimate.mean_at(-Z10, most)
    full = min(works, -(-left // most))
    answers = min(float(works), max(load.answers, left / shortest + 1 if shortest else works, full))
    return Load(answers, max(load.tokens, float(full * most)))
