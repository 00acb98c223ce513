"""`eyas export`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from eyas.api.exporting import export
from eyas.cli.say import columns_of, say
from eyas.export import Manifest
from eyas.exporters.yields import Loss, Yield
from eyas.report.progress import columns

MOST_NAMED = 3
"""Files that are named when they have been written."""


def command(
    rundirs: tuple[Path, ...],
    name: str,
    out: Path,
    labels: Literal["strict", "loose"],
    max_length: int | None,
    min_loss_tokens: int,
    on_length: Literal["keep", "drop"] | None,
    eval_share: float,
    draft_vocab: tuple[int, ...],
    rows_per_shard: int,
    workers: int | None,
    compress: Literal["none", "gz", "zst"],
    on: str | None,
) -> None:
    """Write the answers of one or several run directories as training rows."""
    manifest = export(
        rundirs,
        out,
        format=name,
        labels=labels,
        max_length=max_length,
        min_loss_tokens=min_loss_tokens,
        on_length=on_length,
        eval_share=eval_share,
        draft_vocab=draft_vocab,
        rows_per_shard=rows_per_shard,
        compress=compress,
        workers=workers,
        on=on,
    )
    say(summary(manifest, columns_of(sys.stderr)))
    say(f"written to {out}: {_files(manifest)}, README.md (a card), manifest.json")


def _files(manifest: Manifest) -> str:
    names = [shard.name for shard in (*manifest.shards, *manifest.eval_shards)]
    return ", ".join(names) if 0 < len(names) <= MOST_NAMED else f"{len(names)} shards"


def summary(manifest: Manifest, width: int = 0) -> str:
    """What was asked for and paid, step by step to supervised tokens, and why the rest was lost.

    Where the terminal is narrower (`width`; 0: it is not), steps at which nothing was lost are left out.
    """
    yields = manifest.yields
    head = ("set", "prompts", "answers", manifest.labels, "kept", "in length", "supervised tokens", "yield")
    rows = [head, *(_steps(name, each) for name, each in yields.datasets.items())]
    if len(yields.datasets) != 1:
        rows.append(_steps("all", yields.total))
    lines = columns(rows)
    if 0 < width < max(map(len, lines)):
        lines = columns(_shorter(rows))
    lines += map(_lost, yields.total.losses)
    if manifest.duplicates:
        lines.append(f"duplicates dropped: {manifest.duplicates}")
    lines += [f"labels of {name or '(nobody named)'}: {_counts(p.labels)}" for name, p in manifest.providers.items()]
    if manifest.eval_shards:
        lines.append(f"rows to evaluate on: {sum(shard.rows for shard in manifest.eval_shards)}")
    lines += [f"not in {manifest.format}: {what}" for what in manifest.cannot]
    return "\n".join([*lines, *(f"warning: {warning}" for warning in manifest.warnings)])


def _shorter(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The table without the steps whose figures are those of the step before."""
    kept = [
        place
        for place in range(len(rows[0]))
        if not 1 < place < len(rows[0]) - 2 or any(row[place] != row[place - 1] for row in rows[1:])
    ]
    return [tuple(row[place] for place in kept) for row in rows]


def _steps(name: str, table: Yield) -> tuple[str, ...]:
    *rows, supervised = table.steps
    cells = (f"{step.rows} ${step.usd:.4f}" for step in rows)
    return (name, *cells, f"{supervised.tokens:,} ${supervised.usd:.4f}", f"{table.share:.1%}")


def _lost(loss: Loss) -> str:
    amounts: Sequence[tuple[int, str]] = (
        (loss.rows, "rows" if loss.step != "answers" else "prompts"),
        (loss.requests, "requests"),
        (loss.tokens, "tokens"),
    )
    counted = ", ".join(f"{number:,} {what}" for number, what in amounts if number)
    return f"lost: {counted}, ${loss.usd:.4f} ({loss.reason})"


def _counts(labels: dict[str, int]) -> str:
    return ", ".join(f"{label} {number}" for label, number in labels.items())
