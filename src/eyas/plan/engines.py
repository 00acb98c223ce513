"""How long a run takes at servers of one's own, and what it is to go on at an API from some hour on. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from eyas.plan.cost import Costs
from eyas.providers.throughput import Throughput


class Known(StrEnum):
    """Where the tokens a second of one's own servers are from: GIVEN by the user, MEASURED by this run, or UNKNOWN."""

    GIVEN = "given"
    MEASURED = "measured"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Pace:
    """Output tokens a second of all servers together; `tps` None: nobody knows. `seen` is what this run has measured."""

    known: Known
    tps: float | None = None
    seen: Throughput | None = None


def pace(given: float | None, seen: Throughput | None) -> Pace:
    """What the user says goes before what was measured."""
    if given is not None:
        return Pace(Known.GIVEN, given, seen)
    return Pace(Known.UNKNOWN) if seen is None else Pace(Known.MEASURED, seen.tps, seen)


def minutes(of: Costs, at: Pace) -> dict[str, float] | None:
    """Minutes for few tokens, as many as expected, and many; None where the pace is not known."""
    if at.tps is None:
        return None
    tokens = {
        "low": sum(each.low_tokens for each in of.sets),
        "expected": sum(each.load.tokens for each in of.sets),
        "high": sum(each.high_tokens for each in of.sets),
    }
    return {name: round(count / at.tps / 60, 1) for name, count in tokens.items()}


def figures(of: Costs, at: Pace, replicas: int) -> dict[str, Any]:
    """What `local` of `eyas plan --json` holds for a run at one's own servers."""
    tokens = sum(each.load.tokens for each in of.sets)
    return {
        "tps": None if at.tps is None else round(at.tps, 1),
        "hours": None if at.tps is None else round(tokens / at.tps / 3600, 2),
        "usd": 0.0,
        "source": at.known.value,
        "answers": at.seen.answers if at.seen else 0,
        "in_flight": round(at.seen.in_flight, 1) if at.seen else None,
        "replicas": replicas,
    }


def share_done(local: float, until: float | None) -> tuple[float, float]:
    """When the API takes over, and the share of the tokens that is there by then.

    Args:
        local: minutes that all of it takes at one's own servers.
        until: minutes after which the API takes over; None: half of it is taken, to show what a mix would be.
    """
    if local <= 0:
        return 0.0, 1.0
    after = local / 2 if until is None else min(until, local)
    return after, after / local
