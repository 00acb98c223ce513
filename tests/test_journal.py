"""The journal: durable when awaited, ordered, readable by others, honest about damage and full disks."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas import events as ev
from eyas import types as t
from eyas.errors import LockedError, StorageError, UsageError
from eyas.journal import NAME, Journal, Store
from eyas.lock import is_locked, lock
from eyas.records import Run
from eyas.state import State, fold

WORK = t.Work("A", "0123456789abcdef")
ANSWER = t.Completion(" Hm\u2028", "Oi 🦅\x00", (t.ToolCall("functions.x:0", "x", '{"a": 1.0}'),), t.Finish.STOP)
ANSWER = msgspec.structs.replace(ANSWER, usage=t.Usage(3, 4, 2, 0, 1234), pieces=t.Pieces((1, 3), (5,), ((3, 7),)))
PROMPT = t.Prompt(WORK.prompt_id, "A", ({"role": "user", "content": "é"},))


def history(attempts: int = 3) -> list[tuple[ev.AnyEvent, msgspec.Struct | bytes | None]]:
    """Events and payloads of a small run: some attempts end, the last one stays open."""
    opened = ev.SessionOpened(at=1.0, model="m", cap=10**9, quotas={"A": 100})
    found: list[tuple[ev.AnyEvent, msgspec.Struct | bytes | None]] = [
        (opened, None),
        (ev.PromptAdded(at=1.0, dataset="A", prompt_id=WORK.prompt_id, tokens=9), PROMPT),
    ]
    for number in range(1, attempts + 1):
        work = t.Work("A", WORK.prompt_id, 0, number - 1)
        begun = ev.Intent(at=2.0, attempt=number, work=work, number=1, tag="p", prices=t.Prices(1, 2), reserved=500)
        found.append((begun, b'{"body": %d}' % number))
        found.append((ev.Headers(at=2.5, attempt=number, generation_id=f"gen-{number}"), None))
        if number == attempts:
            break
        cost = None if number % 2 else 300
        found.append((ev.Settled(at=3.0, attempt=number, verdict=t.Verdict.DONE, cost=cost, tokens=4), ANSWER))
        found.append((ev.Labelled(at=3.0, attempt=number, label=t.Label.COUNTED), None))
        if cost is None:
            found.append((ev.Corrected(at=4.0, attempt=number, cost=200), None))
    return [*found, (ev.SessionClosed(at=5.0, reason=t.StopReason.CAP), None)]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A journal in a folder of its own."""
    opened = Journal(tmp_path)
    yield opened
    opened.close()


def filled(folder: Path, attempts: int = 3) -> None:
    """Write a whole history into a folder."""

    async def write() -> None:
        with contextlib.closing(Journal(folder)) as journal:
            for event, payload in history(attempts):
                await journal.write(event, payload)

    asyncio.run(write())


def written(folder: Path) -> list[tuple[int, ev.AnyEvent]]:
    """What another connection sees."""
    with contextlib.closing(Store(folder)) as store:
        return list(store.events())


def tamper(folder: Path, statement: str, *values: int) -> None:
    """Change the file behind the journal's back."""
    with contextlib.closing(sqlite3.connect(folder / NAME)) as db, db:
        db.execute(statement, values)


def test_a_write_awaited_is_readable_by_another_connection(tmp_path: Path) -> None:
    """After each awaited write a run that was open for reading refreshes to the writer's state, texts included."""

    async def scenario() -> None:
        with contextlib.closing(Journal(tmp_path)) as journal, contextlib.closing(Run(tmp_path)) as run:
            state = State()
            for event, payload in history():
                await journal.write(event, payload)
                state.apply(event)
                assert written(tmp_path)[-1][1] == event
                run.refresh()
                assert run.state == state
            record = run.record(WORK)
            assert record is not None
            assert (record.completion, record.prompt, record.cost) == (ANSWER, PROMPT, 200)
            assert run.body(run.state.attempt(1)) == b'{"body": 1}'

    asyncio.run(scenario())


def test_order_is_the_order_of_calls_and_many_writes_share_commits(tmp_path: Path, journal: Journal) -> None:
    """A thousand writes at once arrive in order, in far fewer commits than writes."""
    batches: list[int] = []
    commit = journal._commit

    async def scenario() -> None:
        journal._commit = lambda batch, compressor: (batches.append(len(batch)), commit(batch, compressor))[1]
        events = [ev.Headers(at=float(number), attempt=number, generation_id="g") for number in range(1000)]
        await asyncio.gather(*(journal.write(event, b"x" * 100) for event in events))
        assert [event for _, event in written(tmp_path)] == events

    asyncio.run(scenario())
    assert sum(batches) == 1000
    assert len(batches) <= 200


