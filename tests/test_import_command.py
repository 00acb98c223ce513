"""The command: a run begun by it, its table, what it says next, and what the user had removed for good."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from eyas.cli import main
from eyas.engine import again, forget
from eyas.engine.where import parse
from eyas.export import Options, export
from eyas.families import Loaded
from eyas.lock import lock
from eyas.types import Label
from tests import exportkit, kit
from tests.importkit import Make, asked, forms, make_run, question, sampled

make = make_run


def _eyas(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(each) for each in arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_the_command_begins_a_run_and_prints_what_became_of_the_rows(
    make: Make, kimi: Loaded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With RUN.toml in place of a run directory; a packed file; the second time nothing is left to take."""
    one = make()
    rows = [forms(kimi, asked(question(n)), sampled(kimi))["vllm flat"] for n in (0, 1, 9)]
    one.write("a.jsonl", rows)
    (one.folder / "a.jsonl.gz").write_bytes(gzip.compress((one.folder / "a.jsonl").read_bytes()))
    text = (one.folder / "RUN.toml").read_text().replace('dir = "run"', 'dir = "fresh"')
    (one.folder / "FRESH.toml").write_text(text)
    monkeypatch.chdir(one.folder)
    command = ("import", "FRESH.toml", "a.jsonl.gz", "--dataset", "A", "--provider", "my vLLM")
    assert _eyas(*command, "--dry-run") == 2
    assert not (one.folder / "fresh").exists()
    assert _eyas(*command) == 0
    out, err = capsys.readouterr()
    tokens = 2 * len(sampled(kimi))
    assert [line.split() for line in out.splitlines()] == [
        ["answers", "count", "tokens"],
        ["imported,", "engine", "2", str(tokens)],
        ["in", "quarantine", "1"],
    ]
    for words in (
        "3 prompts joined",
        "a.jsonl.gz, line 3",
        f"A has {tokens} tokens; 1 answers are still owed",
        "`eyas run`",
    ):
        assert words in " ".join(err.split())
    assert _eyas("import", "fresh", "a.jsonl.gz", "--dataset", "A") == 0
    assert "already answered      2" in capsys.readouterr().out
    export([one.folder / "fresh"], lambda: kimi, Options(one.folder / "rows", workers=1))
    assert {row["metadata"]["provider"] for row in exportkit.rows(one.folder / "rows")} == {"my vLLM"}


def test_mistakes_are_named(make: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset that RUN.toml does not have, a file that is not there, a run that somebody holds: nothing is changed."""
    one = make()
    monkeypatch.chdir(one.folder)
    assert _eyas("import", "run", "prompts.jsonl", "--dataset", "B") == 2
    assert "there is no dataset 'B'" in capsys.readouterr().err
    assert _eyas("import", "run", "none.jsonl", "--dataset", "A") == 2
    assert "none.jsonl: cannot be read" in capsys.readouterr().err
    with lock(one.dir):
        assert _eyas("import", "run", "prompts.jsonl", "--dataset", "A") == 2
    assert "is in use by process" in capsys.readouterr().err


def test_a_format_that_is_named_is_the_one_that_is_read(make: Make, kimi: Loaded) -> None:
    """A row with ids and a conversation is text if the user says so; a row without it is refused."""
    one = make()
    said = {"role": "assistant", "content": " It is well.", "reasoning_content": " Hm."}
    row = {"messages": [*asked(question(0)), said], "finish_reason": "stop", "token_ids": sampled(kimi)}
    bare = {"prompt_token_ids": [1], "token_ids": sampled(kimi)}
    found = one.bring(one.write("a.jsonl", [row, bare]), form="text")
    assert found.taken == {Label.UNCOUNTED: 1}
    assert "no text answer is seen" in one.quarantine()[0]["reason"]


def test_a_forgotten_prompt_stays_forgotten(make: Make, kimi: Loaded) -> None:
    """Rows that answer it are counted and written nowhere; `forget` takes what it removes out of the quarantine too."""
    one = make()
    wrong = {**forms(kimi, asked(question(1)), sampled(kimi))["vllm chat"], "prompt_token_ids": "none"}
    one.bring(one.write("a.jsonl", [wrong]))
    assert len(one.quarantine()) == 1
    run = one.run()
    ids = {run.prompt("A", each).messages[0]["content"]: each for each in run.state.datasets["A"].prompts}
    run.close()
    doomed = forget.find(one.dir, [f"A/{ids[question(0)]}", f"A/{ids[question(1)]}"])
    with lock(one.dir):
        asyncio.run(forget.forget(one.dir, doomed, lambda: 0.0))
    assert not one.quarantine()
    rows = [forms(kimi, asked(question(n)), sampled(kimi))["vllm chat"] for n in (0, 2)]
    found = one.bring(one.write("b.jsonl", rows))
    assert (found.taken.total(), found.forgotten, len(found.bad)) == (1, 1, 0)


def test_what_was_imported_says_nothing_of_what_asking_costs(make: Make, kimi: Loaded) -> None:
    """`eyas retry` estimates by answers that were bought, not by those that cost nothing."""
    one = make()
    one.bring(one.write("a.jsonl", [forms(kimi, asked(question(0)), sampled(kimi))["vllm flat"]]))
    found = again.read(one.dir, parse("verdict=done"))
    assert (len(found.works), found.paid, found.estimate) == (1, 0, None)


def test_a_run_asks_only_what_was_not_imported(tmp_path: Path, kimi: Loaded, kimi_folder: Path) -> None:
    """Half of the answers come from a file, the simulator is asked for the others, and the export has all."""
    with kit.simulator(kimi_folder, length_median=60, speed=20) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 8)
        texts = [json.loads(line)["prompt"] for line in (tmp_path / "prompts.jsonl").read_text().splitlines()]
        rows = [forms(kimi, asked(text), sampled(kimi))["sglang ids"] for text in texts[:4]]
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        done = kit.eyas(tmp_path, "import", "RUN.toml", "a.jsonl", "--dataset", "B3")
        assert done.returncode == 0, done.stderr
        ran = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", "--progress", "none")
        assert ran.returncode == 0, ran.stderr
        assert len(sim.books()) == 4
    export([tmp_path / "run"], lambda: kimi, Options(tmp_path / "rows", workers=1, labels="loose"))
    tags = [row["metadata"]["tag"].partition(":")[0] for row in exportkit.rows(tmp_path / "rows")]
    assert len(tags) == 8
    assert tags.count("import") == 4
