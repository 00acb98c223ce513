"""The Python interface from end to end against the simulator: run, open, plan, export, report, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

import eyas
from eyas import cli
from eyas.api.columns import ORDER, columns
from eyas.errors import KeyOrCreditsError, LockedError, StalePlanError, StorageError, UsageError
from eyas.lock import lock
from tests import kit

FAST = {"tps": 400, "ttft": 0.05, "length_median": 120, "length_sigma": 0.5, "slots": 0}
PROMPTS = 40


@pytest.fixture(scope="module")
def sim(kimi_folder: Path) -> Iterator[kit.Sim]:
    """One simulator for all tests of this file."""
    with kit.simulator(kimi_folder, "clean", 3, **FAST, drift=0.2) as found:
        yield found


@pytest.fixture(scope="module")
def whole(sim: kit.Sim, kimi_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was run to its end from Python."""
    folder = tmp_path_factory.mktemp("whole")
    kit.write_run(folder, sim, kimi_folder, PROMPTS)
    told: list[eyas.Progress] = []
    result = eyas.run(folder / "RUN.toml", key=kit.KEY, on_progress=told.append)
    assert result.complete
    assert (told[-1].answers, told[-1].works, told[-1].in_flight) == (PROMPTS, PROMPTS, 0)
    assert told[-1].usd == result.figures["money"]["settled"] > 0
    assert result.figures["state"] == "complete"
    assert "complete: moonshotai/kimi-k2.5" in str(result)
    assert any("40 prompts" in note or "prompt" in note for note in result.notes)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(whole, tmp_path / "copy")


def status(folder: Path, capsys: pytest.CaptureFixture[str]) -> object:
    """What `eyas status --json` prints."""
    with pytest.raises(SystemExit):
        cli.main(["status", str(folder / "run"), "--json"])
    return json.loads(capsys.readouterr().out)


def test_an_open_run_says_what_the_command_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """status() is `eyas status --json`; opened with or without `with`, and closed twice."""
    run = eyas.open_run(str(folder / "run"))
    assert run.status() == status(folder, capsys)
    assert not run.running
    run.refresh()
    run.close()
    run.close()
    with eyas.open_run([folder / "run", folder / "run"]) as once:
        assert once.folders == ((folder / "run").resolve(),)
        assert [record.work for record in once.records()] == sorted(record.work for record in once.records())


def test_sequences_are_the_rows_of_an_export(folder: Path) -> None:
    """The same ids, masks and labels in the same order, for both policies and where rows are cut."""
    for labels, most in (("strict", None), ("loose", None), ("strict", 90)):
        out = folder / f"rows-{labels}-{most}"
        manifest = eyas.export(folder / "run", out, labels=labels, max_length=most)
        rows = [json.loads(line) for shard in manifest.shards for line in (out / shard.name).read_bytes().splitlines()]
        with eyas.open_run(folder / "run") as run:
            found = list(run.sequences(labels, max_length=most))
            texts = [run.decode((*each.prompt_ids, *each.completion_ids)) for each in found]
        assert [row["id"] for row in rows] == [each.record_id for each in found]
        assert [row["input_ids"] for row in rows] == [[*each.prompt_ids, *each.completion_ids] for each in found]
        assert [row["loss_mask"] for row in rows] == [list(each.loss_mask) for each in found]
        assert [row["metadata"]["label"] for row in rows] == [each.label for each in found]
        assert [row["text"] for row in rows] == texts
    with eyas.open_run(folder / "run") as run:
        assert [each.record_id for each in run.sequences("all")] == [each.work.key for each in run.records()]


def test_the_command_writes_the_same_bytes(folder: Path) -> None:
    """`eyas.export` and `eyas export` are one."""
    ours = eyas.export(folder / "run", folder / "ours")
    with pytest.raises(SystemExit) as ended:
        cli.main(["export", str(folder / "run"), "--out", str(folder / "theirs")])
    assert ended.value.code == 0
    assert (folder / "ours" / "manifest.json").read_bytes() == (folder / "theirs" / "manifest.json").read_bytes()
    assert ours.yields.total.steps[0].rows == PROMPTS


def test_tables_agree_with_the_status(folder: Path) -> None:
    """Columns are of one length and sum up to the run's figures; attempts hold every request."""
    with eyas.open_run(folder / "run") as run:
        answers, attempts, figures = run.table(), run.table("attempts"), run.status()
        keys = [record.work.key for record in run.records()]
        prompts = [f"{prompt.dataset}/{prompt.id}" for prompt in run.prompts()]
    assert answers["id"].tolist() == keys
    assert len(prompts) == len(set(prompts)) == PROMPTS
    assert {len(column) for column in answers.values()} == {PROMPTS}
    assert answers["output_tokens"].sum() == figures["datasets"]["B3"]["output_tokens"]
    assert np.nansum(attempts["usd"]) == pytest.approx(figures["money"]["settled"])
    assert not np.isnan(answers["seconds"]).any()
    assert set(answers["label"]) == figures["labels"].keys()
    assert answers["at"].min() > 1_600_000_000


def test_an_empty_table_has_its_columns(folder: Path) -> None:
    """Of a run without answers a table has all columns, of the same kinds."""
    with eyas.open_run(folder / "run") as run:
        full = run.table()
    empty = columns(())
    assert list(empty) == list(full) == list(ORDER)
    assert [each.dtype.kind for each in empty.values()] == [each.dtype.kind for each in full.values()]


