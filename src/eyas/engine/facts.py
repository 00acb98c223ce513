"""What came of each work of a run, as `--where` asks for it, and which works meet an expression. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from eyas.engine.where import FIELDS, NUMBERS, Facts, Term, nearest
from eyas.errors import UsageError
from eyas.ledger import usd
from eyas.standing import Attempt, WorkState
from eyas.state import State
from eyas.types import Work

MOST_NAMED = 12
"""Values of a field that a sentence names."""


class Ended(NamedTuple):
    """A work that ended, and the attempt that tells how: its answer's, else the last one.

    A later turn that was refused before it was sent has none.
    """

    work: Work
    known: WorkState
    attempt: Attempt | None
    facts: Facts


def ended(state: State) -> Iterator[Ended]:
    """Every work that ended, sorted; those that are owed are not among them."""
    last = {attempt.work: attempt for attempt in state.attempts.values()}
    for work, known in sorted(state.works.items(), key=lambda item: item[0]):
        if known.owed or known.verdict is None:
            continue
        attempt = last.get(work) if known.answer is None else state.attempt(known.answer)
        yield Ended(work, known, attempt, _facts(state, work, known, attempt))


def _facts(state: State, work: Work, known: WorkState, attempt: Attempt | None) -> Facts:
    facts: dict[str, str | float] = {
        "verdict": known.verdict.value if known.verdict else "",
        "dataset": work.dataset,
        "id": work.key,
        "kind": known.kind.value if known.kind else "",
        "tries": known.numbers,
    }
    if attempt is None:
        return facts
    facts |= {"provider": attempt.provider.casefold(), "tag": attempt.tag.casefold()}
    if attempt.cost is not None:
        facts["usd"] = usd(attempt.cost)
    settled = attempt.settled
    if settled is not None:
        facts["finish"] = settled.finish.value if settled.finish else ""
        facts["seconds"] = settled.seconds
    if attempt.answered:
        label = state.labels.get(attempt.id)
        facts |= {
            "tokens": attempt.counts[1] if attempt.counts else known.tokens,
            "label": label.value if label else "",
        }
    return facts


def meeting(state: State, terms: Iterable[Term]) -> list[Ended]:
    """The works that meet all conditions, sorted.

    Raises:
        UsageError: a condition names a provider, tag or dataset that the run does not have.
    """
    terms = tuple(terms)
    every = list(ended(state))
    _check(terms, every)
    return [each for each in every if all(term.holds(each.facts) for term in terms)]


def _check(terms: Iterable[Term], every: Sequence[Ended]) -> None:
    """Refuse a name that no work has: it is a slip rather than a wish."""
    for term in terms:
        if term.field in NUMBERS or FIELDS[term.field] is not None or term.field == "id":
            continue
        names = counts(every, term.field)
        if term.value not in names:
            raise UsageError(
                f"--where, column {term.column}: no work that ended has {term.field} {term.value!r}: "
                f"{nearest(term.value, names)}this run has {', '.join(sorted(names)) or 'none'}"
            )


def counts(every: Iterable[Ended], field: str) -> Counter[str]:
    """How many works have each value of a field of text."""
    return Counter(str(value) for each in every if (value := each.facts.get(field, "")) != "")


def values(state: State, field: str) -> str:
    """A sentence on what a field is in this run: `label has: streamed 1605, counted 417`; of a number how it is spread."""
    every = list(ended(state))
    if field in NUMBERS:
        return _spread(field, sorted(float(each.facts[field]) for each in every if field in each.facts))
    found = [] if field == "id" else counts(every, field).most_common()
    if field == "id":
        found = [(each.work.key, 1) for each in every]
        named = ", ".join(name for name, _ in found[:3])
    else:
        named = ", ".join(f"{name} {count:,}" for name, count in found[:MOST_NAMED])
    most = 3 if field == "id" else MOST_NAMED
    more = f" and {len(found) - most:,} more" if len(found) > most else ""
    return f"{field} has: {named}{more}" if found else f"{field} has no value yet in this run: no work ended with one"


def _spread(field: str, found: Sequence[float]) -> str:
    if not found:
        return f"{field} ({NUMBERS[field]}) has no value yet in this run"
    shown = {
        name: found[min(len(found) - 1, int(share * len(found)))] for name, share in (("half", 0.5), ("95 %", 0.95))
    }
    below = ", ".join(f"{name} of them at most {value:,.6g}" for name, value in shown.items())
    return f"{field} ({NUMBERS[field]}) of {len(found):,} works: {found[0]:,.6g} to {found[-1]:,.6g}; {below}"
