"""Some works of a run, a line each with the first words of what was asked: what `eyas show` lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from eyas.cli.shown import said
from eyas.cli.style import Style
from eyas.engine.facts import Ended, ended, meeting
from eyas.engine.where import Term
from eyas.records import Run
from eyas.report.columns import columns, plain
from eyas.state import State, stranded, wanted
from eyas.types import Verdict, Work

EACH, CHOSEN = 3, 20
"""Works that are listed of each state, and of those that an expression chooses, where nothing else is said."""
PIPED = 120
LEAST_WORDS = 16
"""Columns for the first words that make the narrower ones give way."""


class Row(NamedTuple):
    """A work, its state, and what is known of it: label or kind, tokens, dollars, provider."""

    work: Work
    state: str
    cells: tuple[str, ...]


def listed(run: Run, terms: Sequence[Term], limit: int | None, width: int, style: Style) -> tuple[list[str], str]:
    """The lines, and a sentence on what was left out, which ends with `; ` unless it is empty.

    Raises:
        UsageError: a condition names what the run does not have.
    """
    if terms:
        found = meeting(run.state, terms)
        most = limit or CHOSEN
        rows = [_row(each) for each in found[:most]]
        left = f"{len(found):,} works match" + (f", the first {most} are listed (--limit)" if len(found) > most else "")
        return (_lines(run, rows, width, style), f"{left}; ") if found else ([], f"no work that ended matches{_AS_YET}")
    most = limit or EACH
    groups = dict(_by_state(run.state, most))
    lines: list[str] = []
    rows = [row for group in groups.values() for row in group[1]]
    drawn = iter(_lines(run, rows, width, style)[1:]) if rows else iter(())
    for state, (count, some) in groups.items():
        lines += ["", f"{style.standing(state)}: {count:,}", *(f"  {line}" for line in islice(drawn, len(some)))]
    return lines[1:], "" if lines else f"the run in {run.folder} holds no prompt yet; "


_AS_YET = ": works that are still owed have nothing to be chosen by; "


def _by_state(state: State, most: int) -> Iterator[tuple[str, tuple[int, list[Row]]]]:
    """Each state with how many works stand so, and the first few of them."""
    over: dict[Verdict, tuple[int, list[Row]]] = {}
    for each in ended(state):
        count, some = over.setdefault(Verdict(each.facts["verdict"]), (0, []))
        if count < most:
            some.append(_row(each))
        over[Verdict(each.facts["verdict"])] = (count + 1, some)
    yield from ((verdict.value, over[verdict]) for verdict in Verdict if verdict in over)
    skipped = sorted(stranded(state))
    for name, works in (("skipped", iter(skipped)), ("pending", _pending(state, set(skipped)))):
        first = [Row(work, name, ("",) * 4) for work in islice(works, most)]
        if first:
            yield name, (len(first) + sum(1 for _ in works), first)


def _pending(state: State, skipped: set[Work]) -> Iterator[Work]:
    for name, known in state.datasets.items():
        for prompt_id in known.prompts:
            for work in wanted(name, known, prompt_id):
                begun = state.works.get(work)
                if work not in skipped and (begun is None or begun.owed):
                    yield work


def _row(each: Ended) -> Row:
    facts = each.facts
    tokens, usd = facts.get("tokens"), facts.get("usd")
    return Row(
        each.work,
        str(facts["verdict"]),
        (
            str(facts.get("label") or facts.get("kind") or ""),
            "" if tokens is None else f"{tokens:,.0f}",
            "" if not usd else f"${usd:.4f}",
            plain(each.attempt.provider, 16) if each.attempt else "",
        ),
    )


def _lines(run: Run, rows: Sequence[Row], width: int, style: Style) -> list[str]:
    """A head, then a line a work, no wider than the terminal, two columns left free; columns give way to first words."""
    table = [("id", "label", "tokens", "usd", "by"), *((row.work.key, *row.cells) for row in rows)]
    room = (width or PIPED) - 4
    while len(table[0]) > 1:
        empty = next((n for n in range(1, len(table[0])) if not any(row[n] for row in table[1:])), None)
        narrow = room - len(columns(table)[0]) < LEAST_WORDS
        if empty is None and not narrow:
            break
        drop = len(table[0]) - 1 if empty is None else empty
        table = [row[:drop] + row[drop + 1 :] for row in table]
    # The labels are coloured behind the alignment, for codes have no width.
    drawn = [line.ljust(max(map(len, columns(table)))) for line in columns(table, left=(0, 1, -1))]
    words = [first_words(run, row.work, max(LEAST_WORDS, room - len(drawn[0]))) for row in rows]
    head, *body = drawn
    for place, row in enumerate(rows):
        label = row.cells[0]
        if label and label in body[place][len(row.work.key) :]:
            at = body[place].index(label, len(row.work.key))
            body[place] = body[place][:at] + style.standing(label) + body[place][at + len(label) :]
    return [
        style.dim(f"{head}  first words"),
        *(f"{line}  {said}".rstrip() for line, said in zip(body, words, strict=True)),
    ]


def first_words(run: Run, work: Work, most: int) -> str:
    """How the last thing that the user says begins, on one line; of a prompt that was forgotten nothing."""
    if work.prompt_id in run.state.datasets[work.dataset].forgotten:
        return "(forgotten)"
    asked, known = run.question(work), run.state.works.get(work)
    users = [said(message.get("content")) for message in asked.messages if message.get("role") == "user"]
    if 0 < work.turn <= len(asked.turns) and work not in run.index.turns and (known is None or known.answer is None):
        users = [asked.turns[work.turn - 1]]  # a later turn that was never asked: all of it is still to come
    return plain(" ".join((users[-1] if users else "").split()), most)
