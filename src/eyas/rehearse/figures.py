"""A rehearsal as `eyas rehearse --json` prints it: pure figures, of which the tables for people are made too.

The keys are an interface that other programs read: documented in docs/rehearse.md, never renamed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eyas.config import RunConfig
from eyas.ledger import usd
from eyas.rehearse.play import Played
from eyas.types import StopReason

BETTER = 0.95
"""A variant is advised where it takes at most this share of the minutes, or of the dollars a token, and less with every seed..."""
NO_WORSE = 1.01
"""...and no more of the other than this, for at least as many tokens..."""
MORE_CUT = 0.02
"""...and cuts no larger share of the answers short than the run itself and this."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a rehearsal's assumptions come from.

    Attributes:
        run: the path of its RUN.toml; empty for the scenario's own run.
        scenario: its name.
        endpoints: "list" (the API's own) or "scenario".
        measured: how many endpoints of the list came with a measured speed.
        lengths: by dataset "answers", "expected_tokens" or "scenario".
        spent: nano-dollars that the run has settled already.
    """

    run: str
    scenario: str
    endpoints: str
    measured: int
    lengths: Mapping[str, str]
    spent: int = 0


@dataclass(frozen=True, slots=True)
class Compared:
    """A variant and the run itself, both played smaller with the same seeds."""

    setting: str
    here: Sequence[Played]
    there: Sequence[Played]


def figures(config: RunConfig, origin: Origin, plays: Sequence[Played], compared: Sequence[Compared]) -> dict[str, Any]:
    """All figures of a rehearsal. Money is in US dollars; percentiles are over the seeds."""
    answers = sum(each.answers for each in plays)
    base = {
        "minutes": _band(plays, lambda each: each.seconds / 60, 2),
        "usd": _band(plays, lambda each: usd(each.paid), 4),
        "output_tokens": _band(plays, lambda each: each.tokens, 0),
        "tokens_per_second": _band(plays, lambda each: each.tokens / each.seconds if each.seconds else 0.0, 0),
        "tail_minutes": _band(plays, lambda each: each.tail / 60, 2),
        "in_flight": _band(plays, lambda each: each.flying, 0),
        "refused_share": _band(plays, _refused, 5),
        "exposure_usd": _band(plays, lambda each: usd(each.peak_exposure), 2),
        "yield": _band(plays, _yield, 5),
        "cut_share": _band(plays, _cut, 5),
    }
    rows = [_variant(each, base) for each in compared]
    return {
        "schema": 1,
        "run": origin.run or None,
        "scenario": origin.scenario,
        "model": config.target.model,
        "assumed": {"endpoints": origin.endpoints, "measured": origin.measured, "lengths": dict(origin.lengths)},
        "settings": {
            "in_flight": config.limits.in_flight,
            "max_tokens": config.target.max_tokens,
            "mode": config.budget.mode,
            "routing": config.providers.routing,
            "usd": config.budget.usd,
            "spent_usd": usd(origin.spent),
        },
        "seeds": len(plays),
        "ends": dict(Counter(each.reason for each in plays)),
        **base,
        "answers": round(answers / len(plays)),
        "requests": round(sum(each.requests for each in plays) / len(plays)),
        "wasted_usd": usd(round(sum(each.wasted for each in plays) / len(plays))),
        "unknown_usd": usd(round(sum(each.unknown for each in plays) / len(plays))),
        "datasets": {
            name: round(sum(each.datasets[name] for each in plays) / len(plays)) for name in plays[0].datasets
        },
        "providers": _shares(plays),
        "variants": rows,
        "advice": next((each["setting"] for each in sorted(rows, key=_gain) if each["better"]), None),
    }


def _band(plays: Sequence[Played], of: Callable[[Played], float], digits: int) -> dict[str, float]:
    """The tenth, fiftieth and ninetieth percentile, interpolated."""
    values = sorted(map(of, plays))
    return {f"p{share}": round(_quantile(values, share / 100), digits) for share in (10, 50, 90)}


def _quantile(values: Sequence[float], share: float) -> float:
    place = share * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def _refused(each: Played) -> float:
    return each.refused / each.requests if each.requests else 0.0


def _yield(each: Played) -> float:
    return each.kept / each.paid if each.paid else 1.0


def _cut(each: Played) -> float:
    return each.cut / each.answers if each.answers else 0.0


def _shares(plays: Sequence[Played]) -> dict[str, float]:
    counts = sum((Counter(each.providers) for each in plays), Counter[str]())
    return {tag: round(number / counts.total(), 5) for tag, number in counts.most_common()}


def _variant(of: Compared, base: Mapping[str, Any]) -> dict[str, Any]:
    """A variant's figures: the run's own, changed as the smaller plays differ."""
    minutes, dollars, tokens = (_ratio(of, each) for each in (_seconds, _paid, _tokens))
    cut = _shifted(of, base, "cut_share", _cut)
    dearness = dollars / tokens if tokens else math.inf
    enough = tokens * NO_WORSE >= 1 and cut <= base["cut_share"]["p50"] + MORE_CUT and not _stranded(of)
    faster = minutes <= BETTER and dearness <= NO_WORSE and _always(of, _seconds)
    cheaper = dearness <= BETTER and minutes <= NO_WORSE and _always(of, _dearness)
    return {
        "setting": of.setting,
        "minutes": round(base["minutes"]["p50"] * minutes, 2),
        "usd": round(base["usd"]["p50"] * dollars, 4),
        "output_tokens": round(base["output_tokens"]["p50"] * tokens),
        "minutes_ratio": round(minutes, 4),
        "usd_ratio": round(dearness, 4) if tokens else None,
        "in_flight": round(base["in_flight"]["p50"] * _ratio(of, _flying)),
        "refused_share": round(_shifted(of, base, "refused_share", _refused), 5),
        "cut_share": round(cut, 5),
        "yield": round(_mean(of.there, _yield), 5),
        "ends": dict(Counter(each.reason for each in of.there)),
        "better": bool(enough and (faster or cheaper)),
    }


def _shifted(of: Compared, base: Mapping[str, Any], key: str, what: Callable[[Played], float]) -> float:
    """The run's own share, as it differs between the smaller plays: in these windows are coarser, and more is refused."""
    return min(1.0, max(0.0, base[key]["p50"] + _mean(of.there, what) - _mean(of.here, what)))


def _stranded(of: Compared) -> bool:
    """Whether it ends for want of endpoints or money where the run itself does not."""
    return bool({each.reason for each in of.there} - {each.reason for each in of.here} - {StopReason.COMPLETE.value})


def _always(of: Compared, what: Callable[[Played], float]) -> bool:
    """Whether it is less with every seed: a single long answer at the end must not decide."""
    return all(what(there) < what(here) for here, there in zip(of.here, of.there, strict=True))


def _gain(row: Mapping[str, Any]) -> float:
    return min(row["minutes_ratio"], row["usd_ratio"] or 1.0)


def _ratio(of: Compared, what: Callable[[Played], float]) -> float:
    here = _mean(of.here, what)
    return _mean(of.there, what) / here if here else 1.0


def _mean(plays: Sequence[Played], what: Callable[[Played], float]) -> float:
    return sum(map(what, plays)) / len(plays)


def _seconds(each: Played) -> float:
    return each.seconds


def _paid(each: Played) -> float:
    return float(each.paid)


def _tokens(each: Played) -> float:
    return float(each.tokens)


def _dearness(each: Played) -> float:
    return each.paid / each.tokens if each.tokens else math.inf


def _flying(each: Played) -> float:
    return each.flying
