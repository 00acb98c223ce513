"""What fits the money: costs under several quotas, and what another max_tokens would cut. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from eyas.config import RunConfig
from eyas.plan.cost import Costs, Market, costs
from eyas.plan.estimate import Estimate
from eyas.plan.facts import SetFacts

QUOTAS = (5_000_000, 7_000_000, 8_000_000, 10_000_000)
MAX_TOKENS = (4096, 8192, 16_384, 32_768)

MARGIN = 0.05
"""The share of what may be spent that a chosen quota leaves free, for what an estimate does not know."""

_STEP = 100_000


class KeyLimit(StrEnum):
    """What is known of the key's own limit: UNKNOWN without a key or an answer, NONE if it has none."""

    UNKNOWN = "unknown"
    NONE = "none"
    LIMITED = "limited"


@dataclass(frozen=True, slots=True)
class Wall:
    """What may be spent, nano-dollars; None where there is no limit, or none is known.

    `cap` and `spent` are the run's own; `key` is what the key may still spend, `balance` what the account holds.
    """

    cap: int | None
    spent: int = 0
    key: int | None = None
    balance: int | None = None
    key_limit: KeyLimit = KeyLimit.UNKNOWN

    @property
    def left(self) -> int | None:
        """What this run may still spend: the lowest of all walls, never negative."""
        own = None if self.cap is None else self.cap - self.spent
        known = [each for each in (own, self.key, self.balance) if each is not None]
        return max(0, min(known)) if known else None

    def fits(self, nano: int, margin: float = 0.0) -> bool:
        """Whether that much may be spent, and a share of all that is left stays free."""
        return self.left is None or nano <= self.left * (1 - margin)


@dataclass(frozen=True, slots=True)
class Ground:
    """All that scenarios share."""

    config: RunConfig
    facts: Mapping[str, SetFacts]
    estimates: Mapping[str, Estimate]
    market: Market

    def costs(self, quota: int | None = None, *, own: bool = True) -> Costs:
        """What is to come under RUN.toml's quotas (`own`), or under one quota for every dataset that names none."""
        quotas = {
            name: of.quota if own else self.config.dataset(name).output_tokens or quota
            for name, of in self.facts.items()
        }
        return costs(self.facts, self.estimates, self.market, quotas)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One quota for every dataset, and what it costs; `left` is what it leaves of the money, negative where it does not fit."""

    output_tokens: int
    costs: Costs
    left: int | None
    fits: bool
    chosen: bool = False


def scenarios(ground: Ground, wall: Wall, quotas: Sequence[int]) -> tuple[Scenario, ...]:
    """Every quota, smallest first. Chosen is the largest that is expected to fit with the margin; perhaps none."""
    made = [_scenario(ground, wall, quota) for quota in sorted(set(quotas))]
    fit = [each.output_tokens for each in made if wall.fits(each.costs.expected, MARGIN)]
    return tuple(dataclasses.replace(each, chosen=each.output_tokens == max(fit, default=-1)) for each in made)


def _scenario(ground: Ground, wall: Wall, quota: int) -> Scenario:
    of = ground.costs(quota, own=False)
    left = None if wall.left is None else wall.left - of.expected
    return Scenario(quota, of, left, wall.fits(of.expected))


def largest(ground: Ground, wall: Wall) -> int | None:
    """The largest quota, in steps of 100,000 tokens, that is expected to fit with the margin; None: every prompt fits."""
    if wall.fits(ground.costs(None, own=False).expected, MARGIN):
        return None
    low, high = 0, 1 + max((of.works * of.max_tokens + of.kept for of in ground.facts.values()), default=0) // _STEP
    while high - low > 1:
        middle = (low + high) // 2
        if wall.fits(ground.costs(middle * _STEP, own=False).expected, MARGIN):
            low = middle
        else:
            high = middle
    return low * _STEP


@dataclass(frozen=True, slots=True)
class Cut:
    """What another max_tokens would cut: the share of answers that end there, their nano-dollars, and those of all."""

    max_tokens: int
    share: float
    cost: int
    expected: int


def cuts(ground: Ground, chosen: Costs, sizes: Sequence[int]) -> tuple[Cut, ...]:
    """For each size, which answers would be cut at it, under the quotas of those costs."""
    quotas = {each.facts.name: each.quota for each in chosen.sets}
    return tuple(_cut(ground, quotas, size) for size in sorted(set(sizes)))


def _cut(ground: Ground, quotas: Mapping[str, int | None], size: int) -> Cut:
    facts = {name: dataclasses.replace(of, max_tokens=size) for name, of in ground.facts.items()}
    made = costs(facts, ground.estimates, ground.market, quotas)
    answers = sum(each.load.answers for each in made.sets)
    ended = money = 0.0
    for each in made.sets:
        if each.load.tokens:
            share = each.estimate.curve.beyond(size)
            ended += share * each.load.answers
            money += each.expected * share * size * each.load.answers / each.load.tokens
    return Cut(size, ended / answers if answers else 0.0, round(money), made.expected)
