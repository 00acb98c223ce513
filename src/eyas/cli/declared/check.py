"""Commands that check what surrounds a run: doctor, providers."""

from __future__ import annotations

import click

from eyas.cli import complete
from eyas.cli.command import Command, does
from eyas.cli.declared import shared
from eyas.cli.declared.shared import PATH

OPENROUTER = "https://openrouter.ai/api/v1"


@click.command(
    "doctor",
    cls=Command,
    epilog="Exit codes: 0 nothing failed, 2 something did, 6 the key or its credits, 7 storage.",
)
@shared.run_toml
@shared.key_file
@shared.insecure_http
@shared.as_json
@does("doctor")
def doctor() -> None:
    """Check the machine, the account and, with RUN.toml, a run, before it costs anything. Spends nothing.

    Servers of your own are asked one short question each, as a run does before its first request.
    """


@click.command("providers", cls=Command)
@click.argument("model", metavar="MODEL|RUN.toml", shell_complete=complete.configs)
@click.option(
    "--base-url",
    multiple=True,
    help=f"The API or server to ask; may stand several times for servers of yours.  [default: {OPENROUTER}, or the run's]",
)
@click.option("--backend", type=click.Choice(shared.BACKENDS), help="What answers there.  [default: openrouter]")
@click.option(
    "--run",
    "rundir",
    type=PATH,
    help="Judge as this run does, and add what it learned.",
    shell_complete=complete.rundirs,
)
@click.option(
    "--only", multiple=True, help="Use this provider (slug, tag or name) and no other; may stand several times."
)
@click.option("--ignore", multiple=True, help="A provider to shut out by slug, tag or name; may stand several times.")
@click.option("--precision", type=click.Choice(["native", "any"]), help="[default: native, or the run's]")
@click.option("--unknown", type=click.Choice(["reject", "accept"]), help="Endpoints whose precision nobody says.")
@shared.key_file_unneeded
@shared.as_json
@does("providers")
def providers() -> None:
    """List every endpoint of MODEL with price, precision, and whether eyas would use it, and why.

    Of servers of your own (--backend), or those of a RUN.toml: who answers, and with how much room.
    """
