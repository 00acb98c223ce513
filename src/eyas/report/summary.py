"""State -> the figures of `eyas status --json`, and the exit code that they mean. Pure.

The keys are an interface that other programs read: documented in docs/interfaces.md, never renamed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from eyas.ledger import usd
from eyas.report import who, workers
from eyas.report.end import End, figures
from eyas.state import DatasetState, State, count_stranded
from eyas.types import STRICT, Finish, Label, StopReason, Verdict

_STOPPED = (StopReason.INTERRUPTED, StopReason.ERROR, StopReason.STORAGE)


def status(state: State, *, running: bool, predicted: End | None = None) -> dict[str, Any]:
    """The figures of a run. Money is in US dollars; `settled` includes `wasted`; live labels are provisional.

    `predicted` is when the session that runs will be over.
    """
    over, stranded = not running and state.closed is not None, count_stranded(state)
    return {
        "schema": 1,
        "state": standing(state, running=running),
        "model": state.model,
        "datasets": {
            name: _dataset(dataset, stranded[name], over=over and state.closed is StopReason.CAP)
            for name, dataset in state.datasets.items()
        },
        "money": {
            "cap": None if state.money.cap is None else usd(state.money.cap),
            "settled": usd(state.money.settled),
            "reserved": usd(state.money.reserved),
            "unknown": usd(state.money.unknown),
            "wasted": usd(state.money.wasted),
            "leased": usd(state.money.leased),
        },
        "yield": _yield(state),
        "providers": who.providers(state),
        "workers": workers.figures(state),
        "throughput": who.speed(state),
        "labels": _labels(state),
        "habits": dict(sorted(state.habits.items())),
        "length": _length(state),
        "alarms": list(state.alarms),
        "predicted": figures(predicted),
    }


def exit_code(state: State) -> int:
    """The exit code of `eyas run` for a run in this state. Of several that hold, the first of 130, 7, 6, 3, 5, 4 counts."""
    codes = {
        StopReason.INTERRUPTED: 130,
        StopReason.STORAGE: 7,
        StopReason.KEY: 6,
        StopReason.CAP: 3,
        StopReason.ALARM: 3,
    }
    if state.closed is not None and state.closed in codes:
        return codes[state.closed]
    if state.unknown() or _count(state, Verdict.UNKNOWN):
        return 5
    if _count(state, Verdict.FAILED) or _count(state, Verdict.REFUSED) or state.closed is StopReason.OWED:
        return 4
    return 0


def standing(state: State, *, running: bool) -> str:
    """One word: running, complete, partial or stopped. Of a run that does not run it takes one look at its works."""
    if running:
        return "running"
    if state.closed is None or state.closed in _STOPPED:
        return "stopped"
    stranded = count_stranded(state)
    pending = any(
        d.works > sum(d.ended.values()) + stranded[name] and not d.quota.met for name, d in state.datasets.items()
    )
    owed = state.closed is not StopReason.COMPLETE or state.unknown() or pending
    return "partial" if owed or _count(state, Verdict.FAILED) or _count(state, Verdict.UNKNOWN) else "complete"


def _count(state: State, verdict: Verdict) -> int:
    """Works that ended so, in datasets whose quota is not met: where it is, nothing more is wanted."""
    return sum(dataset.ended.get(verdict, 0) for dataset in state.datasets.values() if not dataset.quota.met)


def _dataset(dataset: DatasetState, stranded: int, *, over: bool) -> dict[str, Any]:
    """The figures of a dataset: `stranded` turns are not asked any more, and nothing is where the cap ended the run (`over`)."""
    ended = {verdict.value: dataset.ended.get(verdict, 0) for verdict in Verdict if verdict is not Verdict.AGAIN}
    left = dataset.works - sum(ended.values())
    skipped = left if dataset.quota.met or over else min(left, stranded)
    return {
        "prompts": dataset.works,
        **ended,
        "skipped": skipped,
        "pending": left - skipped,
        "output_tokens": dataset.quota.kept,
        "usd": usd(dataset.cost),
    }


def _yield(state: State) -> dict[str, float]:
    kept = exported = 0
    for number, attempt in state.attempts.items():
        if attempt.answered and attempt.cost:
            kept += attempt.cost
            if state.labels.get(number) in STRICT:
                exported += attempt.cost
    return {"paid_usd": usd(state.money.settled), "kept_usd": usd(kept), "exported_usd": usd(exported)}


def _length(state: State) -> dict[str, float]:
    """Answers that max_tokens cut short: how many, their share of all, and what they cost."""
    answers = [attempt for attempt in state.attempts.values() if attempt.answered]
    cut = [attempt for attempt in answers if attempt.settled and attempt.settled.finish is Finish.LENGTH]
    cost = sum(attempt.cost or 0 for attempt in cut)
    return {"answers": len(cut), "share": len(cut) / len(answers) if answers else 0.0, "usd": usd(cost)}


def _labels(state: State) -> dict[str, int]:
    counts = Counter(label.value for number, label in state.labels.items() if state.attempts[number].answered)
    return {label.value: counts[label.value] for label in Label if counts[label.value]}
