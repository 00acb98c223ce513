"""What a resumed run finds, and what happens next, in plain sentences. Pure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from eyas.ledger import usd
from eyas.state import Attempt, State, count_stranded
from eyas.types import Verdict, Work


def sentences(state: State, folder: Path, repeats: int, asked: int | None = None) -> list[str]:
    """What to say when a session has been opened and nothing was asked yet; nothing for the first one of a run.

    Args:
        state: with what a killed process left open settled already.
        folder: the run directory, for the commands that are named.
        repeats: lost answers that are asked for under the API's response cache.
        asked: how many works a session asks for that asks a part only; None: all that are owed.
    """
    if state.sessions < 2:
        return [] if asked is None else [_part(state, asked)]
    parts = (
        _killed(state),
        _unknown(state, folder),
        _repeated(repeats),
        _owed(state) if asked is None else _part(state, asked),
        _ended(state, folder),
        _skipped(state),
        _gone(state),
    )
    return [part for part in parts if part]


def _killed(state: State) -> str:
    """What the last process had in flight; it was settled after this session was opened, and before anything else."""
    left = [a for a in state.attempts.unpacked() if a.settled is not None and a.settled.at >= state.opened]
    if not left:
        return ""
    kept = [attempt for attempt in left if attempt.answered]
    tokens = sum(attempt.settled.tokens for attempt in kept if attempt.settled is not None)
    rest = len(left) - len(kept)
    cut = f"; the other {rest} had too little text to keep, and their works are asked again" if rest else ""
    return (
        f"the last process was killed with {len(left)} requests in flight: {len(kept)} answers were kept as partial answers "
        f"({tokens:,} tokens){cut}"
    )


def _unknown(state: State, folder: Path) -> str:
    unknown = state.unknown()
    if not unknown:
        return ""
    named = sum(1 for attempt in unknown if attempt.generation_id)
    lines = [
        f"what {len(unknown)} requests cost is not known; {_held(unknown)} is held for them, which is the most it can be"
    ]
    if named:
        lines.append(f"{named} are looked up now, while the run goes on")
    if named < len(unknown):
        nameless = [attempt for attempt in unknown if not attempt.generation_id]
        lines.append(
            f"{len(nameless)} were cut before the API gave them an id: `eyas reconcile {folder} --write-off all` books their "
            f"{_held(nameless)} as spent"
        )
    return "; ".join(lines)


def _held(attempts: list[Attempt]) -> str:
    return f"${usd(sum(attempt.reserved for attempt in attempts)):.6f}"


def _repeated(repeats: int) -> str:
    if not repeats:
        return ""
    return (
        f"{repeats} lost answers are asked for under the API's response cache first: one that a provider finished costs "
        "nothing more; any other is bought like a fresh one"
    )


def _owed(state: State) -> str:
    wanted = {name: dataset for name, dataset in state.datasets.items() if not dataset.quota.met}
    owed = _count_owed(state)
    if not owed:
        return "no answer is owed"
    again = [
        w for w, known in state.works.items() if known.owed and known.numbers and _asked(state, wanted.__contains__, w)
    ]
    retried = sum(state.works[work].answer is not None for work in again)
    standing = f"; {retried} of those have an answer, which stands until a better one is there" if retried else ""
    more = f", {len(again)} of them were asked before{standing}" if again else ""
    return f"{owed} answers are owed and asked for now{more}"


def _part(state: State, asked: int) -> str:
    return f"{_count_owed(state)} answers are owed; this session asks for {asked} of them (--limit, --dataset)"


def rest(state: State, folder: Path) -> str:
    """What to say after a session that asked for a part: what is still owed; empty if that is nothing."""
    owed = _count_owed(state)
    if not owed:
        return ""
    return (
        f"{owed} answers are still owed: the same command without --limit and --dataset goes on, what is there is kept; "
        f"`eyas export {folder} --out DIR` writes what is there"
    )


def _count_owed(state: State) -> int:
    stranded = count_stranded(state)
    wanted = ((name, dataset) for name, dataset in state.datasets.items() if not dataset.quota.met)
    return sum(max(0, each.works - sum(each.ended.values()) - stranded[name]) for name, each in wanted)


def _asked(state: State, wanted: Callable[[str], bool], work: Work) -> bool:
    return wanted(work.dataset) and work.prompt_id in state.datasets[work.dataset].prompts


def _ended(state: State, folder: Path) -> str:
    """Works that ended without an answer, and how to have them asked again."""
    counts = {
        verdict: sum(dataset.ended.get(verdict, 0) for dataset in state.datasets.values())
        for verdict in (Verdict.FAILED, Verdict.REFUSED, Verdict.UNKNOWN)
    }
    if not any(counts.values()):
        return ""
    named = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count)
    first = next(verdict.value for verdict, count in counts.items() if count)
    waits = "; unknown ones also once their outcome is known" if counts[Verdict.UNKNOWN] else ""
    return f"not asked again by themselves: {named}; `eyas retry {folder} --where verdict={first}` has them asked again{waits}"


def _skipped(state: State) -> str:
    count = count_stranded(state).total()
    return (
        f"{count} later turns are skipped: the turn before them has no whole answer; they are owed again once it has one"
        if count
        else ""
    )


def _gone(state: State) -> str:
    count = sum(len(dataset.forgotten) for dataset in state.datasets.values())
    return (
        f"{count} prompts were removed by `eyas forget`: they are not asked, also where the sources still hold them"
        if count
        else ""
    )
