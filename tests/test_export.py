"""Export: same bytes for the same answers, nothing left out silently, the manifest last."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from eyas.errors import StorageError, UsageError
from eyas.export import Manifest, Options, export
from eyas.exporters.shards import CARD
from eyas.families import Loaded
from eyas.types import NANO, Completion, Finish, Record, Source, Usage, Work
from tests import exportkit

Make = Callable[..., Record]
Export = Callable[..., Manifest]


def _work(number: int, dataset: str = "B3") -> Work:
    return Work(dataset, f"{number:016x}")


@pytest.fixture(scope="module")
def answers(answer: Make) -> list[Record]:
    """Forty good answers of two datasets, and one of each kind that needs a decision."""
    words = [" The", " user", " wants", " an", " answer", ".", "\n\n"]
    good = [
        answer(
            [words[(i + k) % 7] for k in range(5 + i % 5)],
            [" ok", "."],
            work=_work(i, ("B3", "B4")[i % 2]),
            generation_id=f"gen-{i}",
        )
        for i in range(40)
    ]
    odd = [
        answer([" The"], [" ok"], counted=30, work=_work(100)),
        answer([" The", " user"], [" ok"], counted=1, work=_work(101)),
        answer([" The"], [" ok"], counted=None, streamed=False, work=_work(102)),
        answer([" The", " user"], finish=Finish.LENGTH, work=_work(103)),
        answer([" The", " \ufffd"], work=_work(104)),
        answer([" The"], finish=Finish.LENGTH, work=_work(105)),
    ]
    return sorted(good + odd, key=lambda record: record.work)


@pytest.fixture(scope="module")
def run_export(kimi: Loaded, kimi_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Export:
    """Export the answers of a run that holds just these; `instant` names datasets without thinking."""

    def call(records: list[Record], out: Path, instant: tuple[str, ...] = (), **options: Any) -> Manifest:
        folder = tmp_path_factory.mktemp("run") / "run"
        exportkit.write_run(folder, kimi_folder, records, instant=instant)
        return export([folder], lambda: kimi, Options(out, **{"workers": 1, "works_per_chunk": 8, **options}))

    return call


def _rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(out.glob("rows-*")) for line in path.read_text().splitlines()]


def _bytes(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def test_rows_have_the_documented_form(kimi: Loaded, run_export: Export, answers: list[Record], tmp_path: Path) -> None:
    """A row has exactly the documented keys, its text is decode(input_ids), and ids are sorted."""
    run_export(answers, tmp_path)
    rows = _rows(tmp_path)
    for row in rows:
        assert list(row) == ["id", "primary_id", "input_ids", "loss_mask", "text", "metadata"]
        assert row["text"] == kimi.vocab.decode(row["input_ids"])
        assert len(row["input_ids"]) == len(row["loss_mask"])
        sampled = kimi.vocab.decode([i for i, m in zip(row["input_ids"], row["loss_mask"], strict=True) if m])
        assert row["text"].endswith(f"<think>{sampled}")
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    first = rows[0]
    assert (first["id"], first["primary_id"]) == (f"B3/{0:016x}/t0/s0", f"B3/{0:016x}")
    assert first["metadata"] == {
        "dataset": "B3",
        "turn": 0,
        "label": "streamed",
        "provider": "P",
        "tag": "p",
        "model": "",
        "finish": "stop",
        "generation_id": "gen-0",
        "prompt_tokens": len(first["loss_mask"]) - sum(first["loss_mask"]),
        "completion_tokens": sum(first["loss_mask"]),
        "reasoning_tokens": 6,
        "usd": 1000 / NANO,
        "source": {"file": "", "line": 0},
    }


def test_no_value_is_null(run_export: Export, answers: list[Record], tmp_path: Path) -> None:
    """Readers that fix a column's type from the first rows meet the same types in every row."""
    bare = [msgspec.structs.replace(r, cost=None, completion=_bare(r)) for r in answers]
    run_export(bare, tmp_path, labels="loose")
    rows = [json.loads(line) for line in (tmp_path / "rows-00000.jsonl").read_bytes().splitlines()]
    assert rows
    assert all(value is not None for row in rows for value in row["metadata"].values())


def _bare(record: Record) -> Completion:
    return msgspec.structs.replace(record.completion, usage=None, finish=None)