def test_a_plan_is_that_of_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures as `eyas plan --json`, text as its tables; saved it runs as long as it holds."""
    monkeypatch.setenv("OPENROUTER_API_KEY", kit.KEY)
    config = eyas.load(folder / "RUN.toml", run={"dir": "other"}, budget={"usd": 1.0})
    (folder / "OTHER.toml").write_text((folder / "RUN.toml").read_text().replace('dir = "run"', 'dir = "other"'))
    plan = eyas.plan(folder / "OTHER.toml", quotas=[1_000, 2_000])
    with pytest.raises(SystemExit):
        cli.main(["plan", str(folder / "OTHER.toml"), "--quotas", "1000,2000", "--json"])
    assert plan.figures == json.loads(capsys.readouterr().out)
    assert plan.text == str(plan)
    assert plan.figures["advice"].split()[0] in plan.text
    plan.save(folder / "plan.json")
    assert eyas.plan(config).figures["money"]["cap"] == 1.0
    with pytest.raises(UsageError, match="made from none"):
        eyas.plan(config).save(folder / "none.json")
    with pytest.raises(UsageError, match=r"ends in \.json"):
        plan.save(folder / "plan.txt")
    with pytest.raises(StorageError, match="choose another place"):
        plan.save(folder / "absent" / "plan.json")
    assert eyas.run(folder / "plan.json", limit=2).figures["datasets"]["B3"]["done"] == 2
    (folder / "prompts.jsonl").write_text('{"prompt": "Another one?"}\n')
    with pytest.raises(StalePlanError):
        eyas.run(folder / "plan.json")


def test_a_session_may_be_a_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`limit` and `shard` ask a part; a run made from a dict goes on by the command, from what its directory keeps."""
    data = {**eyas.load(folder / "RUN.toml").model_dump(mode="json", exclude_unset=True, exclude={"base", "shard"})}
    data["datasets"] = [{"name": "B3", "source": str(folder / "prompts.jsonl")}]
    data["run"] = {"dir": str(folder / "dict")}
    first = eyas.run(data, key=kit.KEY, limit=3)
    assert first.reason == "complete"
    assert first.figures["datasets"]["B3"]["done"] == 3
    shards = [eyas.run(data, key=kit.KEY, shard=f"{number}/2", limit=2) for number in (1, 2)]
    with eyas.open_run([each.dir for each in shards]) as both:
        assert len(list(both.records())) == 4
        assert both.status()["datasets"]["B3"]["done"] == 4
        assert [event.at for event in both.events()] == sorted(event.at for event in both.events())
    with shards[0].open() as one, pytest.raises(UsageError, match="of shard 1/2 only"):
        eyas.run(one.config, key=kit.KEY)


def test_in_a_running_loop_the_call_to_write_is_named(folder: Path) -> None:
    """In a notebook `run` and `plan` name their async twins, which work there."""

    async def notebook() -> tuple[eyas.Result, eyas.Plan]:
        for call in (eyas.run, eyas.plan):
            with pytest.raises(UsageError, match=rf"await eyas\.{call.__name__}_async"):
                call(folder / "RUN.toml")
        return await eyas.run_async(folder / "RUN.toml", key=kit.KEY), await eyas.plan_async(folder / "RUN.toml")

    result, plan = asyncio.run(notebook())
    assert result.complete
    assert plan.figures["total"]["answers"] == 0


def test_what_goes_wrong_is_said(folder: Path, sim: kit.Sim, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each error is one of eyas.errors, and says what to do."""
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    path = folder / "RUN.toml"
    with pytest.raises(UsageError, match="set OPENROUTER_API_KEY, or give key="):
        eyas.run(path)
    with pytest.raises(UsageError, match="spaces or control characters"):
        eyas.run(path, key=SecretStr("sk test"))
    with pytest.raises(UsageError, match="no such dataset"):
        eyas.run(path, key=kit.KEY, datasets=["B9"])
    with pytest.raises(UsageError, match=r"no \[fallback\]"):
        eyas.run(path, key=kit.KEY, fallback=True)
    with lock(folder / "run"), pytest.raises(LockedError, match="in use"):
        eyas.run(path, key=kit.KEY)
    with pytest.raises(UsageError, match="no run directory"):
        eyas.open_run(folder / "absent")
    with pytest.raises(UsageError, match="no run directory was given"):
        eyas.open_run([])
    with eyas.open_run(folder / "run") as run:
        with pytest.raises(UsageError, match="'strict' or 'loose'"):
            run.sequences("sloppy")  # pyright: ignore[reportArgumentType]
        with pytest.raises(UsageError, match="'answers' or 'attempts'"):
            run.table("all")  # pyright: ignore[reportArgumentType]
        with pytest.raises(UsageError, match="no id"):
            run.decode([10**9])
    with pytest.raises(UsageError, match="max_length = 1: give 2 or more"):
        eyas.export(folder / "run", folder / "out", max_length=1)
    assert issubclass(KeyOrCreditsError, eyas.EyasError)
    assert eyas.errors.UsageError is UsageError


def test_a_report_is_written(folder: Path) -> None:
    """The figures agree with the run's, and the page stands where it was wanted."""
    found = eyas.report(folder / "run", folder / "look.html")
    with eyas.open_run(folder / "run") as run:
        assert found.status == run.status()
        assert found.headline.supervised_tokens == sum(sum(each.loss_mask) for each in run.sequences())
    assert "<html" in (folder / "look.html").read_text(encoding="utf-8")[:200]
    assert eyas.report(folder / "run", text=False).samples == []
