"""When a running session will be over, from what is owed, what flies and how long answers take. Pure.

What waits begins one after the other as slots become free; then the last of many answers ends, which takes far longer than
the mean one. Lengths, in tokens and in seconds, are Kaplan-Meier curves (forecast.py). The end is the moment by which all has
ended in one case of two.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Literal, NamedTuple

from eyas.forecast import LONGEST, TENTHS, Lengths, Times
from eyas.state import DatasetState, State

Mode = Literal["strict", "metered"]

_STEPS = 18
_AGES = 4
_LEAST = 1e-12
_HALF = math.log(2)
_DEVIATIONS = 2.0
_ENOUGH = 0.005
_MOST_ROUNDS = 2.0


class By(StrEnum):
    """What ends the session: all is answered that is wanted, or the money is spent."""

    COMPLETE = "complete"
    CAP = "cap"


class Stream(NamedTuple):
    """An answer in flight: its dataset, the tokens that came (0 where that is not known), and its seconds so far."""

    dataset: str
    tokens: int
    seconds: float


class End(NamedTuple):
    """The predicted end: seconds from now, tokens that will be kept until then, and what ends it."""

    seconds: float
    tokens: float
    by: By


class Curve:
    """The share of answers that is longer than so many units, straight between the edges of the bins."""

    def __init__(self, lengths: Lengths, so_far: Iterable[int]) -> None:
        self.edges, self.shares = lengths.longer(so_far)
        beyond, beyonds = 0.0, [0.0]
        for (low, high), (first, last) in reversed(list(zip(pairwise(self.edges), pairwise(self.shares), strict=True))):
            beyond += (high - low) * (first + last) / 2
            beyonds.append(beyond)
        self._beyond = beyonds[::-1]

    @property
    def mean(self) -> float:
        """The mean length."""
        return self._beyond[0]

    @property
    def deviation(self) -> float:
        """The standard deviation of a length."""
        steps = zip(pairwise(self.edges), pairwise(self.shares), strict=True)
        square = sum((high**2 - low**2) * (first + last) / 2 for (low, high), (first, last) in steps)
        return math.sqrt(max(0.0, square - self.mean**2))

    def longer(self, length: float) -> float:
        """The share that is longer."""
        if length >= self.edges[-1]:
            return 0.0
        index = bisect_right(self.edges, length) - 1
        low, high = self.edges[index : index + 2]
        first, last = self.shares[index : index + 2]
        return first + (last - first) * (length - low) / (high - low)

    def left(self, length: float) -> float:
        """What is still to come, on average, of an answer that has `length`."""
        share = self.longer(length)
        if share < _LEAST:
            return 0.0
        index = bisect_right(self.edges, length) - 1
        inside = (self.edges[index + 1] - length) * (share + self.shares[index + 1]) / 2
        return (inside + self._beyond[index + 1]) / share


@dataclass(frozen=True, slots=True)
class _Batch:
    """Answers alike: how many, the curve of their times, and `age`, the tenths of a second that they have run for."""

    count: float
    curve: Curve
    age: float = 0.0

    def done(self, tenths: float) -> float:
        """Logarithm of the probability that all of them have ended after so much time."""
        still = self.curve.longer(self.age + tenths) / max(self.curve.longer(self.age), _LEAST)
        return self.count * math.log(max(1 - still, _LEAST))

    def done_begun(self, tenths: float, span: float) -> float:
        """The same where they begin one after the other, over `span` from now on."""
        if span <= 0:
            return self.done(tenths)
        first, last = tenths - span, tenths
        cuts = [first, *(edge for edge in self.curve.edges if first < edge < last), last]
        parts = (
            (high - low) * math.log(max(1 - self.curve.longer((low + high) / 2), _LEAST))
            for low, high in pairwise(cuts)
        )
        return self.count * sum(parts) / span


def end(
    state: State,
    lengths: Mapping[str, Lengths],
    times: Times,
    streams: Iterable[Stream],
    stranded: Mapping[str, int] | None = None,
    mode: Mode = "strict",
) -> End | None:
    """When the session is over; None while too little is known, or nothing flies though something is wanted.

    Args:
        state: the run as it stands.
        lengths: tokens of the answers that came, by dataset.
        times: the seconds that they took.
        streams: what flies.
        stranded: turns that will not be asked, by dataset.
        mode: how the cap is kept: where each request is reserved in full, fewer and fewer fly at the end of the money.
    """
    flying: dict[str, list[Stream]] = {name: [] for name in lengths if name in state.datasets}
    for stream in streams:
        flying.setdefault(stream.dataset, []).append(stream)
    sets: list[_Set] = []
    for name, own in flying.items():
        known = times.of(name)
        if known is None or name not in lengths:
            return None
        tokens = Curve(lengths[name], (stream.tokens for stream in own))
        taken = Curve(known, (round(stream.seconds * TENTHS) for stream in own))
        sets.append(_Set(state.datasets[name], own, tokens, taken, (stranded or {}).get(name, 0)))
    return _of(state, sets, mode)


@dataclass(slots=True)
class _Set:
    """One dataset: what of it flies, the curves of its tokens and times, turns that are not asked."""

    dataset: DatasetState
    flying: list[Stream]
    tokens: Curve
    times: Curve
    stranded: int

    @property
    def left(self) -> float:
        """Tokens still to come of what flies."""
        return sum(self.tokens.left(stream.tokens) for stream in self.flying)

    @property
    def waiting(self) -> float:
        """Answers that have not begun, as far as they are wanted."""
        works = max(0, self.dataset.works - sum(self.dataset.ended.values()) - self.stranded - len(self.flying))
        quota = self.dataset.quota
        if quota.limit is None or not works:
            return works
        coming = sum(stream.tokens for stream in self.flying) + self.left
        return min(works, max(0.0, quota.limit - quota.kept - coming) / max(1.0, self.tokens.mean))

    @property
    def rounds(self) -> float:
        """Tenths of a second after all else has ended: a quota holds back what chance may bring, and asks for it last."""
        quota = self.dataset.quota
        if quota.limit is None or quota.met or not self.flying:
            return 0.0
        held = _DEVIATIONS * math.sqrt(len(self.flying)) * self.tokens.deviation
        enough = max(_ENOUGH * quota.limit, self.tokens.mean / 2)
        return self.times.mean * min(_MOST_ROUNDS, math.log(held / enough)) if held > enough else 0.0

    def running(self) -> list[_Batch]:
        """What flies, in batches of about the same age."""
        groups: dict[int, list[float]] = {}
        for stream in self.flying:
            age = stream.seconds * TENTHS
            groups.setdefault(bisect_right(self.times.edges, age) // _AGES, []).append(age)
        return [_Batch(len(ages), self.times, sum(ages) / len(ages)) for ages in groups.values()]


def _of(state: State, sets: Sequence[_Set], mode: Mode) -> End | None:
    waiting, left = [each.waiting for each in sets], sum(each.left for each in sets)
    tokens = sum(count * each.tokens.mean for count, each in zip(waiting, sets, strict=True))
    share = _affordable(state, left, tokens)
    by = By.CAP if share < 1 else By.COMPLETE
    flying = sum(len(each.flying) for each in sets)
    if not flying:
        return End(0.0, 0.0, by) if share * sum(waiting) < 1 else None
    begun = [_Batch(share * count, each.times) for count, each in zip(waiting, sets, strict=True) if count]
    running = [batch for each in sets for batch in each.running()]
    work = sum(batch.count * batch.curve.mean for batch in begun)
    span = _span(state, work, share * tokens, flying) if mode == "strict" else work / flying
    last = _last(running, begun, span) + max(each.rounds for each in sets)
    return End(last / TENTHS, left + share * tokens, by)


def _affordable(state: State, left: float, waiting: float) -> float:
    """The share of the waiting tokens that the cap covers, at what a kept token has cost so far."""
    money, kept = state.money, sum(dataset.quota.kept for dataset in state.datasets.values())
    if money.cap is None or not waiting or not kept or not money.settled:
        return 1.0
    tokens = (money.cap - money.settled - money.unknown) * kept / money.settled
    return min(1.0, max(0.0, (tokens - left) / waiting))


def _span(state: State, work: float, tokens: float, flying: int) -> float:
    """Time until what waits has begun: so much `work` (time of one stream) over what flies at once.

    Where the money left does not cover the reservations of all that, fewer and fewer fly: a share of the rest is spent in
    each moment.
    """
    money, kept = state.money, sum(dataset.quota.kept for dataset in state.datasets.values())
    if money.cap is None or not money.reserved or not kept:
        return work / flying
    reserved, free = money.reserved / flying, float(money.cap - money.settled - money.unknown)
    cost = tokens * money.settled / kept
    if cost <= 0:
        return work / flying
    last, bound = max(free - cost, reserved), flying * reserved
    freely = max(0.0, free - max(last, bound)) / cost * work / flying
    tight = reserved / cost * work * math.log(min(free, bound) / last) if last < min(free, bound) else 0.0
    return freely + tight


def _last(running: Sequence[_Batch], begun: Sequence[_Batch], span: float) -> float:
    """Time until all has ended in one case of two; what has still to begin does so over `span`."""
    low, high = span, span + LONGEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        odds = sum(b.done(middle) for b in running) + sum(b.done_begun(middle, span) for b in begun)
        low, high = (low, middle) if odds > -_HALF else (middle, high)
    return high


def words(found: End | None) -> str:
    """The predicted end as a progress line says it; empty where there is none."""
    if found is None or found.seconds <= 0:
        return ""
    minutes = found.seconds / 60
    time = (
        f"{found.seconds:.0f} s" if minutes < 1.5 else f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
    )
    return f"{'done' if found.by is By.COMPLETE else 'at the cap'} in about {time}"


def figures(found: End | None) -> dict[str, float | str] | None:
    """The predicted end as `eyas status --json` has it."""
    if found is None:
        return None
    return {"seconds": round(found.seconds, 1), "output_tokens": round(found.tokens), "by": found.by.value}
