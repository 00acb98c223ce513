"""Conversations in a real journal: what records, exports, `show`, `forget` and the command line read of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from eyas.cli.shown import text
from eyas.engine.forget import find, forget
from eyas.errors import StorageError, UsageError
from eyas.events import AnyEvent, PromptAdded, SessionOpened, Settled, TurnAdded, TurnRefused
from eyas.journal import Journal, Payload, Store
from eyas.records import Reader, Run
from eyas.types import Completion, Finish, Prompt, Verdict, Work
from tests import kit
from tests.test_state import intent

ID = "0" * 16
FIRST, SECOND, THIRD, FOURTH = (Work("A", ID, turn) for turn in range(4))
SAID = ("Who are you, Ada?", "And then, Ada?", "Why, Ada?", "How, Ada?")


def prompt(turn: int) -> Prompt:
    """The prompt of that turn."""
    messages = []
    for said in range(turn):
        messages += [{"role": "user", "content": SAID[said]}, {"role": "assistant", "content": f"Hello Ada {said}"}]
    return Prompt(ID, "A", (*messages, {"role": "user", "content": SAID[turn]}), turns=SAID[turn + 1 :])


def history() -> Iterator[tuple[AnyEvent, Payload]]:
    """Two turns are answered, the third one was noted and is under way, the fourth one is still to come."""
    yield SessionOpened(at=1.0, model="m", cap=10_000, quotas={"A": None}), None
    yield PromptAdded(at=1.0, dataset="A", prompt_id=ID, tokens=9, turns=3), prompt(0)
    for number, work in enumerate((FIRST, SECOND), 1):
        if work.turn:
            yield TurnAdded(at=2.0, work=work, tokens=9 + 20 * work.turn), prompt(work.turn)
        yield intent(number, work), json.dumps({"messages": prompt(work.turn).messages}).encode()
        answer = Completion(content=f"Hello Ada {work.turn}", finish=Finish.STOP)
        yield Settled(at=2.0, attempt=number, verdict=Verdict.DONE, cost=30, tokens=5, finish=Finish.STOP), answer
    yield TurnAdded(at=2.0, work=THIRD, tokens=49), prompt(2)
    yield intent(3, THIRD), b"Ada"


def write(folder: Path, *events: tuple[AnyEvent, Payload]) -> Path:
    """A run directory with that history and more."""

    async def main() -> None:
        with contextlib.closing(Journal(folder)) as journal:
            for event, payload in events:
                await journal.write(event, payload)

    asyncio.run(main())
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run directory with that history."""
    return write(tmp_path, *history())


def test_records_have_the_history_that_was_asked(folder: Path) -> None:
    """The run itself, and a reader in any process that has only the refs, give each turn its own prompt."""
    with contextlib.closing(Run(folder)) as run, contextlib.closing(Reader([folder])) as reader:
        records = list(run.records())
        assert [record.work for record in records] == [FIRST, SECOND]
        assert [record.prompt for record in records] == [prompt(0), prompt(1)]
        refs = sorted(run.refs(lambda _: True), key=lambda ref: ref.work)
        assert [record.prompt for record in reader.read(refs)] == [prompt(0), prompt(1)]
        assert run.noted(THIRD) == run.question(THIRD) == prompt(2)
        assert run.asked(run.state.attempt(3)) == prompt(2)


def test_a_turn_noted_behind_an_older_answer_is_made_anew(folder: Path) -> None:
    """What was noted of a turn holds only while the answer before it stands."""
    again = intent(4, SECOND, 2), Settled(at=4.0, attempt=4, verdict=Verdict.DONE, cost=1, finish=Finish.STOP)
    with contextlib.closing(Run(folder)) as run:
        assert run.noted(THIRD) == prompt(2)
        run.state.works[SECOND].verdict = Verdict.AGAIN
        write(folder, (again[0], b"{}"), (again[1], Completion(content="new", finish=Finish.STOP)))
        run.refresh()
        assert run.noted(THIRD) is None


