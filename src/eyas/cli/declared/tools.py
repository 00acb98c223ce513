"""Commands that stand beside a run: simulate, completion."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import click

from eyas.cli.command import Command, does
from eyas.cli.declared.begin import MODEL
from eyas.cli.declared.shared import PATH

SCENARIOS = ("clean", "founding", "founding-fast", "labels", "rough", "storm", "three")
ENGINES = ("llamacpp", "openai", "sglang", "vllm")
SHELLS = ("bash", "zsh", "fish")

_STAND_IN = (
    click.option("--engine", type=click.Choice(ENGINES), help="Stand in for this server instead; see docs/standins.md."),
    click.option("--model", default=MODEL, show_default=True, help="Name that it serves."),
    click.option("--family", help='The model\'s family, or "template"; without it told from the name.'),
    click.option("--slots", type=click.IntRange(min=1), default=256, show_default=True, help="Answers at the same time."),
    click.option("--speed", type=click.FloatRange(min=0, min_open=True), default=50.0, show_default=True,
                 help="Tokens a second of one answer."),
    click.option("--total-speed", type=click.FloatRange(min=0, min_open=True), help="Tokens a second of all together."),
    click.option("--latency", type=click.FloatRange(min=0), default=0.1, show_default=True,
                 help="Seconds to the first token of an answer that has a slot."),
    click.option("--context", type=click.IntRange(min=2), default=131_072, show_default=True, help="Tokens of its context."),
    click.option("--stream-interval", type=click.IntRange(min=1), default=1, show_default=True,
                 help="Tokens in one piece of a stream."),
    click.option("--no-ids", is_flag=True, help="It gives no ids back, as old servers."),
    click.option("--stop-token", type=click.Choice(["in", "out"]), default="in", show_default=True,
                 help="Whether the ids that it gives hold the stop token."),
    click.option("--cumulative/--incremental", default=True, show_default=True, help="What an event of SGLang holds."),
    click.option("--fail-after", type=click.IntRange(min=1), help="It dies at once after so many whole answers."),
    click.option("--log", type=PATH, help="Add a JSON line for each begin and end of an answer."),
)  # fmt: skip
"""The options of `eyas simulate --engine`."""


def _stand_in(command: Callable[..., Any]) -> Callable[..., Any]:
    return reduce(lambda made, option: option(made), reversed(_STAND_IN), command)


@click.command("simulate", cls=Command)
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 takes a free one.")
@click.option(
    "--scenario",
    "name",
    type=click.Choice(SCENARIOS),
    default="clean",
    show_default=True,
    help="What goes wrong in it.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed plays the same day.")
@click.option("--tokenizer", help="Folder or hub id of the Kimi vocabulary; without it the one in splintr-rs.")
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change the scenario: tps=8, faults.hang=0.01."
)
@click.option("--books", type=PATH, help="Write the simulator's books here when it ends.")
@click.option("--max-seconds", type=click.FloatRange(min=0), help="End by itself after so long.")
@click.option("--parent", type=int, help="End by itself when this process is gone.")
@_stand_in
@does("simulate")
def simulate() -> None:
    """Serve an OpenRouter-compatible API of virtual providers on 127.0.0.1; the base URL is printed on stdout.

    Its books are at /sim/books and /sim/state: what was sampled, sent and billed. With --engine it is a server of that
    engine's kind instead, with a base URL for its backend and its books at /counts.
    """


@click.command("completion", cls=Command)
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(SHELLS))
@does("completion")
def completion() -> None:
    """Print the script that completes eyas on TAB in that shell: options, run directories, ids, fields and values of --where."""
