"""The prompts of a run as they were read, kept in its directory: a resume reads this one file, not every row again.

It is derived. A file that another reading would not make again (`sources.made_of`), or that is not whole, is passed over.

Layout: sections of bytes, then a JSON `_Table` of them, then its length (8 bytes, little endian) and `MAGIC`.
"""

from __future__ import annotations

import mmap
import os
import weakref
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from eyas.prompts.contaminate import Contaminated
from eyas.prompts.read import BadRow
from eyas.prompts.select import Ids, LoadedSet, Mixed, Picked
from eyas.prompts.spool import Lazy, encoded
from eyas.types import Prompt

T = TypeVar("T")
NAME = "prompts.kept"
MAGIC = b"eyaskept"
Names = Collection[tuple[str, str]]


class _Section(msgspec.Struct, array_like=True):
    start: int
    size: int
    crc: int


class _Values(msgspec.Struct):
    """Values as JSON, one after the other, and where each ends."""

    data: _Section
    ends: _Section


class _Set(msgspec.Struct):
    name: str
    prompts: _Values
    ids: _Section
    tokens: _Section
    turns: _Section
    bad: _Values
    contaminated: _Values
    rows: int
    duplicates: int
    images: int
    removed: dict[str, int]
    guess: str


class _Table(msgspec.Struct):
    made_of: str
    sets: list[_Set]
    order: _Section


class Stored(Lazy[T]):
    """Values of one msgspec type in a file that is open."""

    def __init__(self, kind: type[T], file: _Open, values: _Values) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        self._file = file
        self._start = values.data.start
        self._ends = array("Q", file.read(values.ends))

    def at(self, index: int) -> T:
        """The value with that number."""
        start = self._ends[index - 1] if index else 0
        return self._decoder.decode(os.pread(self._file.number, self._ends[index] - start, self._start + start))

    def __len__(self) -> int:
        return len(self._ends)


def save(folder: Path, sets: Mapping[str, LoadedSet], mixed: Mixed, made_of: str, without: Names = ()) -> bool:
    """Keep what was read, in place of an earlier file; whether it was done, for nothing hangs on it.

    Args:
        folder: the run directory.
        sets: all sets, as `load` gives them.
        mixed: their prompts in the run's order.
        made_of: what the reading hangs on.
        without: prompts (dataset, id) of which no text may stay.
    """
    draft = folder / f"{NAME}.tmp"
    try:
        with open(draft, "wb", opener=_private) as file:
            _write(file, sets, mixed, made_of, without)
        draft.replace(folder / NAME)
    except OSError:
        draft.unlink(missing_ok=True)
        return False
    return True


def load(folder: Path, made_of: str) -> tuple[dict[str, LoadedSet], Mixed] | None:
    """The sets and their prompts in the run's order, if a file is there that was made of the same and is whole."""
    try:
        file = _Open(folder / NAME)
        table = file.table()
        if table is None or table.made_of != made_of:
            return None
        sets = {one.name: _set(one, file) for one in table.sets}
        order = np.frombuffer(file.read(table.order), np.uint32)
    except (OSError, ValueError, msgspec.MsgspecError):
        return None
    return sets, Mixed([one.prompts for one in sets.values()], order)


class _Open:
    """A kept file, open while anything of it is used."""

    def __init__(self, path: Path) -> None:
        self.number = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.number)
        self._whole = mmap.mmap(self.number, 0, access=mmap.ACCESS_READ)

    def table(self) -> _Table | None:
        """Where everything is; None if it breaks off."""
        if self._whole[-len(MAGIC) :] != MAGIC:
            return None
        end = len(self._whole) - len(MAGIC) - 8
        size = int.from_bytes(self._whole[end : end + 8], "little")
        return msgspec.json.decode(self._whole[end - size : end], type=_Table)

    def check(self, section: _Section) -> None:
        """Raise ValueError if a section is not as it was written."""
        with memoryview(self._whole) as whole, whole[section.start : section.start + section.size] as part:
            if len(part) != section.size or zlib.crc32(part) != section.crc:
                raise ValueError("damaged")

    def read(self, section: _Section) -> bytes:
        """A section; raises ValueError if it is damaged."""
        self.check(section)
        return self._whole[section.start : section.start + section.size]


def _set(one: _Set, file: _Open) -> LoadedSet:
    for values in (one.prompts, one.bad, one.contaminated):
        file.check(values.data)
    return LoadedSet(
        name=one.name,
        prompts=Stored(Prompt, file, one.prompts),
        ids=Ids(np.frombuffer(file.read(one.ids), np.uint64)),
        tokens=array("I", file.read(one.tokens)),
        rows=one.rows,
        duplicates=one.duplicates,
        quarantined=Stored(BadRow, file, one.bad),
        images=one.images,
        removed=one.removed,
        contaminated=Stored(Contaminated, file, one.contaminated),
        guess=one.guess,
        turns=array("I", file.read(one.turns)),
    )


def _write(file: BinaryIO, sets: Mapping[str, LoadedSet], mixed: Mixed, made_of: str, without: Names) -> None:
    stay = {name: _staying(one, without) for name, one in sets.items()}
    table = _Table(made_of, [_write_set(file, one, stay[one.name]) for one in sets.values()], _Section(0, 0, 0))
    every = np.concatenate([np.empty(0, bool), *stay.values()])
    renumbered = np.cumsum(every, dtype=np.uint32) - np.uint32(1)
    table.order = _section(file, [renumbered[mixed.order[every[mixed.order]]].tobytes()])
    raw = msgspec.json.encode(table)
    file.write(raw + len(raw).to_bytes(8, "little") + MAGIC)


def _staying(one: LoadedSet, without: Names) -> npt.NDArray[np.bool_]:
    numbers = [int(prompt_id, 16) for name, prompt_id in without if name == one.name]
    return ~np.isin(one.ids.numbers, np.array(numbers, np.uint64))


def _write_set(file: BinaryIO, one: LoadedSet, stay: npt.NDArray[np.bool_]) -> _Set:
    places = np.flatnonzero(stay).tolist()
    prompts = one.prompts
    raws = map(prompts.raw, places) if isinstance(prompts, Picked) else (encoded(prompts[place]) for place in places)
    return _Set(
        name=one.name,
        prompts=_values(file, raws),
        ids=_section(file, [one.ids.numbers[stay].tobytes()]),
        tokens=_section(file, [np.array(one.tokens, np.uintc)[stay].tobytes()]),
        turns=_section(file, [np.array(one.turns, np.uintc)[stay].tobytes()]),
        bad=_values(file, map(encoded, one.quarantined)),
        contaminated=_values(file, map(encoded, one.contaminated)),
        rows=one.rows,
        duplicates=one.duplicates,
        images=one.images,
        removed=dict(one.removed),
        guess=one.guess,
    )


def _values(file: BinaryIO, values: Iterable[bytes]) -> _Values:
    ends = array("Q")

    def noted() -> Iterator[bytes]:
        end = 0
        for value in values:
            end += len(value)
            ends.append(end)
            yield value

    data = _section(file, noted())
    return _Values(data, _section(file, [ends.tobytes()]))


def _section(file: BinaryIO, parts: Iterable[bytes]) -> _Section:
    section = _Section(file.tell(), 0, 0)
    for part in parts:
        file.write(part)
        section.size += len(part)
        section.crc = zlib.crc32(part, section.crc)
    return section


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