def test_any_turn_is_found_by_its_id(folder: Path) -> None:
    """Asked or still to come; a turn that the conversation does not have is no work."""
    with contextlib.closing(Run(folder)) as run:
        for work in (FIRST, SECOND, THIRD, FOURTH):
            assert run.find(work.key) == work
        assert run.question(FOURTH) == prompt(0)
        with pytest.raises(UsageError, match="names no work"):
            run.find(Work("A", ID, 4).key)
        with pytest.raises(UsageError, match="names 3 works"):
            run.find(FIRST.primary)


def test_what_is_shown_of_a_refused_turn() -> None:
    """Its reason stands beside its state, and the calls of its history are told."""
    call = {"id": "1", "function": {"name": "add", "arguments": "{}"}}
    messages = [{"role": "user", "content": "Add."}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    told = text({"id": "A/0/t1/s0", "state": "refused", "detail": "too\x1b long", "messages": messages, "attempts": []})
    assert told.startswith("A/0/t1/s0  refused: too\ufffd long\n")
    assert "[tool call] add {}" in told


def test_forgetting_a_prompt_erases_every_turn(folder: Path) -> None:
    """No byte of any question, history or answer stays, nor the reason of a turn that was refused."""
    write(folder, (TurnRefused(at=3.0, work=FOURTH, detail="Ada cannot be said"), prompt(3)))
    doomed = find(folder, [SECOND.key])
    assert (doomed.answers, doomed.cost) == (2, 60)
    asyncio.run(forget(folder, doomed, lambda: 9.0))
    raw = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    with contextlib.closing(Store(folder)) as store:
        for seq, _ in store.events():
            with contextlib.suppress(StorageError):
                raw += store.payload(seq)
    assert b"Ada" not in raw
    with contextlib.closing(Run(folder)) as run:
        assert (run.state.works, run.state.money.wasted, run.state.datasets["A"].turns) == ({}, 60, {})


FAST = {"tps": 400, "ttft": 0.05, "length_median": 60, "length_sigma": 0.5, "slots": 0}


@pytest.mark.e2e
def test_the_whole_way(tmp_path: Path, kimi_folder: Path) -> None:
    """Talks are run, run again and exported: a row a turn, its history under mask 0, none asked twice."""
    rows = [{"turns": [f"Say {number}", f"And {number}?", f"Why {number}?"][: 1 + number % 3]} for number in range(12)]
    with kit.simulator(kimi_folder, "clean", **FAST) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 12)
        (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        ended = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", "--json")
        assert ended.returncode == 0, ended.stderr
        figures = json.loads(ended.stdout)["datasets"]["B3"]
        assert (figures["prompts"], figures["done"], figures["pending"]) == (24, 24, 0)
        assert len(sim.books()) == 24
        assert kit.eyas(tmp_path, "run", "RUN.toml", "--yes").returncode == 0
        assert len(sim.books()) == 24
    exported = kit.eyas(tmp_path, "export", "run", "--out", "rows", "--labels", "loose")
    assert exported.returncode == 0, exported.stderr
    made = [json.loads(line) for line in (tmp_path / "rows" / "rows-00000.jsonl").read_text().splitlines()]
    assert sorted(row["metadata"]["turn"] for row in made) == [0] * 12 + [1] * 8 + [2] * 4
    assert "mismatch" not in {row["metadata"]["label"] for row in made}, "a prompt is not the one that was counted"
    by_id = {row["id"]: row for row in made}
    for name, row in by_id.items():
        before, prompted = by_id.get(name.replace("/t2/", "/t1/")), row["loss_mask"].index(1)
        assert set(row["loss_mask"][:prompted]) == {0}
        if row["metadata"]["turn"] == 2:
            assert row["text"].count("<|im_assistant|>") == 3
            assert before["text"].split("</think>")[-1].removesuffix("<|im_end|>") in row["text"]
    shown = kit.eyas(tmp_path, "show", "run", max(by_id))
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("[assistant]") == by_id[max(by_id)]["metadata"]["turn"]