def test_a_second_session_appends_and_close_writes_what_waits(tmp_path: Path) -> None:
    """Nothing is numbered twice, writes that nobody awaited are on the disk after close, closing twice is harmless."""
    filled(tmp_path)
    before = written(tmp_path)

    async def again() -> None:
        journal = Journal(tmp_path)
        for number in range(500):
            journal.write(ev.Headers(at=9.0, attempt=number, generation_id="later"))
        journal.close()
        journal.close()

    asyncio.run(again())
    after = written(tmp_path)
    assert after[: len(before)] == before
    assert [seq for seq, _ in after] == list(range(1, len(before) + 501))
    assert (tmp_path / NAME).stat().st_mode & 0o077 == 0, "prompts and answers are for their owner's eyes"


def test_a_closed_journal_lies_in_one_file_though_others_have_it_open(tmp_path: Path) -> None:
    """Whoever looks on (`eyas watch`, a worker's desk) keeps no log beside it; one that is amid reading is not waited for."""

    async def written() -> None:
        journal = Journal(tmp_path)
        for event, payload in history():
            await journal.write(event, payload)
        journal.close()

    asyncio.run(written())
    log = tmp_path / f"{NAME}-wal"
    with contextlib.closing(Store(tmp_path)) as store:
        assert store.last()
        asyncio.run(written())
        assert log.stat().st_size == 0
        assert len(list(store.events())) == 2 * len(history())
        amid = store.events()
        next(amid)
        asyncio.run(written())
        assert len(list(amid)) == 2 * len(history()) - 1
        assert len(list(store.events())) == 3 * len(history())


def test_drafts_round_trip_and_vanish_at_settle(tmp_path: Path, journal: Journal) -> None:
    """Parts come back in order; those of a settled attempt are gone, those of others stay."""
    first, second = (
        t.DraftText("a", "é🦅", (t.ToolCall("i", "n", "{"),), t.Pieces((1,), (2,))),
        t.DraftText(content="b"),
    )

    async def scenario() -> None:
        await journal.draft(1, 1, first)
        await journal.draft(1, 2, second)
        await journal.draft(2, 1, second)
        with contextlib.closing(Store(tmp_path)) as store:
            assert store.drafts(1) == [first, second]
            await journal.write(ev.Settled(at=1.0, attempt=1, verdict=t.Verdict.PARTIAL, cost=None), ANSWER)
            assert (store.drafts(1), store.drafts(2), store.drafts(3)) == ([], [second], [])

    asyncio.run(scenario())


@given(st.integers(1, 5), st.data())
@settings(max_examples=25, deadline=None)
def test_a_journal_cut_at_any_event_folds_to_that_prefix(attempts: int, data: st.DataObject) -> None:
    """I3: whatever number of events reached the disk, the state is the fold of exactly those."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled(folder, attempts)
        events = [event for event, _ in history(attempts)]
        kept = data.draw(st.integers(0, len(events)))
        tamper(folder, "DELETE FROM events WHERE seq > ?", kept)
        with contextlib.closing(Run(folder)) as run:
            assert run.state == fold(events[:kept])


def test_a_killed_writer_leaves_a_prefix_that_holds_all_it_acknowledged(tmp_path: Path) -> None:
    """I2, I3: a process ended by SIGKILL amid its writes loses none that it had awaited."""
    script = """
import asyncio, os, signal, sys
from pathlib import Path
from eyas.journal import Journal
from eyas.events import Headers
async def main():
    journal = Journal(Path(sys.argv[1]))
    for number in range(40):
        await journal.write(Headers(at=1.0, attempt=number, generation_id="g"), b"x" * 1000)
        os.write(1, b".")
    for number in range(40, 400):
        journal.write(Headers(at=1.0, attempt=number, generation_id="g"), b"x" * 1000)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, check=False)
    assert done.returncode == -9
    found = written(tmp_path)
    assert [(seq, event.attempt) for seq, event in found] == [(n + 1, n) for n in range(len(found))]
    assert len(found) >= len(done.stdout) == 40
    with contextlib.closing(Store(tmp_path)) as store:
        assert all(store.payload(seq) == b"x" * 1000 for seq, _ in found)


