"""Commands that run, and look at or change what runs: run, watch, tune."""

from __future__ import annotations

import click

from eyas.cli import complete
from eyas.cli.command import Command, does
from eyas.cli.declared import shared
from eyas.cli.declared.shared import PATH

EXIT_CODES = (
    "Exit codes: 0 complete, 2 usage, 3 cap reached, 4 some works failed or were refused, 5 unknown outcomes remain, "
    "6 key or credits, 7 storage, 8 stale plan, 130 interrupted."
)


@click.command("run", cls=Command, epilog=EXIT_CODES)
@click.argument("config_file", metavar="RUN.toml|plan.json", type=PATH, shell_complete=complete.plans)
@click.option("--yes", is_flag=True, help="Do not ask before spending more than $5.")
@click.option("--json", "as_json", is_flag=True, help="Print the final status as JSON on stdout.")
@click.option(
    "--progress",
    type=click.Choice(["live", "plain", "none"]),
    help="live: a view of the run on the terminal; plain: a line now and then.  [default: live on a terminal, else plain]",
)
@click.option(
    "--limit", type=int, metavar="N", help="Ask the first N conversations of each dataset only; see --dataset."
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAME",
    help="Ask this dataset only; may be repeated.",
    shell_complete=complete.datasets,
)
@shared.key_file
@shared.insecure_http
@click.option("--confirm-removed", is_flag=True, help="Go on although the sources lost prompts of this run.")
@click.option("--fallback", is_flag=True, help="Leave the target alone and ask [fallback] for what is still owed.")
@click.option(
    "--shard",
    metavar="I/N",
    help="Do part I of N: its share of prompts, cap, quotas and requests, in a directory of its own.",
)
@click.option("--on", metavar="ray[:ADDRESS]", help="Lead workers on the machines of a Ray cluster (extra `ray`).")
@does("run")
def run() -> None:
    """Answer the prompts of RUN.toml, up to its cap and quotas. The same command again resumes.

    The first ^C starts nothing more and lets what flies land; the second ends that too and keeps its text.
    """


@click.command("watch", cls=Command)
@shared.rundir
@click.option("--once", is_flag=True, help="Print the view once and end.")
@does("watch")
def watch() -> None:
    """Show the live view of the run in RUNDIR, which another process carries, until it ends or ^C is pressed.

    Nothing in RUNDIR is changed. Where stdout is no terminal, a line is written every 10 s; a run that is over is shown once.
    """


@click.command("tune", cls=Command)
@shared.rundir
@click.argument("changes", metavar="CHANGE...", nargs=-1, required=True, shell_complete=complete.changes)
@does("tune")
def tune() -> None:
    """Change the session that runs in RUNDIR: in_flight=N, drop=TAG (ask that endpoint no more), take=TAG (ask it again).

    It holds for this session; RUN.toml says what holds after it.
    """
