"""A run in simulated time: the real engine on a virtual clock, in a market of virtual providers. Nothing is bought."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eyas.errors import UsageError
from eyas.rehearse.crew import Task, play_all
from eyas.rehearse.figures import Compared, Origin, figures
from eyas.rehearse.play import Job, Played, rehearse
from eyas.rehearse.smaller import smaller
from eyas.rehearse.variants import variants

__all__ = ["Job", "Origin", "Played", "Wish", "rehearsal", "rehearse"]

SMALL = 100
"""Variants are played with so many requests in flight, all else in proportion, and so is the run itself beside them."""
SMALL_SEEDS = 4
"""How often each is played: what differs most from play to play is the last long answer, whatever the size."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How a run is rehearsed.

    Attributes:
        seeds: how often it is played, 1 or more.
        compare: whether other settings are played too.
        workers: processes; None: one a core.
        heard: told how many plays are done, and of how many.
    """

    seeds: int = 1
    compare: bool = True
    workers: int | None = None
    heard: Callable[[int, int], None] = lambda _done, _of: None


def rehearsal(job: Job, origin: Origin, wish: Wish) -> dict[str, Any]:
    """Play a run, and what other settings would give: the figures of `eyas rehearse --json`.

    Raises:
        UsageError: the run cannot be asked: no endpoint may answer, or none takes a dataset's max_tokens.
    """
    flying = job.config.limits.in_flight
    factor = min(1.0, SMALL / flying)
    others = variants(job.config) if wish.compare else []
    tasks = [Task(job, seed) for seed in range(wish.seeds)]
    for config in (job.config, *(each.config for each in others)) if others else ():
        shrunk = smaller(replace(job, config=config), factor)
        tasks += [Task(shrunk, seed, optional=config is not job.config) for seed in range(SMALL_SEEDS)]
    done = play_all(tasks, wish.workers, lambda number: wish.heard(number, len(tasks)))
    plays, rest = _present(done[: wish.seeds]), done[wish.seeds :]
    if not any(each.requests for each in plays):
        raise UsageError(
            "nothing is left to ask: every quota is met, or every prompt has its answer; raise a quota, or add prompts"
        )
    groups = [_present(rest[at : at + SMALL_SEEDS]) for at in range(0, len(rest), SMALL_SEEDS)]
    compared = [
        Compared(other.setting, groups[0], group) for other, group in zip(others, groups[1:], strict=True) if group
    ]
    return {**figures(job.config, origin, plays, compared), "compared_in_flight": round(flying * factor)}


def _present(plays: Sequence[Played | None]) -> list[Played]:
    return [each for each in plays if each is not None]
