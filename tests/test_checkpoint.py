"""Checkpoints: what they give is the fold of all events, wherever a process was killed, or they are not believed."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.errors import UsageError
from eyas.events import AnyEvent, PromptAdded, TurnAdded, TurnRefused
from eyas.journal import NAME, Index, Journal, Keeper, Store, checkpoint, keep
from eyas.records import Run
from eyas.state import State, fold
from eyas.types import Label, Work
from tests.test_journal import filled, history, tamper
from tests.test_state import histories

Op = AnyEvent | tuple[int, bytes]
"""What reaches the disk, one after the other: an event, or a part of a checkpoint."""


class Disk:
    """A journal that notes in which order things reach the disk, and can be read as it was after any of them."""

    def __init__(self, ops: Iterable[Op] = ()) -> None:
        self.ops = list(ops)

    def write(self, event: AnyEvent, payload: object = None) -> Any:
        """One event."""
        self.ops.append(event)

    def keep(self, part: int, data: bytes) -> None:
        """One part of a checkpoint."""
        self.ops.append((part, data))

    @property
    def events(self) -> list[AnyEvent]:
        """All events."""
        return [op for op in self.ops if not isinstance(op, tuple)]

    def last(self) -> int:
        """The number of the last event."""
        return len(self.events)

    def checkpoint(self) -> Iterator[bytes]:
        """The parts as they stand, by number."""
        parts = dict(op for op in self.ops if isinstance(op, tuple))
        return iter([parts[number] for number in sorted(parts)])


class Writer(Disk):
    """The same as a `Keeper` writes it: `last` is a number."""

    last = property(lambda self: len(self.events))  # type: ignore[assignment]  # the reader's is a method


def index_of(events: Iterable[AnyEvent]) -> Index:
    """Where the texts of all events are."""
    index = Index()
    for seq, event in enumerate(events, 1):
        index.note(seq, event)
    return index


def ways(index: Index) -> object:
    """What an index knows, without the room that it has left."""
    attempts = [
        (number, pair) for number, pair in enumerate(zip(index.bodies, index.answers, strict=True)) if any(pair)
    ]
    return attempts, index.asked, {name: of for name, of in index.prompts.items() if of}, index.turns


def loaded(disk: Disk) -> tuple[State, Index, checkpoint.Kept | None]:
    """A run as the next process finds it: the checkpoint, and the events behind it."""
    kept = checkpoint.load(disk)
    state, index, seq = (kept.state, kept.index, kept.seq) if kept else (State(), Index(), 0)
    for number, event in enumerate(disk.events[seq:], seq + 1):
        state.apply(event)
        index.note(number, event)
    return state, index, kept


def session(disk: Disk, events: Iterable[AnyEvent], *, ends: bool) -> Disk:
    """One process goes on with a run: in order to its end, or killed."""
    state, index, kept = loaded(disk)
    writer = Writer(disk.ops)
    keeper = Keeper(writer, state, index, kept)
    for event in events:
        state.apply(event)
        keeper.write(event)
    if ends:
        keeper.finish()
    return Disk(writer.ops)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of a few things, as often as may be."""
    monkeypatch.setattr(keep, "PIECE", 3)
    monkeypatch.setattr(keep, "APART", 1)
    monkeypatch.setattr(keep, "HEAD", 2)


def turned(events: list[AnyEvent]) -> list[AnyEvent]:
    """The same history in which a later turn of each dataset was noted, or refused, at its end."""
    work = Work("A", "0", 1, 0)
    added = PromptAdded(at=0.0, dataset="A", prompt_id="2", tokens=10, turns=1)
    return [*events, added, TurnAdded(at=5.0, work=work, tokens=30), TurnRefused(at=5.0, work=work, detail="too long")]


@given(histories().map(turned), st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=4), st.data())
@settings(deadline=None)
def test_a_checkpoint_and_the_rest_are_the_fold_of_all(
    events: list[AnyEvent], sessions: list[tuple[int, bool]], data: st.DataObject
) -> None:
    """I3: over several sessions, each killed between any two writes or ended, the state is the fold of what is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keep, "PIECE", data.draw(st.integers(1, 6)))
        patch.setattr(keep, "APART", data.draw(st.integers(1, 4)))
        patch.setattr(keep, "HEAD", data.draw(st.integers(1, 3)))
        cuts = [0, *sorted(min(cut, len(events)) for cut, _ in sessions), len(events)]
        ends = [*(ended for _, ended in sessions), True]
        disk = Disk()
        for (begin, end), ended in zip(pairwise(cuts), ends, strict=True):
            disk = session(disk, events[begin:end], ends=ended)
            state, index, _ = loaded(disk)
            assert state == fold(events[:end])
            assert list(state.attempts) == sorted(state.attempts)
            assert ways(index) == ways(index_of(events[:end]))
        assert (kept := checkpoint.load(disk)) is not None
        assert kept.seq == len(events)
        at = data.draw(st.integers(0, len(disk.ops)))
        killed = Disk(disk.ops[:at])
        assert loaded(killed)[0] == fold(killed.events)


def test_every_prefix_of_a_run_folds_to_itself(small: None) -> None:
    """Killed between any two writes of one run, every time."""
    events = [event for event, _ in history(9)]
    disk = session(session(Disk(), events[:20], ends=True), events[20:], ends=True)
    believed = 0
    for at in range(len(disk.ops) + 1):
        killed = Disk(disk.ops[:at])
        state, _, kept = loaded(killed)
        assert state == fold(killed.events)
        believed += kept is not None
    assert believed > len(disk.ops) // 2


@given(st.data())
@settings(deadline=None)
def test_a_checkpoint_that_lies_is_not_believed(data: st.DataObject) -> None:
    """A byte changed, a piece gone, doubled or out of order: the events are folded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keep, "PIECE", 2)
        patch.setattr(keep, "APART", 1)
        events = [event for event, _ in history(6)]
        disk = session(Disk(), events, ends=True)
    parts = dict(op for op in disk.ops if isinstance(op, tuple))
    number = data.draw(st.sampled_from([each for each in parts if each]))
    lie = data.draw(st.sampled_from(("changed", "gone", "swapped")))
    if lie == "gone":
        parts.pop(number)
    elif lie == "swapped":
        other = data.draw(st.sampled_from([each for each in parts if parts[each] != parts[number] and each]))
        parts[number], parts[other] = parts[other], parts[number]
    else:
        raw = bytearray(parts[number])
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        parts[number] = bytes(raw)
    lying = Disk([*events, *parts.items()])
    assert checkpoint.load(lying) is None
    assert loaded(lying)[0] == fold(events)


