"""The whole product in processes of its own against the simulator over loopback: kills, caps, truth of ids, bad input."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from eyas.records import Run
from eyas.types import Verdict
from tests import kit

pytestmark = pytest.mark.e2e

FAST = {"tps": 400, "ttft": 0.05, "length_median": 200, "length_sigma": 0.5, "slots": 0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a run and nothing else."""
    return tmp_path


def test_kills_lose_nothing(folder: Path, kimi_folder: Path) -> None:
    """Four SIGKILLs: every work in one state, no journalled answer asked again, every dollar explained."""
    with kit.simulator(kimi_folder, tps=60, length_median=200, length_sigma=0.3, slots=0) as sim:
        kit.write_run(folder, sim, kimi_folder, 60, in_flight=30, draft_seconds=0.25)
        asked: dict[str, int] = {}
        for seconds in (1.0, 2.0, 3.0, 2.5):
            process = kit.start(folder, "run", "RUN.toml", "--yes", "--progress", "none")
            kit.until(process, lambda: sim.state()["in_flight"] > 0)
            with pytest.raises(Exception, match="timed out"):
                process.wait(seconds)
            kit.kill(process)
            if (folder / "run" / "journal.db").exists():
                run, counts = Run(folder / "run"), kit.asked(sim.books().values())
                for work in kit.answered(run):
                    key = kit.prompt_key(run.prompt(work.dataset, work.prompt_id))
                    asked.setdefault(key, counts[key])
                run.close()
        last = kit.eyas(folder, "run", "RUN.toml", "--yes")
        assert last.returncode in (0, 5), last.stderr
        kit.eyas(folder, "reconcile", "run")
        run, books = Run(folder / "run"), sim.books()
        money, counts = kit.money(run, books), kit.asked(books.values())
        assert {key: counts[key] for key in asked} == asked
        assert sum(run.state.datasets["B3"].ended.values()) == 60
        assert run.state.datasets["B3"].ended.get(Verdict.PARTIAL, 0) > 0
        assert money["settled"] + money["billed without id"] == money["billed"]
        run.close()


def test_cap_is_hard_and_can_be_raised(folder: Path, kimi_folder: Path) -> None:
    """Work for more than the cap ends with exit 3 and a bill below the cap; a raised cap resumes to the end."""
    with kit.simulator(kimi_folder, **FAST) as sim:
        kit.write_run(folder, sim, kimi_folder, 200, usd=0.05, in_flight=50)
        first = kit.eyas(folder, "run", "RUN.toml", "--json", "--progress", "none")
        assert first.returncode == 3, first.stderr
        status = json.loads(first.stdout)
        assert status["state"] == "partial"
        assert 0.04 < sim.state()["billed_nano"] / 1e9 <= 0.05
        assert status["datasets"]["B3"]["skipped"] > 0
        kit.write_run(folder, sim, kimi_folder, 200, usd=1.0, in_flight=50)
        second = kit.eyas(folder, "run", "RUN.toml", "--json", "--progress", "none")
        assert second.returncode == 0, second.stderr
        assert json.loads(second.stdout)["datasets"]["B3"]["done"] == 200
        assert len(sim.books()) == 200


def test_exported_ids_are_the_sampled_ones(folder: Path, kimi_folder: Path) -> None:
    """`streamed` rows hold the sampled ids, drifted or not; undrifted answers of faithful providers are all exact."""
    with kit.simulator(kimi_folder, "clean", 3, **{**FAST, "slots": 12}, drift=0.2) as sim:
        kit.write_run(folder, sim, kimi_folder, 400, in_flight=200)
        assert kit.eyas(folder, "run", "RUN.toml", "--yes").returncode == 0
        exported = kit.eyas(folder, "export", "run", "--out", "rows", "--labels", "loose")
        assert exported.returncode == 0, exported.stderr
        books = sim.books(ids=True)
    rows = [json.loads(line) for line in (folder / "rows" / "rows-00000.jsonl").read_bytes().split(b"\n") if line]
    seen = {"streamed": 0, "drifted and streamed": 0, "faithful": 0}
    for row in rows:
        truth = books[row["metadata"]["generation_id"]]
        sampled = truth["ids"] if row["metadata"]["finish"] != "length" else truth["ids"][: truth["sent"]]
        ids = row["input_ids"][row["loss_mask"].index(1) :]
        if row["metadata"]["label"] == "streamed":
            seen["streamed"] += 1
            seen["drifted and streamed"] += truth["drifted"]
            assert ids == sampled
        if row["metadata"]["label"] in ("streamed", "counted") and not truth["drifted"]:
            seen["faithful"] += 1
            assert ids == sampled
    assert min(seen.values()) > 5, seen


