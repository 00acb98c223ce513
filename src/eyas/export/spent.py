"""Works without an answer, and money that bought none: the first losses of the yield table (pure)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from eyas.exporters.yields import Unanswered
from eyas.state import Attempt, State, stranded, wanted
from eyas.types import Verdict, Work

_UNKNOWN = "outcome not known; run eyas reconcile"
_DUPLICATE = "paid twice: another answer stands for the work"
_WASTE = "waste: the work was asked again"
_IN_FLIGHT = "in flight"
_FORGOTTEN = "removed by eyas forget"
_NEVER = "not asked yet"
_STRANDED = "skipped: the turn before it has no whole answer"


def unanswered(states: Sequence[State], chosen: Mapping[Work, tuple[int, int]]) -> list[Unanswered]:
    """What some runs lost on the way to answers, by dataset and reason.

    Args:
        states: where the runs stand.
        chosen: the works that have an answer, with the index of its run and its attempt.
    """
    lost: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for work, reason in _without(states, chosen).items():
        lost[work.dataset, reason][0] += 1
    for place, state in enumerate(states):
        for attempt in state.attempts.values():
            reason, nano = _loss(attempt, state, chosen.get(attempt.work), place)
            if nano:
                sums = lost[attempt.work.dataset, reason]
                sums[1] += 1
                sums[2] += nano
    return [Unanswered(*key, *sums) for key, sums in sorted(lost.items())]


def _without(states: Sequence[State], chosen: Mapping[Work, tuple[int, int]]) -> dict[Work, str]:
    """Why works that are wanted have no answer."""
    reasons: dict[Work, str] = {}
    for state in states:
        every = (
            work
            for name, dataset in state.datasets.items()
            for prompt_id in dataset.prompts
            for work in wanted(name, dataset, prompt_id)
        )
        for work in every:
            if work not in chosen and work not in state.works:
                reasons.setdefault(work, _NEVER)
        why = {work: _why(state, work) for work in state.works} | dict.fromkeys(stranded(state), _STRANDED)
        for work, reason in why.items():
            if work not in chosen:
                # Of two runs' reasons one is kept by its spelling: the order of the runs must not matter.
                known = reasons.get(work, _NEVER)
                reasons[work] = max(reason, "" if known == _NEVER else known)
    return reasons


def _why(state: State, work: Work) -> str:
    """Why a work of a run has no answer."""
    known = state.works.get(work)
    if known is None:
        return _FORGOTTEN
    if known.verdict is Verdict.REFUSED:
        return "refused"
    if known.verdict is Verdict.FAILED:
        return f"failed: {known.kind}" if known.kind else "failed"
    return _UNKNOWN if known.verdict is Verdict.UNKNOWN else "not answered yet"


def _loss(attempt: Attempt, state: State, chosen: tuple[int, int] | None, place: int) -> tuple[str, int]:
    """What an attempt cost without an exported answer, in nano-dollars, and why."""
    if attempt.open:
        return _IN_FLIGHT, attempt.reserved
    if attempt.unknown:
        return _UNKNOWN, attempt.reserved
    if chosen == (place, attempt.id):
        return "", 0
    if chosen is None:
        return _why(state, attempt.work), attempt.cost or 0
    return (_DUPLICATE if attempt.answered else _WASTE), attempt.cost or 0
