"""Commands that write what a run has brought: export."""

from __future__ import annotations

import click

from eyas.cli import complete
from eyas.cli.command import Command, does
from eyas.cli.declared.shared import PATH

FORMATS = ("messages", "parquet", "rows", "specforge-text", "torchspec")


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


@click.command("export", cls=Command)
@click.argument("rundirs", type=PATH, nargs=-1, required=True, metavar="RUNDIR...", shell_complete=complete.rundirs)
@click.option(
    "--format", "name", type=click.Choice(FORMATS), default="rows", show_default=True, help="What the rows look like."
)
@click.option("--out", type=PATH, required=True, help="Folder for the shards and manifest.json.")
@click.option(
    "--labels",
    type=click.Choice(["strict", "loose"]),
    default="strict",
    show_default=True,
    help="Which answers: strict, or also those whose ids are less sure.",
)
@click.option("--max-length", type=click.IntRange(min=2), help="Cut rows to so many ids from the right.")
@click.option(
    "--min-loss-tokens",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Leave out rows with fewer supervised tokens.",
)
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
@click.option("--on", metavar="ray[:ADDRESS]", help="Have the rows made by a Ray cluster (extra `ray`).")
@does("export")
def export() -> None:
    """Write the answers of one or several run directories as training rows.

    --labels strict exports rows whose ids agree with all that the API counted; loose adds those that are off by a word or
    were not counted. A run may still be going on: what has ended is exported, and a later call writes the set anew.
    """
