"""A run at one's own servers beside the same run at the API of [fallback]: which is sooner, which is cheaper, and a mix. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eyas.plan import engines
from eyas.plan.estimate import Speed
from eyas.plan.figures import band, minutes_at
from eyas.plan.minutes import Mode
from eyas.plan.scenarios import Ground, Wall

HERE, THERE = "local", "fallback"


@dataclass(frozen=True, slots=True)
class Side:
    """One way to have it done: what is planned there, the money it may take, and the speed of a stream."""

    ground: Ground
    wall: Wall
    speed: Speed


def compared(local: Mapping[str, Any], there: Mapping[str, Any], side: Side, until: float | None) -> dict[str, Any]:
    """The figures of the other way, which of the two is sooner and cheaper, and what a mix takes.

    Args:
        local: the figures of the plan at one's own servers.
        there: those of the plan at the other's.
        side: the other one, to be played in part.
        until: minutes after which it takes over; None: a mix that does half of it here is shown.
    """
    mine, theirs = local["minutes"], there["minutes"]
    known = None if mine is None or theirs is None else (mine["expected"], theirs["expected"])
    return {
        "fallback": dict(there),
        "sooner": None if known is None else HERE if known[0] <= known[1] else THERE,
        "cheaper": HERE if there["total"]["usd"]["expected"] > 0 else None,
        "mix": None if mine is None or theirs is None else _mix(mine["expected"], side, until),
    }


def _mix(local: float, side: Side, until: float | None) -> dict[str, Any]:
    """So many minutes here, what is left then there."""
    after, done = engines.share_done(local, until)
    rest, costs = 1 - done, side.ground.costs()
    mode = Mode(side.ground.config.budget.mode)
    more = minutes_at(side.ground, side.wall, costs, side.speed, mode, share=rest)["expected"] if rest > 0 else 0.0
    return {
        "local_minutes": round(after, 1),
        "local_share": round(done, 4),
        "minutes": round(after + more, 1),
        "usd": {name: rest * amount for name, amount in band(costs).items()},
    }
