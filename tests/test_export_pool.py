"""Export over processes: the same bytes, the formats, and what stands beside the shards."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from eyas import exporters
from eyas.errors import EyasError, UsageError
from eyas.export import Options, export
from eyas.export.texts import Texts
from eyas.families import Loaded
from eyas.types import Record
from tests import exportkit
from tests.exportkit import files

Make = Callable[..., list[Record]]


@pytest.fixture(scope="module")
def make(answer: Callable[..., Record]) -> Make:
    """Good answers to the prompts of these numbers."""
    return partial(exportkit.good, answer)


@pytest.fixture(scope="module")
def here(kimi: Loaded) -> Callable[[], Loaded]:
    """The family of this process, already loaded."""
    return lambda: kimi


@pytest.fixture(scope="module")
def load(kimi_folder: Path) -> Callable[[], Loaded]:
    """Loads the family in any process."""
    return partial(exportkit.load_kimi, kimi_folder)


@pytest.mark.parametrize(("name", "compress"), [("rows", "zst"), ("parquet", "none")])
def test_any_number_of_processes_gives_the_same_bytes(
    make: Make,
    load: Callable[[], Loaded],
    kimi_folder: Path,
    tmp_path: Path,
    name: str,
    compress: Literal["none", "zst"],
) -> None:
    """One process and two write the same shards and the same manifest (I7)."""
    run = exportkit.write_run(tmp_path / "run", kimi_folder, make(range(60)))
    for workers in (1, 2):
        options = Options(tmp_path / str(workers), name, compress=compress, rows_per_shard=20, eval_share=0.3)
        export([run], load, replace(options, workers=workers, works_per_chunk=7))
    assert files(tmp_path / "1") == files(tmp_path / "2")
    assert len(list((tmp_path / "1").glob("rows-*"))) > 1


def test_a_process_that_dies_is_an_error_with_a_next_step(make: Make, kimi_folder: Path, tmp_path: Path) -> None:
    """The export ends at once and says what to do; it leaves no manifest."""
    run = exportkit.write_run(tmp_path / "run", kimi_folder, make(range(4)))
    with pytest.raises(EyasError, match="fewer --workers"):
        export([run], partial(os._exit, 3), Options(tmp_path / "out", workers=2))
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_tokenizer_that_does_not_load_is_said_by_every_number_of_processes(
    make: Make, kimi_folder: Path, tmp_path: Path
) -> None:
    """The error of the loading itself arrives, from another process too."""
    run = exportkit.write_run(tmp_path / "run", kimi_folder, make(range(4)))
    for workers in (1, 2):
        with pytest.raises(UsageError, match=r"tiktoken\.model"):
            export([run], partial(exportkit.load_kimi, tmp_path), Options(tmp_path / "out", workers=workers))


def test_every_format_is_exported(make: Make, here: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path) -> None:
    """Each format of the table writes shards, the rows of which the manifest counts, and says what it cannot carry."""
    run = exportkit.write_run(tmp_path / "run", kimi_folder, make(range(30)))
    for name, form in exporters.FORMATS.items():
        found = export([run], here, Options(tmp_path / name, name, workers=1, works_per_chunk=7))
        assert (name, found.format, found.cannot) == (form.name, form.name, form.cannot)
        assert [(shard.name, shard.rows) for shard in found.shards] == [(f"rows-00000{form.suffix}", 30)]


def test_the_card_is_written_anew_unless_it_is_the_users(
    make: Make, here: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path
) -> None:
    """README.md is made from the manifest; one that the user wrote or signed is left alone."""
    run, card = exportkit.write_run(tmp_path / "run", kimi_folder, make(range(4))), tmp_path / "out" / "README.md"
    export([run], here, Options(tmp_path / "out", workers=1))
    first = card.read_text()
    assert first.startswith("---")
    export([run], here, Options(tmp_path / "out", workers=1, labels="loose"))
    assert card.read_text() != first
    card.write_text("mine")
    export([run], here, Options(tmp_path / "out", workers=1))
    assert card.read_text() == "mine"


def test_draft_vocabularies_are_counted_on_what_is_supervised(
    make: Make, load: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path
) -> None:
    """Their counts add up to the supervised tokens, with any number of processes; a later export without them drops them."""
    run = exportkit.write_run(tmp_path / "run", kimi_folder, make(range(30)))
    options = {"draft_vocab": (64,), "works_per_chunk": 5}
    found = [export([run], load, Options(tmp_path / "out", workers=n, **options)) for n in (1, 2)]
    assert found[0] == found[1]
    supervised = sum(each.supervised_tokens for each in found[0].datasets.values())
    assert found[0].draft_vocab["supervised_tokens"] == supervised > 0
    assert (tmp_path / "out" / "draft_vocab").is_dir()
    assert export([run], load, Options(tmp_path / "out", workers=1)).draft_vocab == {}
    assert not (tmp_path / "out" / "draft_vocab").exists()


def test_what_does_not_go_together_is_refused(
    make: Make, here: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path
) -> None:
    """A share of one, no process, a draft vocabulary larger than the tokenizer's: an error before anything is written."""
    run = exportkit.write_run(tmp_path / "run", kimi_folder, make(range(4)))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"eval_share": 1.0}, "less than 1"),
        ({"workers": 0}, "--workers"),
        ({"draft_vocab": (10**6,)}, "more than the"),
        ({"format": "parquet", "compress": "zst"}, "packed by itself"),
    ]
    for options, says in wrong:
        with pytest.raises(UsageError, match=says):
            export([run], here, Options(tmp_path / "out", **options))
    assert not (tmp_path / "out").exists()


def test_texts_of_ids_are_those_of_the_vocabulary(kimi: Loaded) -> None:
    """Specials are spelled, half characters and no ids at all decode as the vocabulary decodes them."""
    draw, texts = random.Random(0), Texts(kimi.vocab)
    for length in (0, 1, 7, 500):
        ids = tuple(draw.randrange(kimi.vocab.size) for _ in range(length))
        assert texts.of(ids) == kimi.vocab.decode(ids)
