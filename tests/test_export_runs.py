"""Several runs in one set, a run that goes on, and the evaluation share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import pytest

from eyas import cli, exporters
from eyas.errors import UsageError
from eyas.export import Manifest, Options, export
from eyas.families import Loaded
from eyas.types import Billed, Failure, FailureKind, Record
from tests import exportkit
from tests.exportkit import files, rows

Make = Callable[..., list[Record]]


@pytest.fixture(scope="module")
def make(answer: Callable[..., Record]) -> Make:
    """Good answers to the prompts of these numbers."""
    return partial(exportkit.good, answer)


@pytest.fixture(scope="module")
def here(kimi: Loaded) -> Callable[[], Loaded]:
    """The family of this process, already loaded."""
    return lambda: kimi


def test_several_runs_are_one_set_in_any_order(
    make: Make, here: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path
) -> None:
    """Works of all runs, sorted; a work in two runs is one row, of the smaller generation id; names of folders do not matter."""
    a = exportkit.write_run(tmp_path / "zebra", kimi_folder, make(range(20), "b"))
    b = exportkit.write_run(tmp_path / "ant", kimi_folder, make(range(10, 30), "a"))
    first = export([a, b], here, Options(tmp_path / "1", workers=1))
    second = export([b, a, b], here, Options(tmp_path / "2", workers=1))
    assert first == second
    assert files(tmp_path / "1") == files(tmp_path / "2")
    assert (first.runs, first.duplicates, first.datasets["B3"].answers) == (2, 10, 15)
    assert sorted(_ids(tmp_path / "1")) == sorted([f"b-{i}" for i in range(10)] + [f"a-{i}" for i in range(10, 30)])
    assert [row["id"] for row in rows(tmp_path / "1")] == sorted(row["id"] for row in rows(tmp_path / "1"))
    lost = {loss.reason: loss for loss in first.yields.total.losses}
    assert lost["paid twice: another answer stands for the work"].requests == 10


def _ids(out: Path) -> list[str]:
    return [row["metadata"]["generation_id"] for row in rows(out)]


def test_a_whole_answer_stands_before_a_cut_one(
    make: Make, here: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path
) -> None:
    """Of two answers to a work the whole one is taken, though its generation id is greater."""
    cut = [_cut(record) if record.work.prompt_id == f"{1:016x}" else record for record in make(range(20), "a")]
    a = exportkit.write_run(tmp_path / "a", kimi_folder, cut)
    b = exportkit.write_run(tmp_path / "b", kimi_folder, make([1], "b"))
    for order in ([a, b], [b, a]):
        export(order, here, Options(tmp_path / "out", workers=1))
        assert "b-1" in _ids(tmp_path / "out")
        assert len(_ids(tmp_path / "out")) == 20


def _cut(record: Record) -> Record:
    failure = Failure(FailureKind.CUT, Billed.YES, "the stream was cut")
    return msgspec.structs.replace(
        record, completion=msgspec.structs.replace(record.completion, cut=failure, finish=None)
    )


def test_answers_without_a_generation_id_are_told_apart_by_their_texts(
    answer: Callable[..., Record], here: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path
) -> None:
    """Where nothing else differs, the choice is still the same for every order of the runs."""
    runs = [
        exportkit.write_run(tmp_path / word.strip(), kimi_folder, [answer([word] * 5, [" ok"])])
        for word in (" user", " wants")
    ]
    for name, order in (("1", runs), ("2", runs[::-1])):
        export(order, here, Options(tmp_path / "out" / name, workers=1))
    assert files(tmp_path / "out" / "1") == files(tmp_path / "out" / "2")


def test_runs_of_different_targets_are_refused(
    make: Make, here: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path
) -> None:
    """Another model, or another tokenizer, is named in the error; nothing is written."""
    other = tmp_path / "tokenizer"
    other.mkdir()
    (other / "tiktoken.model").write_text("IQ== 0\n")
    runs = [
        exportkit.write_run(tmp_path / "a", kimi_folder, make([1])),
        exportkit.write_run(tmp_path / "b", kimi_folder, make([2]), model="moonshotai/kimi-k2.5-other"),
        exportkit.write_run(tmp_path / "c", other, make([2])),
    ]
    for wrong, what in ((runs[1], "model is"), (runs[2], "tokenizer is")):
        with pytest.raises(UsageError, match=what):
            export([runs[0], wrong], here, Options(tmp_path / "out", workers=1))
    with pytest.raises(UsageError, match="no run directory"):
        export([], here, Options(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_the_evaluation_share_is_split_by_prompt(
    make: Make, here: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path
) -> None:
    """All samples and all datasets of a prompt are on one side; both sides together are all rows."""
    records = make(range(60))
    again = [msgspec.structs.replace(r, work=msgspec.structs.replace(r.work, sample=1)) for r in records[:30]]
    both = [_in(record, "B5") for record in records[30:]]
    run = exportkit.write_run(tmp_path / "run", kimi_folder, [*records, *again, *both])
    manifest = export([run], here, Options(tmp_path / "out", workers=1, eval_share=0.25, works_per_chunk=10))
    train, test = rows(tmp_path / "out"), rows(tmp_path / "out", "eval")
    sides = [{row["primary_id"].split("/")[1] for row in rows} for rows in (train, test)]
    assert not sides[0] & sides[1]
    assert 5 <= len(sides[1]) <= 25
    assert len(train) + len(test) == 120
    assert sum(shard.rows for shard in manifest.eval_shards) == len(test)
    assert [shard.name for shard in manifest.eval_shards] == ["eval-00000.jsonl"]
    none = export([run], here, Options(tmp_path / "out", workers=1))
    assert (none.eval_shards, list((tmp_path / "out").glob("eval-*"))) == ((), [])


def _in(record: Record, dataset: str) -> Record:
    prompt = msgspec.structs.replace(record.prompt, dataset=dataset)
    return msgspec.structs.replace(record, work=msgspec.structs.replace(record.work, dataset=dataset), prompt=prompt)


def test_a_run_that_goes_on_is_exported_as_far_as_it_is(
    make: Make, here: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path
) -> None:
    """While the journal is open for writing its ended answers are exported; a later call writes the set anew."""
    records = make(range(30))
    found: list[Manifest] = []

    async def go_on() -> None:
        await exportkit.append(journal, records[:10])
        for event, payload in list(exportkit.answered(records[29], 99))[:1]:
            await journal.write(event, payload)
        found.append(export([tmp_path / "run"], here, Options(tmp_path / "out", workers=1)))
        await exportkit.append(journal, records[10:], 11)
        found.append(export([tmp_path / "run"], here, Options(tmp_path / "out", workers=1)))

    with closing(exportkit.open_run(tmp_path / "run", kimi_folder, ("B3", "B4"))) as journal:
        asyncio.run(go_on())
    assert [sum(each.exported for each in m.datasets.values()) for m in found] == [10, 30]
    assert any(loss.reason == "in flight" for loss in found[0].yields.total.losses)
    assert len(rows(tmp_path / "out")) == 30


def test_the_command_prints_the_yield_of_several_runs(
    make: Make, kimi_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`eyas export A B` writes one set and says on the screen what each step left."""
    runs = [
        exportkit.write_run(tmp_path / name, kimi_folder, make(range(n, n + 6))) for n, name in ((0, "a"), (3, "b"))
    ]
    with pytest.raises(SystemExit) as ended:
        cli.main(["export", *map(str, runs), "--out", str(tmp_path / "out"), "--eval-share", "0.2", "--workers", "1"])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (0, "")
    assert "duplicates dropped: 3" in said.err
    assert "labels of P: streamed" in said.err
    assert all(cannot in said.err for cannot in exporters.by_name("rows").cannot)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest["yield"]["total"]["steps"][1]["rows"] == 9
