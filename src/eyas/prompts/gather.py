"""A source's rows as prompts on disk: each row becomes a prompt, or is counted as what it is instead."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from eyas.config import Dataset
from eyas.errors import UsageError
from eyas.prompts.columns import Reading, columns_of, describe
from eyas.prompts.detect import SAMPLE, detect
from eyas.prompts.filters import RowFilter, row_filter
from eyas.prompts.quarantine import Reasons
from eyas.prompts.read import TEXT_PREFIX, BadRow, Row, rows
from eyas.prompts.shape import BadShape, Skipped, to_prompt
from eyas.prompts.spool import Spool
from eyas.prompts.system import Draw, system_of
from eyas.types import Prompt

_SAMPLE_CHARACTERS = 1 << 25
"""Rows are held until they are `SAMPLE`, or so long together."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What all sets of a run share.

    Attributes:
        base: the folder that relative paths start from.
        seed: of the order and of what is drawn.
        folder: where prompts are kept while the process lives; None: the system's folder for temporary files.
    """

    base: Path
    seed: int = 0
    folder: Path | None = None


@dataclass(slots=True)
class Gathered:
    """The rows of a source: prompts with their ids, duplicates among them, and what else the rows were."""

    prompts: Spool[Prompt]
    bad: Spool[BadRow]
    ids: array[int] = field(default_factory=lambda: array("Q"))
    reasons: Reasons = field(default_factory=Reasons)
    rows: int = 0
    images: int = 0
    filtered: int = 0
    guess: str = ""

    def quarantine(self, row: BadRow) -> None:
        """Count a row that cannot be asked."""
        self.bad.add(row)
        self.reasons.add(row)


def gather(dataset: Dataset, settings: Settings) -> Gathered:
    """Read a source to its end.

    Raises:
        UsageError: the source, the filter, the map or the system pool cannot be used.
        StorageError: the prompts cannot be kept.
    """
    found = Gathered(Spool(Prompt, settings.folder), Spool(BadRow, settings.folder))
    draw = system_of(dataset.system, settings.base, settings.seed)
    keep = row_filter(dataset.filter, settings.base) if dataset.filter else None
    stream = _kept(rows(dataset.source, settings.base), keep, found)
    sample = _sample(stream)
    guess = detect([row.data for row in sample if isinstance(row, Row)])
    try:
        reading = Reading(columns_of(guess, dataset.map), dataset.turns)
    except UsageError as error:
        raise UsageError(f"{dataset.source}: {error}") from None
    found.guess = f"{describe(reading.columns)}: as mapped" if dataset.map else guess.sentence
    for row in chain(sample, stream):
        if isinstance(row, BadRow):
            found.quarantine(row)
        else:
            _take(row, dataset.name, reading, draw, found)
    return found


def _kept(source: Iterable[Row | BadRow], keep: RowFilter | None, found: Gathered) -> Iterator[Row | BadRow]:
    for row in source:
        found.rows += 1
        taken = keep(row) if keep and isinstance(row, Row) else row
        if taken is None:
            found.filtered += 1
        else:
            yield taken


def _sample(stream: Iterator[Row | BadRow]) -> list[Row | BadRow]:
    sample: list[Row | BadRow] = []
    size = 0
    for row in stream:
        sample.append(row)
        size += len(_text(row.data)) if isinstance(row, Row) else len(row.text)
        if len(sample) == SAMPLE or size > _SAMPLE_CHARACTERS:
            break
    return sample


def _take(row: Row, name: str, reading: Reading, draw: Draw | None, found: Gathered) -> None:
    try:
        prompt = to_prompt(row, name, reading, draw)
    except Skipped:
        found.images += 1
        return
    except BadShape as error:
        found.quarantine(BadRow(row.file, row.line, str(error), _text(row.data)[:TEXT_PREFIX]))
        return
    try:
        found.prompts.add(prompt)
    except (TypeError, ValueError) as error:
        reason = f"it cannot be written as JSON in UTF-8 ({error}): correct this row or remove it"
        found.quarantine(BadRow(row.file, row.line, reason, _text(row.data)[:TEXT_PREFIX]))
    else:
        found.ids.append(int(prompt.id, 16))


def _text(data: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(data).decode()
    except (TypeError, ValueError):
        return ascii(data)