def test_interrupt_drains_and_resumes(folder: Path, kimi_folder: Path) -> None:
    """^C lets what flies land and leaves with 130; the same command finishes the run."""
    with kit.simulator(kimi_folder, tps=100, length_median=150, length_sigma=0.2, slots=0) as sim:
        kit.write_run(folder, sim, kimi_folder, 40, in_flight=10)
        process = kit.start(folder, "run", "RUN.toml", "--yes", "--json", "--progress", "none")
        deadline = time.monotonic() + 60
        while sim.state()["in_flight"] < 10 and time.monotonic() < deadline:
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 130, err
        status = json.loads(out)
        assert status["state"] == "stopped"
        assert status["datasets"]["B3"]["partial"] == 0
        assert 10 <= status["datasets"]["B3"]["done"] < 40
        assert kit.eyas(folder, "run", "RUN.toml", "--yes").returncode == 0
        assert len(sim.books()) == 40


def test_the_key_stands_nowhere(folder: Path, kimi_folder: Path) -> None:
    """After a rough run no file of the run and no output holds the key; texts are readable by the owner only."""
    with kit.simulator(kimi_folder, "rough", **FAST) as sim:
        kit.write_run(folder, sim, kimi_folder, 100, in_flight=50)
        ended = kit.eyas(folder, "run", "RUN.toml", "--yes", "--json")
        shown = kit.eyas(folder, "status", "run", "--json")
    assert kit.KEY not in ended.stdout + ended.stderr + shown.stdout
    for path in (folder / "run").iterdir():
        assert kit.KEY.encode() not in path.read_bytes()
    assert os.stat(folder / "run" / "journal.db").st_mode & 0o077 == 0  # noqa: PTH116


