"""Our books by UTC day, how costs became known, what went wrong, and how the run came to its end (pure)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from eyas.ledger import usd
from eyas.providers.throughput import imported, own
from eyas.report.document import Day, Reconciliation, Tail, Trouble
from eyas.standing import Attempt
from eyas.state import State
from eyas.survey.activity import Activity, OfDay
from eyas.survey.history import seconds_until

SHARES = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
SLOWEST = 10
KNOWN_BY = ("answer", "lookup", "written_off", "unknown")
ALARM = "alarm"


@dataclass(slots=True)
class _Day:
    """Sums of one day, nano-dollars."""

    requests: int = 0
    prompt: int = 0
    completion: int = 0
    cost: int = 0
    unknown: int = 0


def reconciliation(states: Sequence[State], activity: Activity | None, hint: str) -> Reconciliation:
    """Our books beside the API's.

    Args:
        states: where the runs stand.
        activity: the API's figures by day, if they were given.
        hint: how to get them.
    """
    days: defaultdict[str, _Day] = defaultdict(_Day)
    known_by: Counter[str] = Counter(dict.fromkeys(KNOWN_BY, 0))
    for attempt in _taken(states):
        known_by[_known_by(attempt)] += 1
        _add(days[_day_of(attempt)], attempt)
    theirs: Mapping[str, OfDay] = activity.days if activity else {}
    rows = [
        Day(
            day=day,
            requests=sums.requests,
            prompt_tokens=sums.prompt,
            completion_tokens=sums.completion,
            usd=usd(sums.cost),
            unknown_usd=usd(sums.unknown),
            api_requests=theirs[day].requests if day in theirs else None,
            api_usd=usd(theirs[day].cost) if day in theirs else None,
        )
        for day, sums in sorted(days.items())
    ]
    return Reconciliation(days=rows, source=activity.source if activity else hint, known_by=dict(known_by))


def _taken(states: Sequence[State]) -> Iterator[Attempt]:
    """Requests that ended and that somebody took, as an API counts them: those refused for free are none."""
    for state in states:
        mine = own(state)
        brought = imported(state)
        left_out = brought | mine if state.providers.keys() - mine - brought else brought
        for attempt in state.attempts.values():
            ended = attempt.settled
            taken = attempt.answered or attempt.cost != 0 or attempt.counts is not None
            if ended is not None and attempt.tag not in left_out and taken:
                yield attempt


def _known_by(attempt: Attempt) -> str:
    if attempt.cost is None:
        return "unknown"
    if attempt.written_off:
        return "written_off"
    return "answer" if attempt.settled is not None and attempt.settled.cost == attempt.cost else "lookup"


def _day_of(attempt: Attempt) -> str:
    at = attempt.settled.at if attempt.settled else 0.0
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _add(day: _Day, attempt: Attempt) -> None:
    prompt, completion, _ = attempt.counts or (0, 0, None)
    day.requests += 1
    day.prompt += prompt
    day.completion += completion
    day.cost += attempt.cost or 0
    day.unknown += attempt.reserved if attempt.cost is None else 0


def troubles(states: Sequence[State], *, text: bool) -> list[Trouble]:
    """What went wrong, the most frequent kind first; without `text`, examples are left out: an API may repeat a prompt."""
    last: dict[str, tuple[float, str]] = {}
    counts: Counter[str] = Counter()
    costs: Counter[str] = Counter()
    for state in states:
        for attempt in state.attempts.values():
            ended = attempt.settled
            if ended is None or ended.kind is None:
                continue
            kind = ended.kind.value
            counts[kind] += 1
            costs[kind] += 0 if attempt.answered else attempt.cost or 0
            last[kind] = max(last.get(kind, (0.0, "")), (ended.at, ended.detail))
        if state.alarms:
            counts[ALARM] += len(state.alarms)
            last[ALARM] = (0.0, state.alarms[-1])
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        Trouble(kind=kind, count=count, usd=usd(costs[kind]), example=last[kind][1] if text else "")
        for kind, count in ranked
    ]


def tail(states: Sequence[State], stretches: Sequence[tuple[float, float]]) -> Tail:
    """How the last answers came.

    Args:
        states: where the runs stand.
        stretches: of time, in which a process ran.
    """
    answers = [attempt for state in states for attempt in state.attempts.values() if attempt.answered]
    ended = sorted(seconds_until(stretches, attempt.settled.at) for attempt in answers if attempt.settled)
    shares = SHARES if ended else ()
    slowest = sorted(answers, key=lambda attempt: (-_seconds(attempt), attempt.work.key))[:SLOWEST]
    return Tail(
        shares=list(shares),
        seconds=[round(ended[max(0, -(-int(share * 1000) * len(ended) // 1000) - 1)], 3) for share in shares],
        slowest=[_slow(attempt, stretches) for attempt in slowest if _seconds(attempt)],
    )


def _seconds(attempt: Attempt) -> float:
    return attempt.settled.seconds if attempt.settled else 0.0


def _slow(attempt: Attempt, stretches: Sequence[tuple[float, float]]) -> dict[str, Any]:
    ended = attempt.settled
    return {
        "id": attempt.work.key,
        "dataset": attempt.work.dataset,
        "provider": attempt.provider,
        "tag": attempt.tag,
        "seconds": _seconds(attempt),
        "first_token_seconds": ended.first_token if ended else None,
        "completion_tokens": ended.tokens if ended else 0,
        "finish": (ended.finish if ended else None) or "none",
        "usd": None if attempt.cost is None else usd(attempt.cost),
        "ended_after_seconds": round(seconds_until(stretches, ended.at), 3) if ended else None,
    }


def paid(states: Iterable[State]) -> tuple[int, int, int]:
    """Nano-dollars of all runs: settled, wasted (a part of it), unknown."""
    moneys = [state.money for state in states]
    return sum(m.settled for m in moneys), sum(m.wasted for m in moneys), sum(m.unknown for m in moneys)
