"""A first look at a prompt file: what stands in its first rows, and how they would be asked. Pure but for the reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from eyas.prompts import BadRow, BadShape, Row, rows, to_prompt
from eyas.prompts.columns import Reading
from eyas.prompts.detect import SAMPLE, detect
from eyas.report.progress import plain
from eyas.types import Prompt

_SHOWN = 160
"""Characters of a prompt or a reason that are shown."""


def look(source: str, base: Path) -> list[str]:
    """Sentences about the first rows of a source, the file itself is read no further.

    Raises:
        UsageError: it cannot be read, or holds no row.
    """
    return sentences(source, islice(rows(source, base), SAMPLE))


def sentences(source: str, found: Iterable[Row | BadRow]) -> list[str]:
    """What to say of these first rows of a source."""
    first = list(found)
    sample = [each for each in first if isinstance(each, Row)]
    bad = [each for each in first if isinstance(each, BadRow)]
    which = f"the first {len(first)} rows" if len(first) >= SAMPLE else f"all {len(first)} rows"
    guess = detect([row.data for row in sample])
    prompts = list(_asked(sample, Reading(guess.columns), bad))
    said = [f"{source}, {which}: columns {', '.join(guess.names) or 'none'}", guess.sentence]
    if prompts:
        turns = sum(bool(prompt.turns) for prompt in prompts)
        tools = sum(bool(prompt.tools) for prompt in prompts)
        more = (f", {turns} of them with further turns" if turns else "") + (f", {tools} with tools" if tools else "")
        said.append(f"{len(prompts)} can be asked{more}; the first ends:")
        said.append(f"  {prompts[0].messages[-1].get('role')}: {prompts[0].messages[-1].get('content')}")
    if bad:
        said.append(f"{len(bad)} cannot be asked; the first, line {bad[0].line}: {bad[0].reason}")
    return [plain(each, _SHOWN if each.startswith(" ") else 600) for each in said]


def _asked(sample: Iterable[Row], reading: Reading, bad: list[BadRow]) -> Iterator[Prompt]:
    for row in sample:
        try:
            yield to_prompt(row, "first-look", reading)
        except BadShape as error:
            bad.append(BadRow(row.file, row.line, str(error), ""))