def test_sources_and_unknown_costs(run_export: Export, answer: Make, tmp_path: Path) -> None:
    """Where a prompt was read stands in its row; a cost that is not known is -1 and warned of."""
    record = answer([" The"] * 40)
    prompt = msgspec.structs.replace(record.prompt, source=Source("b3.jsonl", 7))
    manifest = run_export([msgspec.structs.replace(record, prompt=prompt, cost=None)], tmp_path)
    metadata = _rows(tmp_path)[0]["metadata"]
    assert (metadata["source"], metadata["usd"]) == ({"file": "b3.jsonl", "line": 7}, -1.0)
    assert any("cost of 1 answers is not known" in warning for warning in manifest.warnings)


def test_every_answer_is_a_row_or_has_a_reason(run_export: Export, answers: list[Record], tmp_path: Path) -> None:
    """Counts, reasons and dollars of the manifest add up."""
    manifest = run_export(answers, tmp_path)
    b3 = manifest.datasets["B3"]
    assert b3.excluded == {
        "label broken": 1,
        "label mismatch": 1,
        "label near": 1,
        "label uncounted": 1,
        "no two adjacent supervised tokens": 1,
    }
    assert b3.answers == b3.exported + sum(b3.excluded.values()) == sum(c.answers for c in b3.labels.values())
    assert b3.usd == {"paid": 26 * 1000 / NANO, "exported": 21 * 1000 / NANO}
    assert manifest.datasets["B4"].exported == 20
    assert sum(d.exported for d in manifest.datasets.values()) == len(_rows(tmp_path))
    assert b3.supervised_tokens == sum(sum(r["loss_mask"]) for r in _rows(tmp_path) if r["metadata"]["dataset"] == "B3")
    assert any("ended at max_tokens" in warning for warning in manifest.warnings)
    assert any("do not agree" in warning for warning in manifest.warnings)


def test_loose_adds_near_and_uncounted(run_export: Export, answers: list[Record], tmp_path: Path) -> None:
    """The loose policy takes two more labels, and only those."""
    labels = {d: c.labels for d, c in run_export(answers, tmp_path, labels="loose").datasets.items()}
    assert labels["B3"]["near"].exported == labels["B3"]["uncounted"].exported == 1
    assert labels["B3"]["mismatch"].exported == labels["B3"]["broken"].exported == 0


