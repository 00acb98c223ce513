"""Gathers the prompts of a run's sets, each once, and puts them in an order that files and budgets cannot change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from eyas.errors import StorageError, UsageError
from eyas.prompts.read import TEXT_PREFIX, BadRow, Row, rows
from eyas.prompts.shape import BadShape, to_prompt
from eyas.types import Prompt


class DatasetSource(msgspec.Struct, frozen=True):
    """A set of the run: its name, where its rows are, and the system turn of rows that bring none of their own."""

    name: str
    source: str
    system: str | None = None


class LoadedSet(msgspec.Struct, frozen=True):
    """What came of one set: rows = len(prompts) + duplicates + len(quarantined)."""

    prompts: tuple[Prompt, ...]
    rows: int
    duplicates: int
    quarantined: tuple[BadRow, ...]


class Loaded(msgspec.Struct, frozen=True):
    """What came of all sets, by name and in the order given."""

    sets: dict[str, LoadedSet]

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompts of all sets, set by set."""
        return tuple(prompt for one in self.sets.values() for prompt in one.prompts)

    @property
    def quarantined(self) -> tuple[BadRow, ...]:
        """The rows of all sets that cannot be asked."""
        return tuple(bad for one in self.sets.values() for bad in one.quarantined)


def load(datasets: Iterable[DatasetSource], base: Path) -> Loaded:
    """Reads the sets of a run.

    Args:
        datasets: the sets, each with a name of its own.
        base: the folder that relative sources start from.

    Raises:
        UsageError: a source cannot be read to its end, no row of it is a prompt, or two sets share a name.
    """
    sets: dict[str, LoadedSet] = {}
    for dataset in datasets:
        if dataset.name in sets:
            raise UsageError(f"Two sets are named {dataset.name}: give each [[datasets]] a name of its own")
        sets[dataset.name] = _load(dataset, base)
    return Loaded(sets)


def _load(dataset: DatasetSource, base: Path) -> LoadedSet:
    prompts: dict[str, Prompt] = {}
    quarantined: list[BadRow] = []
    count = 0
    for row in rows(dataset.source, base):
        count += 1
        made = row if isinstance(row, BadRow) else _shape(row, dataset)
        if isinstance(made, BadRow):
            quarantined.append(made)
        elif made.id not in prompts or _turns(made) > _turns(prompts[made.id]):
            prompts[made.id] = made
    if not prompts:
        first = quarantined[0]
        raise UsageError(f"{dataset.source}: none of its {count} rows is a prompt; row {first.line}: {first.reason}")
    return LoadedSet(tuple(prompts.values()), count, count - len(prompts) - len(quarantined), tuple(quarantined))


def _turns(prompt: Prompt) -> tuple[int, tuple[str, ...]]:
    """Of rows with the same first question the longest talk stays, whatever the order of the rows."""
    return len(prompt.turns), prompt.turns


def _shape(row: Row, dataset: DatasetSource) -> Prompt | BadRow:
    try:
        return to_prompt(row, dataset.name, dataset.system)
    except BadShape as error:
        return BadRow(row.file, row.line, str(error), msgspec.json.encode(row.data).decode()[:TEXT_PREFIX])


def order_key(seed: int, prompt_id: str) -> bytes:
    """The place of a prompt under a seed: a keyed hash, so that any prefix of the order is a random sample."""
    key = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
    return hashlib.blake2b(prompt_id.encode(), digest_size=16, key=key).digest()


def ordered(prompts: Iterable[Prompt], seed: int) -> list[Prompt]:
    """Puts the prompts of one set in the order of the seed; a larger budget extends what a smaller one asked."""
    return sorted(prompts, key=lambda prompt: order_key(seed, prompt.id))


def interleave(prompts: Iterable[Prompt], seed: int) -> list[Prompt]:
    """Makes one pool of the prompts of all sets, mixed by seed, set and id: a set more leaves the others in order."""
    return sorted(prompts, key=lambda prompt: order_key(seed, f"{prompt.dataset}/{prompt.id}"))


def quarantine_lines(bad: Iterable[BadRow]) -> Iterator[bytes]:
    """Gives the rows that cannot be asked as JSON lines: file, line, reason, text."""
    for row in bad:
        yield msgspec.json.encode(row) + b"\n"


def write_quarantine(path: Path, bad: Iterable[BadRow]) -> None:
    """Writes the rows that cannot be asked in place of an earlier such file, whole or not at all.

    Raises:
        StorageError: the file cannot be written.
    """
    draft = path.with_name(f"{path.name}.tmp")
    try:
        with draft.open("wb") as file:
            file.writelines(quarantine_lines(bad))
        draft.replace(path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error}): free space or choose another [run] dir") from error
