"""`eyas export`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import click

from eyas import config as configs
from eyas import exporters
from eyas.cli.say import columns_of, say
from eyas.config import RunConfig
from eyas.engine.forget import note_export
from eyas.engine.inputs import load_tokenizer
from eyas.errors import UsageError
from eyas.export import Manifest, Options, export
from eyas.exporters.yields import Loss, Yield
from eyas.families import Loaded
from eyas.report.progress import columns

MOST_NAMED = 3
"""Files that are named when they have been written."""


class Sizes(click.ParamType[tuple[int, ...]]):
    """Numbers of entries, with commas between them."""

    name = "N[,N…]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """`8000,16000` as numbers."""
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType]  # click converts a default twice
        parts = str(value).split(",")
        if not all(part.isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value} is no list of sizes: give for example 16384,32768", param, ctx)
        return tuple(sorted({int(part) for part in parts}))


@click.command("export")
@click.argument("rundirs", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="RUNDIR...")
@click.option("--format", "name", type=click.Choice(sorted(exporters.FORMATS)), default="rows", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the shards and manifest.json.")
@click.option("--labels", type=click.Choice(["strict", "loose"]), default="strict", show_default=True)
@click.option("--max-length", type=click.IntRange(min=2), help="Cut rows to so many ids from the right.")
@click.option("--min-loss-tokens", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--on-length", type=click.Choice(["keep", "drop"]), help="Answers that ended at max_tokens; as in RUN.toml."
)
@click.option(
    "--eval-share",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    help="Share of the prompts kept apart in eval- shards.",
)
@click.option("--draft-vocab", type=Sizes(), default=(), help="Also write draft vocabularies of these sizes.")
@click.option("--rows-per-shard", type=click.IntRange(min=1), default=100_000, show_default=True, help="About so many.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes; as many as there are processors.")
@click.option(
    "--compress",
    type=click.Choice(["none", "gz", "zst"]),
    default="none",
    show_default=True,
    help="To store or send; unpack before training, the trainers read plain rows.",
)
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
) -> None:
    """Write the answers of one or several run directories as training rows.

    --labels strict exports rows whose ids agree with all that the API counted; loose adds those that are off by a word or
    were not counted. A run may still be going on: what has ended is exported, and a later call writes the set anew.
    """
    found = [configs.frozen(rundir) for rundir in rundirs]
    options = Options(
        out=out,
        format=name,
        labels=labels,
        max_length=max_length,
        min_loss_tokens=min_loss_tokens,
        compress=compress,
        rows_per_shard=rows_per_shard,
        on_length=on_length or _on_length(found),
        eval_share=eval_share,
        draft_vocab=draft_vocab,
        workers=workers,
    )
    manifest = export(rundirs, loader(found[0]), options)
    say(summary(manifest, columns_of(sys.stderr)))
    say(f"written to {out}: {_files(manifest)}, README.md (a card), manifest.json")
    for rundir in rundirs:
        note_export(rundir, out)


def _files(manifest: Manifest) -> str:
    names = [shard.name for shard in (*manifest.shards, *manifest.eval_shards)]
    return ", ".join(names) if 0 < len(names) <= MOST_NAMED else f"{len(names)} shards"


def loader(config: RunConfig) -> Callable[[], Loaded]:
    """What loads the family of a run in any process."""
    return partial(_load, config)


def _load(config: RunConfig) -> Loaded:
    return load_tokenizer(config).loaded


def _on_length(found: Iterable[RunConfig]) -> Literal["keep", "drop"]:
    """What the runs say of answers that ended at max_tokens.

    Raises:
        UsageError: they say different things.
    """
    said: set[Literal["keep", "drop"]] = {"drop" if c.budget.on_length == "drop" else "keep" for c in found}
    if len(said) > 1:
        raise UsageError("the runs differ in [budget] on_length: say --on-length keep or --on-length drop")
    return said.pop()


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
