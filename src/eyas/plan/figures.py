"""A plan as `eyas plan --json` prints it: pure figures, from which the tables for people are made too.

The keys are an interface that other programs read: documented in docs/plan.md, never renamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from eyas.ledger import usd
from eyas.plan import engines
from eyas.plan.cost import Costs, SetCost
from eyas.plan.estimate import Estimate, Speed
from eyas.plan.flight import exposure, parts, too_long
from eyas.plan.minutes import Job, Mode, Part, minutes
from eyas.plan.scenarios import MARGIN, MAX_TOKENS, QUOTAS, Ground, Scenario, Wall, cuts, largest, scenarios
from eyas.providers.throughput import Throughput

_FASTER = 0.9
_WORTH_MINUTES = 2.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What else is asked: quotas of the scenarios, tokens/s of a local engine, the length that a trainer cuts rows at."""

    quotas: tuple[int, ...] = QUOTAS
    local_tps: float | None = None
    train_max_length: int | None = None


def figures(ground: Ground, wall: Wall, speed: Speed, wish: Wish, seen: Throughput | None = None) -> dict[str, Any]:
    """All figures of a plan. Money is in US dollars; what the run has already is not in `datasets` and `scenarios`.

    `seen` is how fast the user's own servers were in this run.
    """
    config, base = ground.config, ground.costs()
    found = scenarios(ground, wall, _quotas(ground, wish.quotas))
    chosen = next((each for each in found if each.chosen), None) if config.target.bills else None
    own = None if config.target.bills else engines.pace(wish.local_tps, seen)
    times = {
        mode: minutes_at(ground, wall, base, speed, mode) if own is None else engines.minutes(base, own)
        for mode in Mode
    }
    flying = exposure(ground, wall)
    return {
        "schema": 1,
        "model": config.target.model,
        "backend": config.target.backend,
        "datasets": {each.facts.name: _dataset(each) for each in base.sets},
        "total": _total(base),
        "money": _money(wall),
        "fits": wall.fits(base.expected),
        "comfortable": wall.fits(base.expected, MARGIN),
        "margin": MARGIN,
        "scenarios": [_scenario(each, wall) for each in found],
        "largest_output_tokens": largest(ground, wall),
        "exposure_usd": usd(flying.reserved),
        "in_flight": flying.in_flight,
        "max_in_flight_at_start": flying.at_start,
        "max_in_flight_at_cap": flying.at_end,
        "quotas": _uniform(ground),
        "mode": config.budget.mode,
        "advised_mode": _advised(times),
        "minutes": times[Mode(config.budget.mode)],
        "modes": {mode.value: times[mode] for mode in Mode},
        "chosen_modes": {
            mode.value: minutes_at(ground, wall, chosen.costs, speed, mode) for mode in Mode if chosen is not None
        },
        "speed": {"slow": speed.slow, "expected": speed.expected, "fast": speed.fast, "answers": speed.answers},
        "max_tokens": _cuts(ground, base),
        "endpoints": _endpoints(ground),
        **({} if own is None else {"local": engines.figures(base, own, len(ground.market.rungs))}),
        **_extra(ground, base, wish),
    }


def _quotas(ground: Ground, asked: Sequence[int]) -> list[int]:
    """The quotas of the scenarios, RUN.toml's own among them."""
    own = ground.config.budget.output_tokens
    return [*asked, *([own] if own else [])]


def _cuts(ground: Ground, base: Costs) -> list[dict[str, Any]]:
    own = {of.max_tokens for of in ground.facts.values()}
    return [
        {
            "max_tokens": each.max_tokens,
            "length_share": round(each.share, 6),
            "length_usd": usd(each.cost),
            "usd": usd(each.expected),
            "now": each.max_tokens in own,
        }
        for each in cuts(ground, base, [*{*MAX_TOKENS, *own}])
    ]


def _uniform(ground: Ground) -> str:
    """Whether all datasets have one quota ("one"), quotas that differ ("several"), or none ("none")."""
    found = {of.quota for of in ground.facts.values()}
    return "several" if len(found) > 1 else "none" if found == {None} else "one"


def _dataset(each: SetCost) -> dict[str, Any]:
    of = each.facts
    return {
        "rows": of.rows,
        "prompts": of.prompts,
        "duplicates": of.duplicates,
        "quarantined": of.quarantined,
        "left_out": of.left_out,
        "prompt_tokens": of.prompt_tokens,
        "quota": each.quota,
        "kept_tokens": of.kept,
        "works": of.works,
        "unserved": of.unserved,
        "answers": round(each.load.answers),
        "output_tokens": round(each.load.tokens),
        "output_tokens_low": round(each.low_tokens),
        "output_tokens_high": round(each.high_tokens),
        "short": each.short,
        "usd": band(each),
        "length": _length(each.estimate, of.max_tokens),
    }


