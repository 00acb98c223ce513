"""The stand-in servers of `eyas simulate --engine`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from eyas import vocab
from eyas.errors import UsageError
from eyas.families import by_name, guess
from eyas.families.template import TEMPLATE, TemplateFamily
from eyas.sim import wire
from eyas.sim.cutting import Texts
from eyas.sim.engines import WIRES, Author, Engine, Host, Modes, Settings, Streams, Told
from eyas.sim.scenarios import Scenario

MODEL = "moonshotai/kimi-k2.5"

_Command = TypeVar("_Command", bound=Callable[..., None])
_OPTIONS = (
    click.option("--engine", type=click.Choice(sorted(WIRES)), help="Stand in for this server instead; see docs/standins.md."),
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
    click.option("--log", type=click.Path(path_type=Path), help="Add a JSON line for each begin and end of an answer."),
)  # fmt: skip


def options(command: _Command) -> _Command:
    """Give a command the options of a stand-in."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


def settings(given: dict[str, Any]) -> Settings:
    """The settings of a stand-in from its options."""
    told = Told.NONE if given["no_ids"] else {"in": Told.ALL, "out": Told.NO_STOP}[given["stop_token"]]
    same = ("model", "slots", "speed", "total_speed", "latency", "context", "fail_after")
    return Settings(
        **{name: given[name] for name in same},
        interval=given["stream_interval"],
        told=told,
        streams=Streams.CUMULATIVE if given["cumulative"] else Streams.INCREMENTAL,
    )


def serve(given: dict[str, Any], scenario: Scenario, seed: int, tokenizer: str | None, **running: Any) -> None:
    """Serve until told to end; the base URL is printed on stdout.

    Raises:
        UsageError: no family is known for the model, or the tokenizer does not fit it.
    """
    of = settings(given)
    name = given["family"] or guess(of.model)
    if name is None:
        raise UsageError(f'--model {of.model}: no family is known for it: give --family, which may be "{TEMPLATE}"')
    family = TemplateFamily(None) if name == TEMPLATE else by_name(name)
    if tokenizer is None and not name.startswith("kimi"):
        raise UsageError(f"--tokenizer: give the folder of the tokenizer of family {name}, or its hub id")
    loaded = family.load(vocab.resolve(tokenizer) if tokenizer else vocab.kimi_folder())
    host = Host(of, loaded, Modes(loaded), Texts(loaded.vocab))
    protocol = WIRES[given["engine"]](host)
    with ExitStack() as files:
        log = files.enter_context(given["log"].open("ab", buffering=0)) if given["log"] else None
        engine = Engine(protocol, Author(loaded, scenario, seed), of, time.time, _die, log)
        wire.run_forever(engine, path=protocol.path, **running)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
