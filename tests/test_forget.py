"""`eyas forget`: no byte of the text stays, the money does, and the prompt is never asked again."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from eyas.engine.forget import Doomed, Erased, find, forget
from eyas.errors import StorageError, UsageError
from eyas.events import AnyEvent, Forgotten, PromptAdded, PromptRemoved, SessionOpened, Settled
from eyas.journal import Journal, Payload, Store
from eyas.lock import lock
from eyas.records import Run
from eyas.types import Completion, DraftText, FailureKind, Prompt, Source, Verdict, Work
from tests import kit
from tests.test_state import intent

SECRET, OTHER = "my name is Ada Quintessa", "what is the sum of two and two"
ANSWER = "Hello, Ada Quintessa, how are you"
TRACES = (b"Ada", b"Quintessa", b"Hello")
DOOMED, KEPT = Work("A", "0" * 16), Work("A", "1" * 16)


def prompt(work: Work, text: str) -> Prompt:
    """One question."""
    return Prompt(work.prompt_id, "A", ({"role": "user", "content": text},), source=Source("a.jsonl", 3))


def history() -> Iterator[tuple[AnyEvent, Payload]]:
    """Two prompts: one comes, goes and comes again, is answered, fails with its text in the error, and is cut by a kill."""
    yield SessionOpened(at=1.0, model="m", cap=10_000, quotas={"A": None}), None
    yield PromptAdded(at=1.0, dataset="A", prompt_id=DOOMED.prompt_id, tokens=9), prompt(DOOMED, SECRET)
    yield PromptRemoved(at=1.0, dataset="A", prompt_id=DOOMED.prompt_id), None
    yield PromptAdded(at=1.0, dataset="A", prompt_id=DOOMED.prompt_id, tokens=9), prompt(DOOMED, SECRET)
    yield PromptAdded(at=1.0, dataset="A", prompt_id=KEPT.prompt_id, tokens=9), prompt(KEPT, OTHER)
    yield intent(1, KEPT), OTHER.encode()
    yield Settled(at=2.0, attempt=1, verdict=Verdict.DONE, cost=30, tokens=5), Completion(content="four it is")
    yield intent(2, DOOMED), SECRET.encode()
    error = f"400 flagged: {SECRET}"
    yield Settled(at=2.0, attempt=2, verdict=Verdict.AGAIN, cost=0, kind=FailureKind.UPSTREAM, detail=error), None
    yield intent(3, DOOMED, 2), SECRET.encode()
    yield Settled(at=2.0, attempt=3, verdict=Verdict.DONE, cost=40, tokens=7), Completion(content=ANSWER)
    yield intent(4, DOOMED, 3), SECRET.encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run directory with that history, drafts of the last attempt, and a quarantine that holds the text too."""

    async def write() -> None:
        with contextlib.closing(Journal(tmp_path)) as journal:
            for event, payload in history():
                await journal.write(event, payload)
            await journal.draft(4, 1, DraftText(content=ANSWER))

    asyncio.run(write())
    rows = [("b.jsonl", 1, f'{{"prompt": "{SECRET}"'), ("b.jsonl", 2, "not json"), ("a.jsonl", 3, "whatever")]
    lines = [json.dumps({"file": f, "line": n, "reason": "bad", "text": text}) for f, n, text in rows]
    (tmp_path / "quarantine.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def erase(folder: Path, *keys: str) -> tuple[Doomed, Erased]:
    """Forget, as the command does."""
    doomed = find(folder, keys)
    return doomed, asyncio.run(forget(folder, doomed, lambda: 9.0))


def everything(folder: Path) -> bytes:
    """All bytes of a run directory, and all that the journal's texts are when unpacked."""
    raw = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    unpacked: list[bytes] = []
    with contextlib.closing(Store(folder)) as store:
        for seq, _ in store.events():
            with contextlib.suppress(StorageError):
                unpacked.append(store.payload(seq))
        unpacked += [repr(store.drafts(attempt)).encode() for attempt in range(9)]
    return raw + b"".join(unpacked)


def test_no_byte_stays(folder: Path) -> None:
    """Prompt, bodies, answers, drafts, errors and quarantine lines are gone from every file; all else is as before."""
    before = everything(folder)
    assert all(trace in before for trace in TRACES)
    packed = zstandard.ZstdCompressor(level=3, write_checksum=False).compress(SECRET.encode())
    assert packed in before
    doomed, erased = erase(folder, "A/" + DOOMED.prompt_id)
    after = everything(folder)
    assert not any(trace in after for trace in (*TRACES, packed))
    assert OTHER.encode() in after
    assert (len(doomed.names), doomed.answers, doomed.cost, erased.quarantined) == (1, 1, 40, 2)
    assert json.loads((folder / "quarantine.jsonl").read_text())["text"] == "not json"


def test_what_stays_is_sound(folder: Path) -> None:
    """The money stays, as waste; the prompt is no work any more; other answers, and the journal's order, are untouched."""
    erase(folder, DOOMED.key)
    with contextlib.closing(Run(folder)) as run:
        assert list(run.state.works) == [KEPT]
        assert (run.state.money.settled, run.state.money.wasted) == (70, 40)
        assert run.state.datasets["A"].forgotten == {DOOMED.prompt_id}
        assert [record.completion.content for record in run.records()] == ["four it is"]
        assert [ref.work for ref in run.refs(lambda _: True)] == [KEPT]
        assert run.state.attempt(2).settled.detail == ""
        events = [event for _, event in run.store.events()]
        assert len(events) == len(list(history())) + 1
        assert events[-1] == Forgotten(at=9.0, prompts=(("A", DOOMED.prompt_id),))
        with pytest.raises(UsageError, match="no work"):
            run.find(DOOMED.key)


def test_again_it_finishes_what_was_broken_off(folder: Path) -> None:
    """Killed between the tombstone and the erasure, the same command erases; done twice, it does no harm."""

    async def tombstone() -> None:
        with contextlib.closing(Journal(folder)) as journal:
            await journal.write(Forgotten(at=8.0, prompts=(("A", DOOMED.prompt_id),)))

    asyncio.run(tombstone())
    (folder / "quarantine.jsonl").unlink()
    assert TRACES[0] in everything(folder)
    for _ in range(2):
        doomed, _ = erase(folder, DOOMED.primary)
        assert (doomed.again, doomed.answers) == (1, 0)
        assert not any(trace in everything(folder) for trace in TRACES)
    with contextlib.closing(Run(folder)) as run:
        assert run.state.money.settled == 70


def test_a_reader_in_the_way_is_told_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process reads the old pages they cannot go: exit with a sentence, and the next call ends it."""
    monkeypatch.setattr("eyas.journal.write.PRAGMAS", ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=50"))
    with contextlib.closing(Store(folder)) as reader:
        reading = reader.events()
        next(reading)
        with pytest.raises(StorageError, match="run the same command again"):
            erase(folder, DOOMED.primary)
        reading.close()
    erase(folder, DOOMED.primary)
    assert not any(trace in everything(folder) for trace in TRACES)


def test_only_known_prompts_are_forgotten(folder: Path) -> None:
    """An id that the run never had is refused, and nothing is touched."""
    before = (folder / "journal.db").read_bytes()
    for key in ("A/ffff", "B/" + DOOMED.prompt_id, "nonsense", DOOMED.primary[:10]):
        with pytest.raises(UsageError, match="no prompt"):
            find(folder, [DOOMED.primary, key])
    assert (folder / "journal.db").read_bytes() == before


def test_exports_that_are_known_are_named(folder: Path) -> None:
    """Folders noted in exports.jsonl that still hold an export; others, and lines that make no sense, are passed over."""
    there, gone = folder / "rows", folder / "gone"
    there.mkdir()
    (there / "manifest.json").write_text("{}")
    lines = [json.dumps({"at": 1.0, "out": str(path)}) for path in (there, gone, there)]
    (folder / "exports.jsonl").write_text("\n".join([*lines, "{"]) + "\n")
    doomed = find(folder, [DOOMED.primary])
    assert asyncio.run(forget(folder, doomed, lambda: 9.0)).exports == (there,)


FAST = {"tps": 400, "ttft": 0.05, "length_median": 120, "length_sigma": 0.5, "slots": 0}


@pytest.mark.e2e
def test_the_whole_way(tmp_path: Path, kimi_folder: Path) -> None:
    """Refused while a run holds the directory and without consent; then gone, not asked again though the source has it."""
    with kit.simulator(kimi_folder, "rough", **FAST) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 12)
        assert kit.eyas(tmp_path, "run", "RUN.toml", "--yes").returncode in (0, 4, 5)
        with contextlib.closing(Run(tmp_path / "run")) as run:
            record = next(run.records())
            settled = run.state.money.settled
        key, asked = record.work.primary, len(sim.books())
        question = str(record.prompt.messages[-1]["content"])
        answer = json.dumps(record.completion.content, ensure_ascii=False)[1:-1]
        assert answer.encode() in everything(tmp_path / "run")
        with lock(tmp_path / "run"):
            held = kit.eyas(tmp_path, "forget", "run", key, "--yes")
        assert (held.returncode, "in use by process" in held.stderr) == (2, True), held.stderr
        unsure = kit.eyas(tmp_path, "forget", "run", key)
        assert (unsure.returncode, "--yes" in unsure.stderr) == (2, True), unsure.stderr
        ended = kit.eyas(tmp_path, "forget", "run", key, "--yes")
        assert ended.returncode == 0, ended.stderr
        assert "1 prompts and 1 answers are removed" in ended.stderr
        assert "export again" in ended.stderr
        assert "prompts.jsonl line" in ended.stderr
        found = everything(tmp_path / "run")
        assert question.encode() not in found
        assert answer.encode() not in found
        last = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", "--json")
        assert "removed by `eyas forget`" in last.stderr
        status = json.loads(last.stdout)
        assert status["datasets"]["B3"]["prompts"] == 11
        repeated = kit.asked(sim.books().values())[kit.prompt_key(record.prompt)]
        assert len(sim.books()) - asked <= status["datasets"]["B3"]["prompts"]
        exported = kit.eyas(tmp_path, "export", "run", "--out", "rows", "--labels", "loose")
        assert exported.returncode == 0, exported.stderr
        assert question not in (tmp_path / "rows" / "rows-00000.jsonl").read_text()
    assert question.encode() not in everything(tmp_path / "run")
    with contextlib.closing(Run(tmp_path / "run")) as run:
        assert run.state.money.settled >= settled
        assert repeated == sum(a.work.primary == key and bool(a.generation_id) for a in run.state.attempts.values())