def _length(estimate: Estimate, most: int) -> dict[str, Any]:
    """Mean tokens of an answer, with the tenth and ninetieth percentile of what that mean may be, and where it is from."""
    mean = estimate.curve.mean(most)
    return {
        "source": estimate.source.value,
        "answers": estimate.answers,
        "low": round(min(mean, estimate.mean_at(-1.2816, most))),
        "mean": round(mean),
        "high": round(max(mean, estimate.mean_at(1.2816, most))),
    }


def band(of: SetCost | Costs) -> dict[str, float]:
    """US dollars: low, expected, high and at worst."""
    return {"low": usd(of.low), "expected": usd(of.expected), "high": usd(of.high), "worst": usd(of.worst)}


def _total(of: Costs) -> dict[str, Any]:
    return {
        "rows": sum(each.facts.rows for each in of.sets),
        "prompts": sum(each.facts.prompts for each in of.sets),
        "prompt_tokens": sum(each.facts.prompt_tokens for each in of.sets),
        "answers": sum(round(each.load.answers) for each in of.sets),
        "output_tokens": sum(round(each.load.tokens) for each in of.sets),
        "usd": band(of),
    }


def _money(wall: Wall) -> dict[str, Any]:
    amounts = {"cap": wall.cap, "spent": wall.spent, "key": wall.key, "balance": wall.balance, "left": wall.left}
    return {n: None if amount is None else usd(amount) for n, amount in amounts.items()} | {
        "key_limit": wall.key_limit.value
    }


def _scenario(each: Scenario, wall: Wall) -> dict[str, Any]:
    return {
        "output_tokens": each.output_tokens,
        "tokens": sum(round(one.load.tokens) for one in each.costs.sets),
        "usd": band(each.costs),
        "fits": each.fits,
        "chosen": each.chosen,
        "sure": wall.fits(each.costs.high),
        "left_usd": None if each.left is None else usd(each.left),
        "short": {one.facts.name: round(one.load.tokens) + one.facts.kept for one in each.costs.sets if one.short},
    }


def minutes_at(
    ground: Ground, wall: Wall, of: Costs, speed: Speed, mode: Mode, *, share: float = 1.0
) -> dict[str, float]:
    """Minutes at an API: few tokens at the best speed, what is expected, many tokens at the worst; `share` of the answers."""
    cases = {
        "low": ({each.facts.name: each.low_tokens for each in of.sets}, speed.fast),
        "expected": ({each.facts.name: each.load.tokens for each in of.sets}, speed.expected),
        "high": ({each.facts.name: each.high_tokens for each in of.sets}, speed.slow),
    }
    found = {
        name: minutes(
            Job(_some(parts(ground, of, tokens), share), ground.config.limits.in_flight, wall.left, tps), mode
        )
        for name, (tokens, tps) in cases.items()
    }
    return {
        "low": round(min(found["low"], found["expected"]), 1),
        "expected": round(found["expected"], 1),
        "high": round(max(found["high"], found["expected"]), 1),
    }


def _some(of: Sequence[Part], share: float) -> tuple[Part, ...]:
    return tuple(replace(each, answers=each.answers * share) for each in of)


def _advised(times: dict[Mode, dict[str, float] | None]) -> str:
    """Metered where it saves a tenth of the time and two minutes; else strict, which cannot pass the cap."""
    strict, metered = ((times[mode] or {"expected": 0.0})["expected"] for mode in (Mode.STRICT, Mode.METERED))
    return (Mode.METERED if metered < min(_FASTER * strict, strict - _WORTH_MINUTES) else Mode.STRICT).value


def _endpoints(ground: Ground) -> list[dict[str, Any]]:
    """Prices of every endpoint that may answer, and the share of all works that it is expected to do."""
    shares = dict.fromkeys(range(len(ground.market.rungs)), 0.0)
    works = sum(of.works for of in ground.facts.values())
    for of in ground.facts.values():
        for serve, group in of.groups.items():
            for place, share in zip(serve, ground.market.shares(serve), strict=True):
                shares[place] += share * group.works / works
    return [
        {
            "tag": rung.tag,
            "context": max((each.context for each in rung.endpoints if each.context), default=None),
            "usd_per_m_prompt": usd(rung.prices.prompt),
            "usd_per_m_completion": usd(rung.prices.completion),
            "share": round(shares[place], 6),
            "metered": rung.stops,
        }
        for place, rung in enumerate(ground.market.rungs)
    ]


def _extra(ground: Ground, base: Costs, wish: Wish) -> dict[str, Any]:
    """What is only there when it was asked for."""
    extra: dict[str, Any] = {}
    if wish.local_tps is not None and ground.config.target.bills:
        tokens = sum(each.load.tokens for each in base.sets)
        extra["local"] = {"tps": wish.local_tps, "hours": round(tokens / wish.local_tps / 3600, 2), "usd": 0.0}
    if wish.train_max_length is not None:
        beyond = too_long(ground, base, wish.train_max_length)
        extra["too_long"] = {"length": beyond.length, "share": round(beyond.share, 6), "usd": usd(beyond.cost)}
    return extra
