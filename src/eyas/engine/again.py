"""What the user has asked again: works chosen by what came of them, and the events that make them owed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from eyas.answers import TAG
from eyas.errors import UsageError
from eyas.events import Retried
from eyas.journal import Journal
from eyas.ledger import Quota
from eyas.records import Run
from eyas.standing import Attempt, WorkState
from eyas.state import State
from eyas.state.turns import before, broken_off
from eyas.types import FailureKind, Finish, Label, Verdict, Work

FIELDS: Mapping[str, type[StrEnum] | None] = {
    "verdict": Verdict,
    "kind": FailureKind,
    "finish": Finish,
    "label": Label,
    "provider": None,
    "tag": None,
    "dataset": None,
    "id": None,
}
"""What may be asked for, and the values that it can have where they are fixed."""

_EXACT = ("dataset", "id")
_SPLIT = re.compile(r"\s*,\s*|\s+and\s+", re.IGNORECASE)
_TERM = re.compile(r"(\w+)\s*(!=|==?)\s*(.*)", re.DOTALL)


class Term(NamedTuple):
    """One condition: a field is, or is not, a value. A work without that field meets neither."""

    field: str
    equal: bool
    value: str

    def holds(self, facts: Mapping[str, str]) -> bool:
        """Whether a work of those facts meets it."""
        found = facts.get(self.field, "")
        if self.field == "id":
            return (found == self.value or found.startswith(f"{self.value}/")) is self.equal
        return bool(found) and (found == self.value) is self.equal


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


def parse(text: str) -> tuple[Term, ...]:
    """Conditions joined by `and` or commas, such as `finish=length and provider=Chutes`.

    Raises:
        UsageError: it is no such thing.
    """
    return tuple(map(_term, _SPLIT.split(text.strip())))


def _term(text: str) -> Term:
    match = _TERM.fullmatch(text)
    if match is None:
        raise UsageError(f"--where: {text!r} is no condition: write FIELD=VALUE or FIELD!=VALUE, joined by `and`")
    name, operator, value = match[1].casefold(), match[2], match[3].strip("'\" ")
    if name not in FIELDS:
        raise UsageError(f"--where: there is no field {match[1]!r}: choose among {', '.join(FIELDS)}")
    value = value if name in _EXACT else value.casefold()
    known = FIELDS[name]
    values = [each.value for each in known if each.value != Verdict.AGAIN.value] if known else []
    if not value or (values and value not in values):
        which = f"choose among {', '.join(values)}" if values else "give one"
        raise UsageError(f"--where: {name} is never {match[3].strip()!r}: {which}")
    return Term(name, operator != "!=", value)


def find(state: State, terms: Iterable[Term]) -> Found:
    """The works that meet all conditions. Those that are owed anyway are not among them.

    Raises:
        UsageError: a condition names a provider, tag or dataset that the run does not have.
    """
    terms = tuple(terms)
    ended = list(_ended(state))
    _check(terms, [facts for _, _, _, facts in ended])
    matched = [each for each in ended if all(term.holds(each[3]) for term in terms)]
    able = [each for each in matched if _askable(state, each[0])]
    answers = [attempt for _, known, attempt, _ in able if attempt and known.answer is not None]
    paid = sum(attempt.cost or 0 for attempt in answers)
    limit = state.waste_limit
    return Found(
        works=tuple(work for work, *_ in able),
        counts=dict(sorted(Counter((work.dataset, facts["verdict"]) for work, _, _, facts in able).items())),
        answers=len(answers),
        paid=paid,
        estimate=_estimate(state, [(work, known, attempt) for work, known, attempt, _ in able]),
        lost=len(matched) - len(able),
        met=_still_met(state, [(work, known) for work, known, _, _ in able]),
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


_Ended = tuple[Work, WorkState, Attempt | None, dict[str, str]]


def _ended(state: State) -> Iterator[_Ended]:
    """Every work that ended, sorted, with the attempt that tells how: its answer's, else the last one.

    A later turn that was refused before it was sent has none.
    """
    last = {attempt.work: attempt for attempt in state.attempts.values()}
    for work, known in sorted(state.works.items(), key=lambda item: item[0]):
        if known.owed or known.verdict is None:
            continue
        attempt = last.get(work) if known.answer is None else state.attempt(known.answer)
        label = state.labels.get(attempt.id) if attempt else None
        finish = attempt.settled.finish if attempt and attempt.settled else None
        yield (
            work,
            known,
            attempt,
            {
                "verdict": known.verdict.value,
                "kind": known.kind.value if known.kind else "",
                "finish": finish.value if finish else "",
                "label": label.value if label and attempt and attempt.answered else "",
                "provider": attempt.provider.casefold() if attempt else "",
                "tag": attempt.tag.casefold() if attempt else "",
                "dataset": work.dataset,
                "id": work.key,
            },
        )


def _check(terms: Iterable[Term], facts: list[dict[str, str]]) -> None:
    """Refuse a name that no work has: it is a slip rather than a wish."""
    for term in terms:
        if FIELDS[term.field] is not None or term.field == "id":
            continue
        names = sorted({each[term.field] for each in facts} - {""})
        if term.value not in names:
            raise UsageError(
                f"--where: no work that ended has {term.field} {term.value!r}: this run has "
                f"{', '.join(names) or 'none'}"
            )


def _askable(state: State, work: Work) -> bool:
    dataset = state.datasets[work.dataset]
    there = work.prompt_id in dataset.prompts and work.turn <= dataset.turns.get(work.prompt_id, 0)
    return there and work.sample < dataset.samples and (work.turn == 0 or not broken_off(state, before(work)))


def _estimate(state: State, chosen: Iterable[tuple[Work, WorkState, Attempt | None]]) -> int | None:
    """What asking may cost: as much as the answer that is there, else the mean of the dataset's, else of the run's."""
    costs: dict[str, list[int]] = {}
    for attempt in state.attempts.values():
        if attempt.answered and attempt.cost is not None and not attempt.tag.startswith(TAG):
            costs.setdefault(attempt.work.dataset, []).append(attempt.cost)
    every = [cost for each in costs.values() for cost in each]
    if not every:
        return None
    total = 0.0
    for work, known, attempt in chosen:
        such = costs.get(work.dataset, every)
        bought = attempt is not None and known.answer is not None and not attempt.tag.startswith(TAG)
        own = attempt.cost if attempt and bought else None
        total += sum(such) / len(such) if own is None else own
    return round(total)


def _still_met(state: State, chosen: Iterable[tuple[Work, WorkState]]) -> tuple[str, ...]:
    tokens: Counter[str] = Counter()
    for work, known in chosen:
        tokens[work.dataset] += known.tokens
    quotas = {name: state.datasets[name].quota for name in tokens}
    return tuple(name for name, quota in sorted(quotas.items()) if _without(quota, tokens[name]).met)


def _without(quota: Quota, tokens: int) -> Quota:
    return quota.keep(-tokens)