DAMAGES = (
    "data = x'00112233'", "data = substr(data, 1, length(data) - 2)", "crc = crc + 1", "size = size + 1", "seq = seq + 90",
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_text_is_an_error_with_a_remedy(tmp_path: Path, damage: str) -> None:
    """A changed, shortened or missing text is never handed out as an answer."""
    filled(tmp_path)
    tamper(tmp_path, f"UPDATE payloads SET {damage} WHERE seq = 3")  # noqa: S608
    with contextlib.closing(Store(tmp_path)) as store, pytest.raises(StorageError, match="restore the file from a"):
        store.payload(3)


def test_a_journal_killed_while_it_was_made_holds_no_events(tmp_path: Path) -> None:
    """A kill between the making of the file and that of its tables is a run that never began, for readers too."""
    (tmp_path / NAME).touch()
    run = Run(tmp_path)
    assert run.state.sessions == 0
    run.close()
    Journal(tmp_path).close()
    store = Store(tmp_path)
    assert list(store.events()) == []
    store.close()


def test_garbage_instead_of_a_journal_is_a_storage_error(tmp_path: Path) -> None:
    """A missing file, a file that is no database, an event that is no event: each says what to do."""
    with pytest.raises(UsageError, match="holds no run"):
        Store(tmp_path)
    (tmp_path / NAME).write_bytes(b"this is no database at all, but long enough for its header" * 20)
    with pytest.raises(StorageError, match="check the disk"):
        Journal(tmp_path)
    (tmp_path / NAME).unlink()
    filled(tmp_path)
    tamper(tmp_path, """UPDATE events SET data = '{"e": "what"}' WHERE seq = 2""")
    with pytest.raises(StorageError):
        Run(tmp_path)
    with pytest.raises(StorageError):
        Journal(tmp_path / "missing")


def full_disk(journal: Journal) -> None:
    """No page more fits into the file."""
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count={pages + 2}").fetchall()


def unencodable(journal: Journal, odd: Any = object) -> None:
    """A payload that is no JSON: of a wrong type, or one that holds itself (None)."""
    endless: dict[str, Any] = {}
    endless["odd"] = endless
    journal.write(ev.Headers(at=0.0, attempt=0, generation_id="bad"), t.Completion(extra={"odd": odd or endless}))


@pytest.mark.parametrize("breaks", [full_disk, unencodable, lambda journal: unencodable(journal, None)])
def test_nothing_is_acknowledged_after_a_failed_write(tmp_path: Path, breaks: Callable[[Journal], None]) -> None:
    """A full disk or an encoding error fails the write and every later one; what was acknowledged is there, in order."""

    async def put(journal: Journal, number: int) -> bool:
        body = bytes((number * k * k) % 251 for k in range(9000))
        event = ev.Headers(at=1.0, attempt=number, generation_id="g")
        done = await asyncio.gather(asyncio.wait_for(journal.write(event, body), 10), return_exceptions=True)
        assert done == [None] or "run the same command again" in str(done[0])
        return done == [None]

    async def scenario() -> None:
        journal = Journal(tmp_path)
        first = [await put(journal, number) for number in range(3)]
        breaks(journal)
        went = first + [await put(journal, number) for number in range(3, 60)]
        good = went.index(False)
        assert good >= 3
        assert not any(went[good:]), "a write was acknowledged after one had failed"
        with pytest.raises(StorageError):
            await asyncio.wait_for(journal.draft(1, 1, t.DraftText("x")), 10)
        journal.close()
        assert [event.attempt for _, event in written(tmp_path)] == list(range(good))

    asyncio.run(scenario())


HOLD = """
import sys
from pathlib import Path
from eyas.lock import lock
with lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_keeps_a_second_process_out(tmp_path: Path) -> None:
    """While a process holds the run nobody else gets it, and its number is named; its end, even by a kill, frees it."""
    folder = tmp_path / "runs" / "a"
    assert not is_locked(folder)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_locked(folder)
        with pytest.raises(LockedError, match=f"process {holder.pid}"), lock(folder):
            pass
        holder.kill()
    assert not is_locked(folder)
    with lock(folder):
        assert is_locked(folder)
        with pytest.raises(LockedError), lock(folder):
            pass
    assert not is_locked(folder)
