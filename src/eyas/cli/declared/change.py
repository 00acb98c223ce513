"""Commands that change what a run holds or owes: import, retry, forget, reconcile."""

from __future__ import annotations

import click

from eyas.cli import complete
from eyas.cli.command import Command, does
from eyas.cli.declared import shared
from eyas.cli.declared.shared import PATH

FORMS = ("sglang", "vllm", "rows", "text")
FORMATS = "How the rows are read: sglang, vllm, rows (input_ids with loss_mask), text (conversations); left out: each row as its keys say."
WHERE = (
    "Which works: FIELD=VALUE or FIELD!=VALUE, joined by `and` or commas. Fields: verdict, kind, finish, label, provider, "
    "tag, dataset, id; numbers, also with > and <: tokens, usd, tries, seconds. A FIELD alone tells its values."
)


@click.command("import", cls=Command)
@click.argument("run", metavar="RUNDIR|RUN.toml", type=PATH, shell_complete=complete.rundirs_and_configs)
@click.argument("source", metavar="FILE", shell_complete=complete.files)
@click.option(
    "--dataset",
    required=True,
    metavar="NAME",
    help="The dataset of the run whose prompts were answered.",
    shell_complete=complete.datasets,
)
@click.option("--format", "form", type=click.Choice(FORMS), help=FORMATS)
@click.option("--provider", default="imported", metavar="TEXT", help="Who made the answers, as exports name it.")
@click.option("--dry-run", is_flag=True, help="Change nothing; print the same table.")
@does("import_")
def import_() -> None:
    """Take answers made elsewhere into a run. They count like answers that were bought, and cost nothing.

    FILE is a file, a folder or a pattern, as a source in RUN.toml. With RUN.toml in place of RUNDIR a run is begun
    where there is none. The next `eyas run` asks what is still missing.
    """


@click.command("retry", cls=Command)
@shared.rundir
@click.option("--where", required=True, metavar="EXPR", help=WHERE, shell_complete=complete.where)
@click.option("--dry-run", is_flag=True, help="Change nothing; print the ids of the works that match.")
@shared.yes
@does("retry")
def retry() -> None:
    """Have works of RUNDIR that ended asked again by the next `eyas run`; nothing is asked or paid now.

    An answer that a work has stands until a better one is there, and is exported till then.
    """


@click.command("forget", cls=Command)
@shared.rundir
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete.works)
@shared.yes
@does("forget")
def forget() -> None:
    """Remove prompts of RUNDIR and all answers to them for good. They are not asked again; what they cost stays booked.

    ID is DATASET/PROMPTID16, or the id of any answer to it: all turns and samples of a prompt go.
    """


@click.command("reconcile", cls=Command)
@shared.rundir
@click.option(
    "--write-off",
    metavar="all|ID|WORKER",
    help="Book what stays unknown at its whole reservation: a work's id, a worker's number, or all.",
)
@shared.key_file
@does("reconcile")
def reconcile() -> None:
    """Look up what attempts of RUNDIR cost whose outcome is not known, by generation id."""
