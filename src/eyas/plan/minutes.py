"""How long a run takes: its answers played through its slots, once reserved in full and once as they are expected. Pure.

No clock and no chance: lengths are taken from the curve in a fixed low-discrepancy order (the R sequence, Roberts 2018,
https://extremelearning.com.au/unreasonable-effectiveness-of-quasirandom-sequences/), so the same plan takes the same minutes.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

MOST_PLAYED = 20_000
"""A larger run is played smaller: answers, slots and dollars by the same factor, so that its time stays what it is."""

FIRST_TOKEN = 2.0
"""Seconds until an answer begins: a prior, small beside the answer itself."""

CERTAINTY = math.log(1 / 1e-3)
"""Metered admission leaves one chance in a thousand to pass the cap."""


class Mode(StrEnum):
    """How the cap is kept: STRICT reserves each request in full, METERED what it is expected to cost."""

    STRICT = "strict"
    METERED = "metered"


@dataclass(frozen=True, slots=True)
class Part:
    """Answers of one dataset in a run: how many, the length that a share of them does not pass, and their money.

    Attributes:
        length: share in [0, 1) -> tokens.
        deviation: of the tokens of one answer.
        prompt: nano-dollars of a prompt; `token` of an output token; `reserved` of a request in full.
        stops: the share of answers whose bill ends with the stream, so that they can be metered.
    """

    answers: float
    length: Callable[[float], float]
    deviation: float
    prompt: float
    token: float
    reserved: float
    stops: float


@dataclass(frozen=True, slots=True)
class Job:
    """A run to play. `room` is nano-dollars that may still be spent (None: no cap); `speed` is tokens/s of a stream."""

    parts: tuple[Part, ...]
    slots: int
    room: float | None
    speed: float


@dataclass(frozen=True, slots=True)
class _Answer:
    seconds: float
    cost: float
    held: float
    reserved: float
    variance: float


def minutes(job: Job, mode: Mode) -> float:
    """Minutes until the last answer ends, or until the cap lets none begin and none flies."""
    total = sum(part.answers for part in job.parts)
    scale = min(1.0, MOST_PLAYED / total) if total else 1.0
    room = math.inf if job.room is None else job.room * scale
    # Rounded so that a run of one answer is one, and a tenth of a slot is not none.
    slots = max(1, round(job.slots * scale))
    return _play(_answers(job, mode, math.ceil(total * scale)), slots, room) / 60


def _answers(job: Job, mode: Mode, count: int) -> Iterable[_Answer]:
    """The answers in the order they start. The three numbers of a point say which dataset, which length, which endpoint."""
    limits = list(accumulate(part.answers for part in job.parts))
    for number in range(1, count + 1):
        which, where, who = (number * step % 1.0 for step in _STEPS)
        part = job.parts[min(bisect_right(limits, which * limits[-1]), len(job.parts) - 1)]
        tokens = part.length(where)
        cost = part.prompt + part.token * tokens
        metered = mode is Mode.METERED and who < part.stops
        yield _Answer(
            seconds=FIRST_TOKEN + tokens / job.speed,
            cost=cost,
            # What is expected of many in flight is what they will have cost.
            held=cost if metered else max(cost, part.reserved),
            reserved=max(cost, part.reserved),
            variance=(part.token * part.deviation) ** 2 if metered else 0.0,
        )


_PLASTIC = 1.2207440846057596
_STEPS = (1 / _PLASTIC, 1 / _PLASTIC**2, 1 / _PLASTIC**3)


def _play(answers: Iterable[_Answer], slots: int, room: float) -> float:
    """Seconds until all have ended."""
    now = settled = held = variance = 0.0
    flying: list[tuple[float, int, _Answer]] = []
    for number, answer in enumerate(answers):
        while flying and (len(flying) >= slots or not _fits(answer, settled + held, variance, room)):
            now, _, ended = heapq.heappop(flying)
            settled, held, variance = settled + ended.cost, held - ended.held, max(0.0, variance - ended.variance)
        if not _fits(answer, settled, 0.0, room):
            return now
        heapq.heappush(flying, (now + answer.seconds, number, answer))
        held, variance = held + answer.held, variance + answer.variance
    return max((end for end, _, _ in flying), default=now)


def _fits(answer: _Answer, spent: float, variance: float, room: float) -> bool:
    """Whether it fits in full; or, where it is metered, as it is expected with what chance may add (Bernstein)."""
    if spent + answer.reserved <= room:
        return True
    margin = math.sqrt(2 * CERTAINTY * (variance + answer.variance)) + answer.reserved * CERTAINTY / 3
    return answer.held < answer.reserved and spent + answer.held + margin <= room
