"""A run as it flies: what it reserves at once, its answers to be played for its minutes, and rows too long to train on. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from eyas.ledger import MILLION, reservation
from eyas.plan.cost import Costs, Market, SetCost
from eyas.plan.facts import BUCKET, Rung, SetFacts
from eyas.plan.minutes import Part
from eyas.plan.scenarios import MARGIN, Ground, Wall


@dataclass(frozen=True, slots=True)
class Exposure:
    """What requests in flight reserve together, nano-dollars, and how many the money carries at the start and at its end."""

    in_flight: int
    reserved: int
    at_start: int | None
    at_end: int | None


def exposure(ground: Ground, wall: Wall) -> Exposure:
    """All slots taken by works as they are on average; the end is where the margin is all that is left."""
    works = sum(of.works for of in ground.facts.values())
    one = sum(_reserved(of, ground.market) for of in ground.facts.values()) / works if works else 0.0
    flying = min(ground.config.limits.in_flight, works)
    if wall.left is None or not one:
        return Exposure(flying, round(flying * one), None, None)
    return Exposure(flying, round(flying * one), int(wall.left / one), int(wall.left * MARGIN / one))


def _mix(of: SetFacts, market: Market) -> list[tuple[float, Rung]]:
    """The share of its answers that each endpoint is expected to give."""
    return [
        (group.works / of.works * share, market.rungs[rung])
        for serve, group in of.groups.items()
        for rung, share in zip(serve, market.shares(serve), strict=True)
    ]


def _token(of: SetFacts, market: Market) -> float:
    """Nano-dollars of an output token."""
    return sum(share * rung.prices.completion for share, rung in _mix(of, market)) / MILLION


def _reserved(of: SetFacts, market: Market) -> float:
    """Nano-dollars that all its works would reserve together."""
    return sum(
        group.works
        * share
        * reservation(market.rungs[rung].route.prices, group.prompt_tokens // group.works, of.max_tokens)
        for serve, group in of.groups.items()
        for rung, share in zip(serve, market.shares(serve), strict=True)
    )


def parts(ground: Ground, chosen: Costs, tokens: Mapping[str, float]) -> tuple[Part, ...]:
    """The answers of a run, to be played; `tokens` are those of each dataset in all."""
    return tuple(_part(each, ground.market, tokens[each.facts.name]) for each in chosen.sets if each.load.tokens)


def _part(each: SetCost, market: Market, tokens: float) -> Part:
    of, curve = each.facts, each.estimate.curve
    token = _token(of, market)
    factor = tokens / each.load.tokens
    answers = each.load.answers
    return Part(
        answers=answers,
        length=lambda share: min(float(of.max_tokens), factor * curve.quantile(share, of.max_tokens)),
        deviation=math.sqrt(curve.variance(of.max_tokens)),
        prompt=max(0.0, each.expected / answers - token * each.load.tokens / answers),
        token=token,
        reserved=_reserved(of, market) / of.works,
        stops=sum(share for share, rung in _mix(of, market) if rung.stops),
    )


@dataclass(frozen=True, slots=True)
class TooLong:
    """Rows that reach beyond a trainer's length: their share, and the nano-dollars of the tokens beyond it."""

    length: int
    share: float
    cost: int


def too_long(ground: Ground, chosen: Costs, length: int) -> TooLong:
    """What a trainer that cuts rows (prompt and answer) at that length would throw away."""
    rows = beyond = money = 0.0
    for each in chosen.sets:
        of, curve = each.facts, each.estimate.curve
        part = each.load.answers / of.works if of.works else 0.0
        rows += each.load.answers
        for size, works in of.sizes.items():
            room = length - (size * BUCKET + BUCKET / 2)
            beyond += part * works * (1.0 if room < 0 else curve.beyond(room) if room < of.max_tokens else 0.0)
            money += part * works * curve.excess(room, of.max_tokens) * _token(of, ground.market)
    return TooLong(length, beyond / rows if rows else 0.0, round(money))
