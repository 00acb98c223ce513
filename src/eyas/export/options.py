"""What to export, and what the manifest says of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from eyas.exporters.lines import Compress
from eyas.exporters.shards import Shard
from eyas.exporters.tally import DatasetCount, ProviderCount
from eyas.exporters.yields import Yields
from eyas.tokens import Habits
from eyas.types import STRICT, Label

LABELS = {"strict": STRICT, "loose": STRICT | {Label.NEAR, Label.UNCOUNTED}}
"""What each policy exports."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to export, and where.

    Attributes:
        out: the folder; made if need be, a former export in it is replaced.
        format: name of a format.
        labels: "strict" exports what agrees with the API's counts, "loose" adds NEAR and UNCOUNTED.
        max_length: rows are cut to so many ids from the right, as the trainers do; None: never.
        min_loss_tokens: rows with fewer supervised tokens are left out.
        compress: of shards of text.
        rows_per_shard: rows from which on a shard is closed, at the end of a chunk; SpecForge takes one file, so the
            default holds a usual run in one.
        on_length: whether answers that ended at max_tokens are kept (without a stop token) or dropped.
        eval_share: share of the prompts whose answers go into the `eval-` shards.
        draft_vocab: sizes of draft vocabularies to write.
        workers: processes; 1: none but this one; None: as many as there are processors, fewer for a small export.
        works_per_chunk: compressed bytes and the ends of shards depend on it.
    """

    out: Path
    format: str = "rows"
    labels: Literal["strict", "loose"] = "strict"
    max_length: int | None = None
    min_loss_tokens: int = 1
    compress: Compress = "none"
    rows_per_shard: int = 100_000
    on_length: Literal["keep", "drop"] = "keep"
    eval_share: float = 0.0
    draft_vocab: tuple[int, ...] = ()
    workers: int | None = None
    works_per_chunk: int = 64


class Manifest(msgspec.Struct, frozen=True, rename={"yields": "yield"}):
    """What `manifest.json` says; `eyas` names its kind.

    Attributes:
        schema, eyas: 1 and "export".
        format, labels: the format and the policy.
        model, family, tokenizer: of the runs; a local tokenizer is named by the sha256 of its files.
        runs: how many run directories.
        duplicates: answers left out since another one to the same work stands for it.
        datasets, providers: counts.
        sources: rows by the file that their prompt was read from.
        habits: what was learned of each provider, from at most 500 answers of each.
        yields: the yield table, `yield` in the file.
        cannot: what the format cannot carry.
        shards, eval_shards: the files.
        draft_vocab: what was written of draft vocabularies, empty if none was asked for.
        warnings: what a person should look at.
        policy: what the runs asked of the API: field of its `provider` object -> the values of all runs, None for not set.
    """

    schema: int
    eyas: str
    format: str
    labels: str
    model: str
    family: str
    tokenizer: str
    runs: int
    duplicates: int
    datasets: dict[str, DatasetCount]
    providers: dict[str, ProviderCount]
    sources: dict[str, int]
    habits: dict[str, Habits]
    yields: Yields
    cannot: tuple[str, ...]
    shards: tuple[Shard, ...]
    eval_shards: tuple[Shard, ...]
    draft_vocab: dict[str, Any]
    warnings: tuple[str, ...]
    policy: dict[str, tuple[Any, ...]] = {}
