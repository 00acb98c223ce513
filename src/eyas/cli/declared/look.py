"""Commands that look at a run: status, show, report."""

from __future__ import annotations

import click

from eyas.cli import complete
from eyas.cli.command import Command, does
from eyas.cli.declared import shared
from eyas.cli.declared.shared import PATH


@click.command("status", cls=Command)
@shared.rundir
@shared.as_json
@does("status")
def status() -> None:
    """Say where the run in RUNDIR stands, also while it runs."""


@click.command("show", cls=Command)
@shared.rundir
@click.argument("work_id", metavar="[ID]", required=False, shell_complete=complete.works)
@click.option(
    "--where", metavar="EXPR", help="List the works that meet this, as in `eyas retry`.", shell_complete=complete.where
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="List so many.  [default: 3 of each state; 20]")
@click.option("--tokens", is_flag=True, help="Show the answer token by token, with its loss mask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@does("show")
def show() -> None:
    """Show one work of RUNDIR: prompt, answer, ids, mask, attempts and cost. Without ID, list some works of each state.

    ID is DATASET/PROMPTID16/t0/s0 as in the rows; the beginning of it will do where no other id begins so.
    """


@click.command("report", cls=Command)
@click.argument("rundirs", type=PATH, nargs=-1, required=True, metavar="RUNDIR...", shell_complete=complete.rundirs)
@click.option("--out", type=PATH, metavar="FILE", help="The page to write.  [default: report.html]")
@click.option("--no-text", is_flag=True, help="Leave out what prompts, answers and errors say.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON; no page unless --out is given.")
@click.option(
    "--csv", "folder", type=PATH, metavar="DIR", help="Write them as tables into DIR; no page unless --out is given."
)
@click.option("--activity", type=PATH, metavar="FILE", help="What OpenRouter's activity endpoint said, to compare.")
@click.option("--watch", is_flag=True, help="Write it anew while the run goes on; an open page follows.")
@click.option(
    "--every",
    "seconds",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="Seconds between two looks of --watch.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes; as many as there are processors.")
@click.option("--force", is_flag=True, help="Replace files that are no report.")
@does("report")
def report() -> None:
    """Write one HTML page on one or several run directories: money, speed, providers, lengths, errors, answers to read.

    The page needs no network and sends nothing. A run may still be going on; nothing in RUNDIR is changed.
    """
