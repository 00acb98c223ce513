"""How fast servers of the user's own are: output tokens a second while they were busy, from a run's attempts. Pure.

Whoever answers for nothing is such a server: an API's endpoint without a price is never used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from eyas.state import ProviderState, State

FEWEST = 20
"""Answers below which their time tells too little."""

BUSY = 0.5
"""The share of the most that ever flew from which servers count as busy: less is a start, an end, or a gap between sessions."""


class Span(NamedTuple):
    """One answer: when it was sent and when it ended, in seconds on one clock, and its output tokens."""

    begin: float
    end: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Throughput:
    """Output tokens a second of some servers together.

    Attributes:
        tps: tokens a second while they were busy.
        in_flight: how many answers flew then, on average.
        seconds: how long they were busy.
        answers: how many it was measured on.
    """

    tps: float
    in_flight: float
    seconds: float
    answers: int


def own(state: State) -> frozenset[str]:
    """Tags of the servers that answered for nothing, or are asked so."""
    return frozenset(
        tag
        for tag, known in state.providers.items()
        if _free(known) and (known.seconds or not known.answers)  # what was imported took no time
    )


def imported(state: State) -> frozenset[str]:
    """Tags of the files that answers were imported from."""
    return frozenset(tag for tag, known in state.providers.items() if _free(known)) - own(state)


def _free(known: ProviderState) -> bool:
    return known.prices is not None and known.prices.free


def spans(state: State, tags: Collection[str]) -> dict[str, list[Span]]:
    """The answers that those servers gave, by tag; one look at all attempts."""
    found: dict[str, list[Span]] = {}
    for attempt in state.attempts.values() if tags else ():
        ended = attempt.settled
        if ended is not None and attempt.tag in tags and attempt.answered and ended.seconds > 0:
            found.setdefault(attempt.tag, []).append(Span(ended.at - ended.seconds, ended.at, ended.tokens))
    return found


def throughput(of: Iterable[Span]) -> Throughput | None:
    """How fast those answers came; None for fewer than FEWEST.

    Each is taken to have been written evenly from its send to its end. Only the time counts in which at least half as many
    flew as at the most: a run that is planned keeps its slots full until its last answers.
    """
    changes: list[tuple[float, int, float]] = []
    for span in of:
        rate = span.tokens / (span.end - span.begin)
        changes += ((span.begin, 1, rate), (span.end, -1, -rate))
    answers = len(changes) // 2
    if answers < FEWEST:
        return None
    changes.sort()
    least, steps = 0.0, list[tuple[float, int, float]]()
    flying, tps = 0, 0.0
    for (now, change, rate), (then, _, _) in pairwise(changes):
        flying, tps = flying + change, tps + rate
        least = max(least, BUSY * flying)
        if then > now:
            steps.append((then - now, flying, tps))
    busy = [step for step in steps if step[1] >= least]
    seconds = sum(width for width, _, _ in busy)
    if not seconds:
        return None
    return Throughput(
        tps=sum(width * rate for width, _, rate in busy) / seconds,
        in_flight=sum(width * count for width, count, _ in busy) / seconds,
        seconds=seconds,
        answers=answers,
    )