def test_the_manifest_is_the_returned_one_and_its_sums_hold(
    run_export: Export, answers: list[Record], tmp_path: Path
) -> None:
    """manifest.json decodes to what export returns; sizes and sha256 are those of the files."""
    manifest = run_export(answers, tmp_path, rows_per_shard=16)
    assert msgspec.json.decode((tmp_path / "manifest.json").read_bytes(), type=Manifest) == manifest
    assert manifest.schema == 1
    # A chunk is 8 works; those with the five answers that are no rows fill no shard.
    assert [shard.rows for shard in manifest.shards] == [16, 19, 6]
    for shard in manifest.shards:
        data = (tmp_path / shard.name).read_bytes()
        assert (shard.bytes, shard.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        assert data.count(b"\n") == shard.rows
    assert manifest.habits["P"].explained > 40
    assert {path.name for path in tmp_path.iterdir()} - {CARD} == {*(s.name for s in manifest.shards), "manifest.json"}


@pytest.mark.parametrize("compress", ["none", "gz", "zst"])
def test_any_order_of_arrival_gives_the_same_bytes(
    run_export: Export, answers: list[Record], tmp_path: Path, compress: str
) -> None:
    """Answers that came in another order give the same files, compressed or not (I7)."""
    run_export(answers, tmp_path / "a", compress=compress)
    run_export(random.Random(1).sample(answers, len(answers)), tmp_path / "b", compress=compress)
    assert _bytes(tmp_path / "a") == _bytes(tmp_path / "b")


def test_compressed_shards_hold_the_plain_rows(run_export: Export, answers: list[Record], tmp_path: Path) -> None:
    """Unpacked, gz and zst shards are the plain ones."""
    for compress in ("none", "gz", "zst"):
        run_export(answers, tmp_path / compress, compress=compress)
    plain = (tmp_path / "none/rows-00000.jsonl").read_bytes()
    assert gzip.decompress((tmp_path / "gz/rows-00000.jsonl.gz").read_bytes()) == plain
    with zstandard.open(tmp_path / "zst/rows-00000.jsonl.zst", "rb") as packed:
        assert packed.read() == plain


def test_a_former_export_is_replaced(run_export: Export, answers: list[Record], tmp_path: Path) -> None:
    """Stale shards go, files of the user stay, and the result is that of a fresh folder."""
    run_export(answers, tmp_path / "a", rows_per_shard=5)
    (tmp_path / "a/README.md").write_text("mine")
    run_export(answers, tmp_path / "a", compress="gz")
    run_export(answers, tmp_path / "b", compress="gz")
    assert _bytes(tmp_path / "a") == _bytes(tmp_path / "b") | {"README.md": b"mine"}


def test_a_folder_of_someone_else_is_refused(run_export: Export, answers: list[Record], tmp_path: Path) -> None:
    """A folder with other files, or another program's manifest, is left alone."""
    (tmp_path / "manifest.json").write_text('{"name": "web app"}')
    with pytest.raises(UsageError, match="choose another --out"):
        run_export(answers, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_an_export_that_broke_off_has_no_manifest_and_can_be_repeated(
    run_export: Export,
    kimi: Loaded,
    kimi_folder: Path,
    answer: Make,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A failed export leaves no manifest, even where one stood; the next one is whole."""
    answers = [answer([" The"] * 10_000, work=_work(number)) for number in range(3)]
    run_export(answers, tmp_path)
    whole, limits = _bytes(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    folder = exportkit.write_run(tmp_path_factory.mktemp("run") / "run", kimi_folder, answers)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(StorageError, match="File too large"):
            export([folder], lambda: kimi, Options(tmp_path, workers=1, works_per_chunk=8))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "manifest.json").exists()
    run_export(answers, tmp_path)
    assert _bytes(tmp_path) == whole


def test_length_options(run_export: Export, answers: list[Record], tmp_path: Path) -> None:
    """Answers cut by max_tokens can be dropped, rows shortened, and rows with few supervised tokens left out."""
    dropped = run_export(answers, tmp_path / "a", on_length="drop").datasets["B3"]
    assert dropped.excluded["ended at max_tokens"] == 2
    few = run_export(answers, tmp_path / "b", min_loss_tokens=10).datasets["B4"]
    assert few.exported + few.excluded["fewer than 10 supervised tokens"] == 20
    shortest = min(len(row["input_ids"]) for row in _rows(tmp_path / "b"))
    cut = run_export(answers, tmp_path / "c", max_length=shortest - 3)
    assert {len(row["input_ids"]) for row in _rows(tmp_path / "c")} <= set(range(shortest - 2))
    assert any(f"cut to {shortest - 3} ids" in warning for warning in cut.warnings)
    assert run_export(answers, tmp_path / "d", max_length=5).datasets["B4"].excluded == {"no supervised token": 20}


def test_an_unknown_format_is_refused(run_export: Export, answers: list[Record], tmp_path: Path) -> None:
    """The error names the formats there are."""
    with pytest.raises(UsageError, match="rows"):
        run_export(answers, tmp_path, format="zip")


def test_an_export_of_nothing_is_a_manifest(run_export: Export, tmp_path: Path) -> None:
    """No answers: no shards, and a manifest that says so."""
    manifest = run_export([], tmp_path / "new" / "folder")
    assert (manifest.shards, manifest.datasets, manifest.yields.datasets) == ((), {}, {})


def test_datasets_have_their_own_mode(kimi: Loaded, run_export: Export, answer: Make, tmp_path: Path) -> None:
    """An instant dataset is rendered with a closed think block, and its provider learned apart."""
    instant = answer([], [" ok"] * 40, work=_work(1, "I"))
    prompt = instant.prompt
    usage = Usage(kimi.count_prompt(prompt.messages, (), thinking=False), 41)
    completion = msgspec.structs.replace(instant.completion, usage=usage)
    records = [answer([" The"], [" ok"], work=_work(1, "A")), msgspec.structs.replace(instant, completion=completion)]
    manifest = run_export(records, tmp_path, instant=("I",))
    assert sorted(manifest.habits) == ["P", "P (instant)"]
    assert ["</think> ok" in row["text"] for row in _rows(tmp_path)] == [True, True]
    assert [row["text"].count("<think></think>") for row in _rows(tmp_path)] == [0, 1]
