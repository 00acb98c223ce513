"""Asking for a lost answer again under the API's response cache: the identical body, so that a hit costs nothing.

A provider often finishes an answer whose client is gone, and OpenRouter keeps it for the identical body and key. Each
request carries a mark of its attempt, so that two samples of a prompt are never one. A hit is the answer that was paid:
its cost is looked up by the generation that made it, and the lost attempt is cleared. A miss is an ordinary purchase.
Source: https://openrouter.ai/docs/features/response-caching
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from eyas.config import RunConfig
from eyas.state import Attempt, State
from eyas.types import FailureKind, Verdict, Work

_LOST = (FailureKind.LOST, FailureKind.CUT)
_CAME = (FailureKind.MISSERVED, FailureKind.LENGTH)
_SOONEST, _LATEST = 5.0, 120.0


@dataclass(frozen=True, slots=True)
class Repeat:
    """A body to send again: the mark in it, and the route it went by.

    Attributes:
        after: not before this time on the run's clock.
        fetch: only what is in the cache is wanted, since a part of the answer is kept.
    """

    mark: str
    tag: str
    after: float = 0.0
    fetch: bool = False


def recovers(config: RunConfig) -> bool:
    """Whether lost answers are asked for again; never where the user forbids that anybody keeps them."""
    wish = config.providers
    return config.target.bills and config.target.recover and not wish.zdr and wish.data_collection != "deny"


def mark_of(began: float, work: Work, number: int) -> str:
    """What makes the body of an attempt unlike any other's, of this run (by when it began) or another."""
    return hashlib.sha256(f"{began!r}|{work.key}|{number}".encode()).hexdigest()[:16]


def mark_next(config: RunConfig, state: State, repeat: Repeat | None, work: Work, tag: str) -> str:
    """What makes the next body of a work unique, or like one whose answer was lost; empty where nothing recovers."""
    if not recovers(config):
        return ""
    return repeat.mark if repeat and repeat.tag == tag else mark_of(state.began, work, state.work(work).numbers + 1)


def lost(kind: FailureKind | None, verdict: Verdict) -> bool:
    """Whether an attempt ended so that its answer may have been finished without us."""
    return kind in _LOST and verdict in (Verdict.AGAIN, Verdict.UNKNOWN)


def patience(state: State) -> float:
    """Seconds to wait before asking again: about as long as an answer takes, so that the provider can finish it."""
    answers = sum(
        provider.answers for provider in state.providers.values() if provider.seconds
    )  # imported ones took none
    seconds = sum(provider.seconds for provider in state.providers.values())
    return min(_LATEST, max(_SOONEST, seconds / answers if answers else 0.0))


def due(state: State, attempt: Attempt, now: float) -> float:
    """When to ask again for what an attempt lost: when its cost is known, for then the provider is done.

    A generation is looked up meanwhile, and who hears of its cost makes the repeat due; so this is the latest.
    """
    if attempt.cost is not None:
        return now
    return now + (_LATEST if attempt.generation_id else patience(state))


def repeats(state: State, now: float) -> dict[Work, Repeat]:
    """What an earlier session lost: by work still owed, the last body that may have been answered."""
    found: dict[Work, Repeat] = {}
    for attempt in state.attempts.unpacked():
        settled = attempt.settled
        if settled is None or settled.kind is None:
            continue
        known, repeat = state.works.get(attempt.work), found.get(attempt.work)
        if repeat and settled.kind in _CAME and attempt.mark == repeat.mark:
            del found[attempt.work]  # it came, and was not what was wanted: the cache has nothing better
        if known is None or not attempt.mark or not lost(settled.kind, settled.verdict):
            continue
        if known.owed and attempt.id > (known.answer or 0):  # what was lost before an answer came is of no use any more
            found[attempt.work] = Repeat(attempt.mark, attempt.tag, due(state, attempt, now))
    return found


def doubles(state: State, attempt: Attempt) -> list[Attempt]:
    """Lost attempts whose generation an answered one stands for: its cost is booked there, and not on them too."""
    if not attempt.generation_id or not attempt.answered or state.work(attempt.work).numbers < 2:
        return []
    others = (other for other in state.attempts.unpacked() if other.id != attempt.id and not other.answered)
    return [
        other for other in others if other.generation_id == attempt.generation_id and other.settled and other.cost != 0
    ]


def booked(state: State, again: Attempt, source: str) -> bool:
    """Whether a generation's cost is booked already, by the attempt that it was bought by."""
    others = (attempt for attempt in state.attempts_at(again.work) if attempt.id != again.id)
    return any(other.generation_id == source and other.cost is not None for other in others)


def originals(state: State, again: Attempt, source: str) -> list[Attempt]:
    """The attempts that a cached answer belongs to: those of its generation, else the first without a generation."""
    same = [
        attempt
        for attempt in state.attempts.unpacked()
        if attempt.mark == again.mark and attempt.work == again.work and attempt.id != again.id and not attempt.answered
    ]
    named = [attempt for attempt in same if attempt.generation_id == source]
    return named or [attempt for attempt in same if not attempt.generation_id][:1]