def written(folder: Path, attempts: int = 30) -> list[AnyEvent]:
    """A run through the real journal, checkpoint included; gives its events."""

    async def write() -> None:
        with contextlib.closing(Journal(folder)) as journal:
            state = State()
            keeper = Keeper(journal, state, Index(), None)
            for event, payload in history(attempts):
                state.apply(event)
                keeper.write(event, payload)
            await keeper.flush()
            keeper.finish()

    asyncio.run(write())
    return [event for event, _ in history(attempts)]


def kept_of(folder: Path) -> checkpoint.Kept | None:
    """The checkpoint of a run directory."""
    with contextlib.closing(Store(folder)) as store:
        return checkpoint.load(store)


def test_a_run_is_read_by_its_checkpoint(tmp_path: Path, small: None) -> None:
    """The state of a checkpoint, its texts and what follows it, through the file."""
    events = written(tmp_path)
    kept = kept_of(tmp_path)
    assert kept is not None
    assert (kept.seq, kept.state) == (len(events), fold(events))
    with contextlib.closing(Run(tmp_path)) as run:
        assert run.kept is not None
        record = run.record(Work("A", "0123456789abcdef", 0, 3))
        assert record is not None
        assert record.completion.content == "Oi 🦅\x00"
        assert run.body(run.state.attempts[7]) == b'{"body": 7}'


DAMAGES = (
    "UPDATE checkpoint SET data = x'00' WHERE part = 0",
    "UPDATE checkpoint SET crc = crc + 1 WHERE part = 2",
    "UPDATE checkpoint SET size = 3 WHERE part = 1",
    "DELETE FROM checkpoint WHERE part = 0",
    "DELETE FROM checkpoint WHERE part = 3",
    "DELETE FROM events WHERE seq > 60",
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_costs_time_only(tmp_path: Path, small: None, damage: str) -> None:
    """Damaged in the file, or longer than its journal: the state is the fold of the events that are there."""
    events = written(tmp_path)
    tamper(tmp_path, damage)
    assert kept_of(tmp_path) is None
    with contextlib.closing(Store(tmp_path)) as store, contextlib.closing(Run(tmp_path)) as run:
        assert run.state == fold(events[: store.last()])


def test_a_checkpoint_of_other_code_is_not_believed(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An eyas that folds otherwise folds for itself."""
    written(tmp_path)
    monkeypatch.setattr(checkpoint, "made_by", lambda: "another")
    assert kept_of(tmp_path) is None


def test_a_journal_without_the_table_opens(tmp_path: Path, small: None) -> None:
    """A run that was written before there were checkpoints is read, and taken up."""
    filled(tmp_path)
    tamper(tmp_path, "DROP TABLE checkpoint")
    events = [event for event, _ in history()]
    with contextlib.closing(Run(tmp_path)) as run:
        assert run.state == fold(events)
        assert run.kept is None
    Journal(tmp_path).close()
    assert kept_of(tmp_path) is None


def test_a_journal_of_a_newer_eyas_is_refused(tmp_path: Path) -> None:
    """Tables that this version does not know are neither read nor written."""
    filled(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / NAME)) as db:
        db.execute("PRAGMA user_version = 2")
    for opening in (Journal, Store):
        with pytest.raises(UsageError, match=r"newer eyas .* pip install --upgrade eyas"):
            opening(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / NAME)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)


def test_what_is_forgotten_is_in_no_checkpoint(tmp_path: Path, small: None) -> None:
    """Texts that are erased leave with the checkpoint too."""
    written(tmp_path)
    with contextlib.closing(Journal(tmp_path)) as journal:
        assert journal.erase([3], [1])
    assert kept_of(tmp_path) is None


@given(histories())
@settings(deadline=None)
def test_labels_are_counted_by_who_answered(events: list[AnyEvent]) -> None:
    """The counts that quality rests on are those of going through all labels, whatever came late."""
    state = fold(events)
    found: dict[str, Counter[Label]] = {}
    for number, label in state.labels.items():
        found.setdefault(state.attempts[number].provider, Counter())[label] += 1
    counts = {name: Counter({label: n for label, n in of.items() if n}) for name, of in state.labelled.items()}
    assert {name: of for name, of in counts.items() if of} == found
