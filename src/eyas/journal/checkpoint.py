"""A State as it was at some event, kept beside the events so that a resume need not fold them all.

It is derived, and never trusted further than it can be checked: it is used only if it was made by the same code, nothing of
it is missing or changed, its counts agree, and the journal reaches as far as it does. Else the events are folded.

It comes in pieces, each of what had changed since the one before it; a later piece stands over an earlier one. The head
holds the few small things, and what is still on the move.
"""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import zlib
from array import array
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast, get_type_hints

import msgspec
import numpy as np

import eyas.events
import eyas.ledger
import eyas.standing
import eyas.state
import eyas.types
from eyas.errors import StorageError
from eyas.journal.index import Index, Said
from eyas.standing import Attempt, DatasetState, WorkState
from eyas.state import State, Touched, packed
from eyas.types import Label, Work

BIG = ("works", "attempts", "labels", "touched")
"""Fields of State that are kept in pieces, or not at all."""
_FOLD = (eyas.types, eyas.events, eyas.ledger, eyas.standing)


class Prompts(msgspec.Struct, array_like=True):
    """Prompts of one dataset: ids, tokens and events of the texts in step; turns and gone by id; and what is no prompt now.

    `texts` are the events of texts that those still have.
    """

    ids: list[str]
    tokens: list[int]
    seqs: list[int]
    turns: dict[str, int]
    gone: dict[str, int]
    forgotten: list[str]
    absent: list[str]
    texts: dict[str, int]


class Piece(msgspec.Struct, array_like=True):
    """Attempts, works, labels and prompts as they stand, with the events that hold their texts (0: none), each list in step.

    Of the attempts with `ids` the first are `plain` ones, packed; `attempts` are the others. `ids`, `bodies` and `answers` are
    8 bytes each.
    """

    ids: bytes
    plain: list[bytes]
    attempts: list[Attempt]
    bodies: bytes
    answers: bytes
    asked: dict[int, int]
    works: list[Work]
    standing: list[WorkState | None]
    turns: list[int]
    labels: dict[int, Label]
    prompts: dict[str, Prompts]


_HINTS = get_type_hints(State)
Small: Any = msgspec.defstruct(
    "Small",
    [(each.name, _HINTS[each.name]) for each in dataclasses.fields(State) if each.name not in BIG],
    array_like=True,
)
"""The fields of State that are small, whatever they are."""


class Head(msgspec.Struct, array_like=True):
    """What makes a State of the pieces: the last event, the checksum of each piece, and counts."""

    made_by: str
    seq: int
    crcs: list[int]
    counts: tuple[int, ...]
    small: msgspec.Raw
    moving: Piece


class Kept(msgspec.Struct):
    """A checkpoint that was believed, and how to go on with it: its last event, and the checksums of its pieces.

    `state.touched` is what no piece holds yet.
    """

    state: State
    index: Index
    seq: int
    crcs: list[int]


class Rows(Protocol):
    """What is read of a journal for it; `journal.Store` is it."""

    def checkpoint(self) -> Iterator[bytes]:
        """The head, then the pieces in order; nothing where there is none. Raises StorageError for a damaged one."""
        ...

    def last(self) -> int:
        """The number of the last event."""
        ...


def load(rows: Rows) -> Kept | None:
    """The State that a journal keeps; None where there is none that can be believed."""
    parts = rows.checkpoint()
    try:
        with unwatched():
            return _load(parts, rows)
    except (StorageError, msgspec.MsgspecError, ValueError, LookupError):
        return None


def _load(parts: Iterator[bytes], rows: Rows) -> Kept | None:
    raw = next(parts, None)
    if raw is None:
        return None
    head = _decode_head(raw)
    if head.made_by != made_by() or head.seq > rows.last():
        return None
    small = msgspec.msgpack.decode(head.small, type=Small)
    state = State(**{name: getattr(small, name) for name in Small.__struct_fields__})
    kept = Kept(state, Index(), head.seq, head.crcs)
    for crc in head.crcs:
        if zlib.crc32(part := next(parts, b"")) != crc:
            return None
        _put(kept, _decode_piece(part))
    _put(kept, head.moving)
    if _counts(state) != head.counts:
        return None
    # What stands in the head alone is still to come to rest in a piece.
    state.touched = Touched(set(_numbers(head.moving.ids).tolist()), set(head.moving.works))
    return kept


def pack(state: State, index: Index, which: Touched) -> Piece:
    """The piece of those ids, as they stand."""
    attempts = [state.attempts[number] for number in which.attempts]
    done = [each for each in attempts if packed.plain(each)]
    others = [each for each in attempts if not packed.plain(each)]
    ids = [each.id for each in (*done, *others)]
    return Piece(
        ids=array("Q", ids).tobytes(),
        plain=[packed.pack(each) for each in done],
        attempts=others,
        bodies=array("Q", [index.bodies[number] for number in ids]).tobytes(),
        answers=array("Q", [index.answers[number] for number in ids]).tobytes(),
        asked={number: index.asked[number] for number in ids if number in index.asked},
        works=list(which.works),
        standing=[state.works.get(work) for work in which.works],
        turns=[index.turns.get(work, 0) for work in which.works],
        labels={number: state.labels[number] for number in which.labels},
        prompts=_pack_prompts(state, index, which.prompts),
    )


