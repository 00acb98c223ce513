"""Prompt sets for the tests of loading: rows in files of several formats, and a load with a count of its own."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from eyas.config import Dataset
from eyas.prompts import LoadedSet, load
from eyas.types import Prompt

Rows = Iterable[object]


def by_words(prompt: Prompt) -> int:
    """A count for tests: the words of all messages."""
    return sum(len(str(message["content"]).split()) for message in prompt.messages)


def lines(path: Path, rows: Rows) -> None:
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def array(path: Path, rows: Rows) -> None:
    """Write a JSON array."""
    path.write_text(json.dumps(list(rows), indent=1), encoding="utf-8")


def packed(path: Path, rows: Rows) -> None:
    """Write JSON Lines, gzipped."""
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


WRITERS: tuple[Callable[[Path, Rows], None], ...] = (lines, array, packed)


def loaded(
    folder: Path, rows: Rows, seed: int = 0, write: Callable[[Path, Rows], None] = lines, **keys: Any
) -> LoadedSet:
    """The set A of a folder, with these rows and these keys of RUN.toml."""
    write(folder / "a", rows)
    return load([Dataset(name="A", source="a", **keys)], folder, seed, by_words).sets["A"]


def texts(prompts: Sequence[Prompt]) -> list[str]:
    """What each prompt asks now."""
    return [prompt.messages[-1]["content"] for prompt in prompts]


def adds_up(one: LoadedSet) -> bool:
    """Whether each row of a set is accounted for once."""
    gone = one.duplicates + len(one.quarantined) + one.images + sum(one.removed.values())
    return one.rows == len(one.prompts) + gone and len(one.prompts) == len(one.tokens) == len(one.ids)