BAD = {
    "a missing file": ("none.toml", None, "cannot be read"),
    "a wrong key": ("RUN.toml", ("in_flight", "in_flights"), "did you mean in_flight"),
    "an unknown model": ("RUN.toml", ("moonshotai/kimi-k2.5", "moonshotai/kimi-k2.5-x"), "does not know the model"),
    "no source": ("RUN.toml", ("prompts.jsonl", "nothing.jsonl"), "nothing.jsonl"),
    "too large an answer": ("RUN.toml", ("max_tokens = 1024", "max_tokens = 900000"), "the largest takes"),
    "no tokenizer": ("RUN.toml", ('tokenizer = "', 'tokenizer = "/nowhere'), "tokenizer"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_input_costs_nothing(name: str, folder: Path, kimi_folder: Path) -> None:
    """Bad input ends with exit 2, a message that names it, and no request to the chat API."""
    file, change, expected = BAD[name]
    with kit.simulator(kimi_folder, **FAST) as sim:
        kit.write_run(folder, sim, kimi_folder, 5)
        if change:
            path = folder / "RUN.toml"
            path.write_text(path.read_text().replace(*change))
        ended = kit.eyas(folder, "run", file, "--yes")
        assert ended.returncode == 2, ended.stderr
        assert expected in ended.stderr
        assert "Traceback" not in ended.stderr
        assert sim.state()["requests"] == 0


def test_no_consent_no_run(folder: Path, kimi_folder: Path) -> None:
    """Above $5 without a terminal and without --yes: exit 2; a key that is missing: exit 2; a refused key: exit 6."""
    with kit.simulator(kimi_folder, **FAST, keys="sk-other") as sim:
        kit.write_run(folder, sim, kimi_folder, 5, usd=100.0)
        asked = kit.eyas(folder, "run", "RUN.toml")
        assert (asked.returncode, "--yes" in asked.stderr) == (2, True)
        refused = kit.eyas(folder, "run", "RUN.toml", "--yes")
        assert refused.returncode == 6, refused.stderr
        empty = folder / "key"
        empty.write_text("")
        missing = kit.eyas(folder, "run", "RUN.toml", "--yes", "--key-file", "key")
        assert (missing.returncode, "API key" in missing.stderr) == (2, True)


def test_a_run_keeps_its_meaning(folder: Path, kimi_folder: Path) -> None:
    """Answers bought with thinking are not continued without it, and lost prompts are not forgotten without consent."""
    with kit.simulator(kimi_folder, **FAST) as sim:
        kit.write_run(folder, sim, kimi_folder, 5)
        assert kit.eyas(folder, "run", "RUN.toml", "--yes").returncode == 0
        text = (folder / "RUN.toml").read_text()
        (folder / "RUN.toml").write_text(text.replace("max_tokens = 1024", "max_tokens = 1024\nthinking = false"))
        changed = kit.eyas(folder, "run", "RUN.toml", "--yes")
        assert (changed.returncode, "thinking on" in changed.stderr) == (2, True), changed.stderr
        assert "thinking = false" not in (folder / "run" / "run.toml").read_text()  # what was refused is not kept
        kit.write_run(folder, sim, kimi_folder, 4)
        lost = kit.eyas(folder, "run", "RUN.toml", "--yes")
        assert (lost.returncode, "--confirm-removed" in lost.stderr) == (2, True), lost.stderr
        agreed = kit.eyas(folder, "run", "RUN.toml", "--yes", "--confirm-removed", "--json")
        assert agreed.returncode == 0, agreed.stderr
        assert json.loads(agreed.stdout)["datasets"]["B3"]["done"] == 5
        assert len(sim.books()) == 5


def test_rows_and_bad_rows(folder: Path, kimi_folder: Path) -> None:
    """A bad row is told of and kept with file, line and reason; the others are asked; twins are asked once."""
    with kit.simulator(kimi_folder, **FAST) as sim:
        kit.write_run(folder, sim, kimi_folder, 8)
        with (folder / "prompts.jsonl").open("a") as file:
            file.write('{"prompt": ""}\nnot json\n{"prompt": "Question 0: what is 0 + 0?"}\n')
        ended = kit.eyas(folder, "run", "RUN.toml", "--yes")
        assert ended.returncode == 0, ended.stderr
        assert "B3: 8 prompts of 11 rows; left out: 1 duplicate, 2 that cannot be asked" in ended.stderr
        rows = [json.loads(line) for line in (folder / "run" / "quarantine.jsonl").read_text().splitlines()]
        assert [row["line"] for row in rows] == [9, 10]
        assert len(sim.books()) == 8


def test_reconcile_with_a_refused_key(folder: Path, kimi_folder: Path) -> None:
    """Unknown costs cannot be looked up with a refused key: exit 6 and a sentence; a write-off needs no key."""
    with kit.simulator(kimi_folder, tps=30, length_median=600, slots=0, keys=kit.KEY) as sim:
        kit.write_run(folder, sim, kimi_folder, 10, in_flight=10)
        process = kit.start(folder, "run", "RUN.toml", "--yes", "--progress", "none")
        deadline = time.monotonic() + 60
        while sim.state()["in_flight"] < 10 and time.monotonic() < deadline:
            pass
        kit.kill(process)
        (folder / "wrong").write_text("sk-wrong")
        refused = kit.eyas(folder, "reconcile", "run", "--key-file", "wrong")
        assert (refused.returncode, "refuses the key" in refused.stderr) == (6, True), refused.stderr
        (folder / "empty").write_text("")
        written = kit.eyas(folder, "reconcile", "run", "--write-off", "all", "--key-file", "empty")
        assert (written.returncode, "written off" in written.stderr) == (0, True), written.stderr
