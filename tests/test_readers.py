"""Reader processes: what they read is what one process reads; one that dies costs the ends of its answers, no more."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.engine import drafts
from eyas.engine.messages import Batches, Came, End, FromReader, Landed, Outbox, Part, Whole, from_reader, to_reader
from eyas.records import Run
from eyas.types import Completion, DraftText, Failure, FailureKind, Pieces, Verdict
from tests import kit

PROMPTS = 80


class Pipe(asyncio.WriteTransport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: object) -> None:
        """Keep it."""
        assert isinstance(data, bytes)
        self.written.append(data)

    def is_closing(self) -> bool:
        """It stays open."""
        return False


async def _told(messages: list[FromReader]) -> bytes:
    pipe = Pipe()
    outbox = Outbox[FromReader](asyncio.get_running_loop(), pipe)
    for message in messages:
        outbox.tell(message)
    await asyncio.sleep(0)
    assert len(pipe.written) == bool(messages)
    return b"".join(pipe.written)


@given(
    st.lists(st.text(max_size=40), max_size=5), st.lists(st.integers(min_value=1, max_value=30), min_size=1, max_size=9)
)
def test_batches_come_whole_however_the_pipe_cuts_them(texts: list[str], cuts: list[int]) -> None:
    """Messages told in a turn of the loop are one batch, and come out of any cutting as they were."""
    messages: list[FromReader] = [
        message
        for number, text in enumerate(texts)
        for message in (
            Came({number: 3}),
            Part(number, DraftText(content=text, pieces=Pieces(content=(len(text),)))),
            Landed(number, 3, Whole(Completion(content=text, token_bytes=(text.encode(),)))),
        )
    ]
    data, batches, found = asyncio.run(_told(messages)) * 2, Batches(), list[FromReader]()
    place = turn = 0
    while place < len(data):
        size = cuts[turn % len(cuts)]
        for batch in batches.feed(data[place : place + size]):
            found += from_reader(batch)
        place, turn = place + size, turn + 1
    assert found == messages * 2


def test_an_end_is_told_with_its_reason() -> None:
    """What the engine says to a reader process comes as it was said."""

    async def told() -> bytes:
        pipe = Pipe()
        Outbox[End](asyncio.get_running_loop(), pipe).tell(End(7, "the cap"))
        await asyncio.sleep(0)
        return pipe.written[0]

    (batch,) = Batches().feed(asyncio.run(told()))
    assert to_reader(batch) == [End(7, "the cap")]


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), min_size=1, max_size=6))
def test_parts_add_up_to_the_answer(texts: list[tuple[str, str]]) -> None:
    """Parts merged in any grouping hold the text and the pieces of all of them; without any there is no answer."""
    parts = [DraftText(a, b, pieces=Pieces((len(a),), (len(b),)), provider="P") for a, b in texts]
    half = len(parts) // 2
    grouped = [drafts.merged(part) for part in (parts[:half], parts[half:]) if part]
    assert drafts.merged(grouped) == drafts.merged(parts)
    outcome = drafts.outcome(parts, "it died", "gen-1")
    assert isinstance(outcome, Completion)
    assert (outcome.reasoning, outcome.content) == ("".join(a for a, _ in texts), "".join(b for _, b in texts))
    assert outcome.cut is not None
    assert outcome.cut.kind is FailureKind.CUT
    lost = drafts.outcome([], "it died", "gen-1")
    assert isinstance(lost, Failure)
    assert lost.kind is FailureKind.LOST


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _until(process: subprocess.Popen[str], true: Callable[[], bool]) -> None:
    """Let the process go on until something holds."""
    while process.poll() is None and not true():
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    assert process.poll() is None, "it ended before its time"


def _texts(folder: Path) -> dict[str, tuple[str, str]]:
    run = Run(folder / "run")
    try:
        return {record.work.key: (record.completion.reasoning, record.completion.content) for record in run.records()}
    finally:
        run.close()


@pytest.mark.e2e
def test_two_processes_read_what_one_reads(tmp_path: Path, kimi_folder: Path) -> None:
    """The same market and prompts give the same answers, labels and dollars, whoever reads."""
    found: list[dict[str, tuple[str, str]]] = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        folder.mkdir()
        with kit.simulator(kimi_folder, "clean", tps=400, ttft=0.05, length_median=200, length_sigma=0.5) as sim:
            kit.write_run(folder, sim, kimi_folder, PROMPTS, in_flight=40, processes=processes)
            done = kit.eyas(folder, "run", "RUN.toml", "--yes")
            assert done.returncode == 0, done.stderr
            run = Run(folder / "run")
            money = kit.money(run, sim.books())
            assert money["settled"] == money["billed"]
            run.close()
        found.append(_texts(folder))
    assert len(found[0]) == PROMPTS
    assert found[0] == found[1]


@pytest.mark.e2e
def test_a_reader_that_dies_costs_the_ends_of_its_answers(tmp_path: Path, kimi_folder: Path) -> None:
    """One of two killed, then the other: what came is kept, the engine reads the rest, every dollar is explained."""
    with kit.simulator(kimi_folder, tps=60, ttft=0.1, length_median=300, length_sigma=0.2, slots=0) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, PROMPTS, in_flight=40, draft_seconds=0.25, processes=2)
        process = kit.start(tmp_path, "run", "RUN.toml", "--yes", "--progress", "none")
        _until(process, lambda: sim.state()["requests"] >= 40)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2.0)
        first, second = _children(process.pid)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        os.kill(second, signal.SIGKILL)
        _, err = process.communicate(timeout=120)
        assert process.returncode in (0, 5), err
        kit.eyas(tmp_path, "reconcile", "run")
        run, books = Run(tmp_path / "run"), sim.books()
        money = kit.money(run, books)
        ended = run.state.datasets["B3"].ended
        assert sum(ended.values()) == PROMPTS
        assert ended.get(Verdict.PARTIAL, 0) > 0
        assert len(run.state.alarms) >= 2
        assert money["settled"] + money["billed without id"] == money["billed"]
        run.close()


@pytest.mark.e2e
def test_readers_end_with_the_engine_and_hold_no_key(tmp_path: Path, kimi_folder: Path) -> None:
    """A killed engine leaves no reader process and no stream behind; the key stands in none of their environments."""
    with kit.simulator(kimi_folder, tps=20, length_median=400, slots=0) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, PROMPTS, in_flight=40, processes=2)
        process = kit.start(tmp_path, "run", "RUN.toml", "--yes", "--progress", "none")
        _until(process, lambda: sim.state()["in_flight"] >= 40)
        children = _children(process.pid)
        assert len(children) == 2
        for child in children:
            for name in ("environ", "cmdline"):
                assert kit.KEY.encode() not in Path(f"/proc/{child}/{name}").read_bytes()
        kit.kill(process)
        for child in children:
            with subprocess.Popen(["tail", f"--pid={child}", "-f", "/dev/null"]) as gone:  # noqa: S607  # coreutils
                assert gone.wait(20) == 0
        assert sim.state()["in_flight"] == 0


@pytest.mark.e2e
def test_interrupted_twice_keeps_what_came(tmp_path: Path, kimi_folder: Path) -> None:
    """The second ^C ends what flies in the reader processes too, and its text is kept."""
    with kit.simulator(kimi_folder, tps=60, length_median=2000, length_sigma=0.1, slots=0) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, PROMPTS, in_flight=40, max_tokens=4096, processes=2)
        process = kit.start(tmp_path, "run", "RUN.toml", "--yes", "--progress", "none")
        _until(process, lambda: sim.state()["in_flight"] >= 40)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3.0)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        run = Run(tmp_path / "run")
        assert run.state.datasets["B3"].ended.get(Verdict.PARTIAL, 0) >= 30
        assert not run.state.left_open()
        run.close()
