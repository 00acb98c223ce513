"""What the user has asked again: works chosen by what came of them, and the events that make them owed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from eyas.answers import TAG
from eyas.engine.facts import Ended, meeting
from eyas.engine.where import Term
from eyas.events import Retried
from eyas.journal import Journal
from eyas.ledger import Quota
from eyas.records import Run
from eyas.state import State
from eyas.state.turns import before, broken_off
from eyas.types import Work


@dataclass(frozen=True, slots=True)
class Found:
    """Works that match, sorted, with what they cost so far and what asking them again may cost (nano-dollars).

    Attributes:
        works: those that can be asked again.
        counts: how many, by dataset and verdict.
        answers: how many of them have an answer, which stands until a better one comes.
        paid: what those answers cost.
        estimate: None where no answer has a known cost yet.
        lost: works that match, but whose prompt left the sources, or whose conversation broke off before them: nothing can
            be asked for them.
        met: datasets whose quota is met without them.
        wasted: whether replacing the answers would take the waste of the run above its limit.
    """

    works: tuple[Work, ...]
    counts: Mapping[tuple[str, str], int]
    answers: int
    paid: int
    estimate: int | None
    lost: int
    met: tuple[str, ...]
    wasted: bool


def find(state: State, terms: Iterable[Term]) -> Found:
    """The works that meet all conditions. Those that are owed anyway are not among them.

    Raises:
        UsageError: a condition names a provider, tag or dataset that the run does not have.
    """
    matched = meeting(state, terms)
    able = [each for each in matched if _askable(state, each.work)]
    answers = [each.attempt for each in able if each.attempt and each.known.answer is not None]
    paid = sum(attempt.cost or 0 for attempt in answers)
    limit = state.waste_limit
    return Found(
        works=tuple(each.work for each in able),
        counts=dict(sorted(Counter((each.work.dataset, str(each.facts["verdict"])) for each in able).items())),
        answers=len(answers),
        paid=paid,
        estimate=_estimate(state, able),
        lost=len(matched) - len(able),
        met=_still_met(state, able),
        wasted=limit is not None and paid > 0 and state.money.wasted + paid > limit,
    )


async def retry(folder: Path, works: Iterable[Work], wall: Callable[[], float]) -> None:
    """Make works of a run owed again; the caller holds its lock.

    Raises:
        StorageError: the journal cannot be written.
    """
    with closing(Journal(folder)) as journal:
        for work in works:
            journal.write(Retried(at=wall(), work=work))
        await journal.flush()


def read(folder: Path, terms: Iterable[Term]) -> Found:
    """The same as `find`, of a run directory.

    Raises:
        UsageError: there is no run, or a condition does not fit it.
        StorageError: the journal cannot be read.
    """
    with closing(Run(folder)) as run:
        return find(run.state, terms)


def _askable(state: State, work: Work) -> bool:
    dataset = state.datasets[work.dataset]
    there = work.prompt_id in dataset.prompts and work.turn <= dataset.turns.get(work.prompt_id, 0)
    return there and work.sample < dataset.samples and (work.turn == 0 or not broken_off(state, before(work)))


def _estimate(state: State, chosen: Iterable[Ended]) -> int | None:
    """What asking may cost: as much as the answer that is there, else the mean of the dataset's, else of the run's."""
    costs: dict[str, list[int]] = {}
    for attempt in state.attempts.values():
        if attempt.answered and attempt.cost is not None and not attempt.tag.startswith(TAG):
            costs.setdefault(attempt.work.dataset, []).append(attempt.cost)
    every = [cost for each in costs.values() for cost in each]
    if not every:
        return None
    total = 0.0
    for work, known, attempt, _ in chosen:
        such = costs.get(work.dataset, every)
        bought = attempt is not None and known.answer is not None and not attempt.tag.startswith(TAG)
        own = attempt.cost if attempt and bought else None
        total += sum(such) / len(such) if own is None else own
    return round(total)


def _still_met(state: State, chosen: Iterable[Ended]) -> tuple[str, ...]:
    tokens: Counter[str] = Counter()
    for work, known, *_ in chosen:
        tokens[work.dataset] += known.tokens
    quotas = {name: state.datasets[name].quota for name in tokens}
    return tuple(name for name, quota in sorted(quotas.items()) if _without(quota, tokens[name]).met)


def _without(quota: Quota, tokens: int) -> Quota:
    return quota.keep(-tokens)