def encode(piece: Piece) -> bytes:
    """A piece as bytes."""
    return msgspec.msgpack.encode(piece)


def head_of(state: State, index: Index, moving: Touched, seq: int, crcs: list[int]) -> bytes:
    """The head of a checkpoint at that event, with what is on the move, and the checksums of the pieces that belong to it."""
    datasets = {
        name: dataclasses.replace(each, prompts={}, turns={}, gone={}, forgotten=set())
        for name, each in state.datasets.items()
    }
    small = [getattr(state, name) for name in Small.__struct_fields__]
    small[Small.__struct_fields__.index("datasets")] = datasets
    raw = msgspec.Raw(msgspec.msgpack.encode(small))
    head = Head(made_by(), seq, crcs, _counts(state), raw, pack(state, index, moving))
    return msgspec.msgpack.encode(head)


@cache
def made_by() -> str:
    """A name of the code that folds events: a State that other code made is not believed."""
    here = Path(__file__)
    files = [Path(cast("str", module.__file__)) for module in _FOLD]
    files += [*Path(eyas.state.__file__).parent.glob("*.py"), here, here.with_name("index.py")]
    code = hashlib.sha256()
    for path in sorted(files):
        code.update(path.read_bytes())
    return f"{code.hexdigest()[:16]} msgspec {msgspec.__version__}"


@contextmanager
def unwatched() -> Generator[None]:
    """Millions of objects are made that all stay: the collector of cycles would look at them again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _counts(state: State) -> tuple[int, ...]:
    tables = (each for known in state.datasets.values() for each in (known.prompts, known.turns, known.gone))
    return (len(state.works), len(state.attempts), len(state.labels), *map(len, tables))


def _pack_prompts(state: State, index: Index, names: Iterable[tuple[str, str]]) -> dict[str, Prompts]:
    found: dict[str, Prompts] = {}
    for name, prompt_id in names:
        known = state.datasets[name]
        prompts = found.setdefault(name, Prompts([], [], [], {}, {}, [], [], {}))
        tokens = known.prompts.get(prompt_id)
        if tokens is not None:
            prompts.ids.append(prompt_id)
            prompts.tokens.append(tokens)
            prompts.seqs.append(index.prompt(name, prompt_id))
        else:
            prompts.absent.append(prompt_id)
            if seq := index.prompt(name, prompt_id):
                prompts.texts[prompt_id] = seq
        if prompt_id in known.turns:
            prompts.turns[prompt_id] = known.turns[prompt_id]
        if prompt_id in known.gone:
            prompts.gone[prompt_id] = known.gone[prompt_id]
        if prompt_id in known.forgotten:
            prompts.forgotten.append(prompt_id)
    return found


def _put(kept: Kept, piece: Piece) -> None:
    """Let a piece stand over what was there before it."""
    state, index = kept.state, kept.index
    if piece.ids:
        ids = _numbers(piece.ids)
        state.attempts.put_packed(ids[: len(piece.plain)].tolist(), piece.plain)
        for attempt in piece.attempts:
            state.attempts[attempt.id] = attempt
        index.reach(int(ids.max()))
        _numbers(index.bodies)[ids] = _numbers(piece.bodies)
        _numbers(index.answers)[ids] = _numbers(piece.answers)
        index.asked.update(piece.asked)
    state.works.update(zip(piece.works, cast("list[WorkState]", piece.standing), strict=True))
    if None in piece.standing:
        for work, standing in zip(piece.works, piece.standing, strict=True):
            if standing is None:
                del state.works[work]
    if any(piece.turns):
        index.turns.update((work, seq) for work, seq in zip(piece.works, piece.turns, strict=True) if seq)
    state.labels.update(piece.labels)
    for name, prompts in piece.prompts.items():
        _put_prompts(state.datasets[name], prompts)
        index.later.append(Said(name, prompts.absent, prompts.ids, prompts.seqs, prompts.texts))


def _put_prompts(known: DatasetState, new: Prompts) -> None:
    for table in (known.prompts, known.turns, known.gone):
        for prompt_id in () if table.keys().isdisjoint(new.absent) else new.absent:
            table.pop(prompt_id, None)
    for table in (known.turns, known.gone):
        for prompt_id in () if table.keys().isdisjoint(new.ids) else new.ids:
            table.pop(prompt_id, None)
    known.prompts.update(zip(new.ids, new.tokens, strict=True))
    known.turns.update(new.turns)
    known.gone.update(new.gone)
    known.forgotten.difference_update(new.ids)
    known.forgotten.update(new.forgotten)


def _numbers(held: Any) -> Any:
    return np.frombuffer(held, np.uint64)


_decode_head = msgspec.msgpack.Decoder(Head).decode
_decode_piece = msgspec.msgpack.Decoder(Piece).decode
