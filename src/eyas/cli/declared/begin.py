"""Commands that come before a run: demo, init, plan, rehearse."""

from __future__ import annotations

from pathlib import Path

import click

from eyas.cli import complete
from eyas.cli.command import Command, does
from eyas.cli.declared import shared
from eyas.cli.declared.shared import PATH

MODEL = "moonshotai/kimi-k2.5"
SCENARIO, ITSELF = "rough", "founding"
"""The market that a RUN.toml is rehearsed in, an ordinary evening; and what is rehearsed without a RUN.toml."""

QUOTAS = "5M,7M,8M,10M"
"""Output tokens a dataset that a plan compares."""


@click.command("demo", cls=Command)
@click.option("--out", type=PATH, default=Path("demo-run"), show_default=True, help="Folder of RUN.toml, run and rows.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed plays the same evening.")
@click.option("--limit", type=int, metavar="N", help="Ask the first N conversations of each set only.")
@does("demo")
def demo() -> None:
    """Answer six prompt sets (B3 to B8) against the built-in simulator on a rough evening, and export them to DIR/rows.

    No key and no network is needed. The prompts are benchmark questions, for the demo only: never train on them. Run it
    again with the same --out: it asks for nothing more.
    """


@click.command("init", cls=Command)
@click.argument("source", required=False, shell_complete=complete.files)
@click.option("--out", type=PATH, default=Path("RUN.toml"), show_default=True, help="The file to write.")
@click.option("--model", default=MODEL, show_default=True, help="The model's id at the API.")
@shared.backend
@click.option("--base-url", multiple=True, help="Where that server listens; several times for replicas.")
@click.option("--usd", type=float, default=5.0, show_default=True, help="The most that the run may spend.")
@click.option(
    "--distillable/--any-licence",
    default=None,
    help="Ask only models whose author allows distillation (the default), or any.",
)
@click.option(
    "--data-collection",
    type=click.Choice(["allow", "deny"]),
    help="Whether providers that keep prompts and answers may be asked; default: deny.",
)
@click.option("--yes", is_flag=True, help="Ask nothing; what is not said is the default.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@does("init")
def init() -> None:
    """Write a commented RUN.toml. With SOURCE, a prompt file, show what stands in it and how it would be asked.

    On a terminal it asks what is for you to decide: who answers and, at OpenRouter, whose models, and who may keep the data.
    """


@click.command("plan", cls=Command)
@click.argument("config_file", metavar="RUN.toml", type=PATH, shell_complete=complete.configs)
@shared.as_json
@click.option("--out", type=PATH, help="Write the plan here, for `eyas run plan.json`.")
@click.option(
    "--pilot", type=click.IntRange(min=1), metavar="N", help="Buy N answers a dataset first, and plan by them."
)
@click.option("--quotas", default=QUOTAS, show_default=True, help="Output tokens a dataset to compare.")
@click.option(
    "--local-tps",
    type=click.FloatRange(min=0, min_open=True),
    metavar="X",
    help="Tokens/s of servers of yours, all together.",
)
@click.option(
    "--train-max-length", type=click.IntRange(min=1), metavar="L", help="Price the tokens that a trainer cuts off."
)
@click.option("--key-file", type=PATH, help="Read the API key from this file; needed for a pilot only.")
@shared.insecure_http
@click.option("--yes", is_flag=True, help="Do not ask before a pilot that may spend more than $5.")
@does("plan")
def plan() -> None:
    """Say what RUN.toml will cost and how long it takes, and which quota fits the money. Buys nothing but a pilot.

    A run that has begun is planned for what is still owed, by the lengths of the answers it has.
    """


@click.command("rehearse", cls=Command)
@shared.run_toml
@click.option(
    "--scenario",
    "name",
    help=f"The market; {SCENARIO} for a RUN.toml, else {ITSELF}, which brings a run of its own.",
    shell_complete=complete.scenarios,
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="How often it is played; 5 or more tell how far it may vary.",
)
@click.option("--variants/--no-variants", "compare", default=True, show_default=True, help="Play other settings too.")
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change the scenario: speed=2, faults.hang=0.01."
)
@shared.as_json
@shared.key_file_unneeded
@shared.insecure_http
@does("rehearse")
def rehearse() -> None:
    """Play a run in simulated time: what it will take, cost and waste, and what other settings would give.

    The engine is the real one, its clock and its providers are not. Nothing is asked, written or spent; no key is needed.
    Without a RUN.toml the scenario brings its own run.
    """
