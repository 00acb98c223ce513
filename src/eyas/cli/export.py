"""`eyas export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from eyas import config as configs
from eyas import exporters
from eyas.engine.inputs import load_tokenizer
from eyas.export import Manifest, Options, export
from eyas.records import Run
from eyas.report.progress import columns


@click.command("export")
@click.argument("rundir", type=click.Path(path_type=Path))
@click.option("--format", "name", type=click.Choice(sorted(exporters.EXPORTERS)), default="rows", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the shards and manifest.json.")
@click.option("--labels", type=click.Choice(["strict", "loose"]), default="strict", show_default=True)
@click.option("--max-length", type=click.IntRange(min=2), help="Cut rows to so many ids from the right.")
@click.option("--min-loss-tokens", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--compress",
    type=click.Choice(["none", "gz", "zst"]),
    default="none",
    show_default=True,
    help="To store or send; unpack before training, the trainers read plain rows.",
)
def command(
    rundir: Path,
    name: str,
    out: Path,
    labels: Literal["strict", "loose"],
    max_length: int | None,
    min_loss_tokens: int,
    compress: Literal["none", "gz", "zst"],
) -> None:
    """Write the answers of RUNDIR as training rows that SpecForge and speculators load unchanged.

    --labels strict exports rows whose ids agree with all that the API counted; loose adds those that are off by a word or
    were not counted.
    """
    config = configs.frozen(rundir)
    options = Options(
        out=out,
        model=config.target.model,
        format=name,
        labels=labels,
        max_length=max_length,
        min_loss_tokens=min_loss_tokens,
        compress=compress,
        on_length="drop" if config.budget.on_length == "drop" else "keep",
    )
    run = Run(rundir)
    try:
        print(summary(export(run.records, load_tokenizer(config).loaded, config.thinking, options)), file=sys.stderr)
    finally:
        run.close()


def summary(manifest: Manifest) -> str:
    """What was exported, set by set, and why the rest was not."""
    rows = [("set", "answers", "exported", "supervised tokens", "usd paid", "usd exported")]
    rows += [
        (
            name,
            str(count.answers),
            str(count.exported),
            f"{count.supervised_tokens:,}",
            f"{count.usd['paid']:.4f}",
            f"{count.usd['exported']:.4f}",
        )
        for name, count in manifest.datasets.items()
    ]
    excluded: dict[str, int] = {}
    for count in manifest.datasets.values():
        for reason, number in count.excluded.items():
            excluded[reason] = excluded.get(reason, 0) + number
    lines = columns(rows)
    lines += [f"not exported: {number} ({reason})" for reason, number in sorted(excluded.items())]
    return "\n".join([*lines, *(f"warning: {warning}" for warning in manifest.warnings)])
