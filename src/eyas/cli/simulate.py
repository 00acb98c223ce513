"""`eyas simulate`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from eyas import vocab
from eyas.cli import stand_in
from eyas.cli.say import say
from eyas.errors import UsageError
from eyas.families import by_name
from eyas.sim import wire
from eyas.sim.scenarios import SCENARIOS, Scenario, load
from eyas.sim.world import World

FAMILY = "kimi-k2.5"


@click.command("simulate")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 takes a free one.")
@click.option("--scenario", "name", type=click.Choice(sorted(SCENARIOS)), default="clean", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--tokenizer", help="Folder or hub id of the Kimi vocabulary; without it the one in splintr-rs.")
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change the scenario: tps=8, faults.hang=0.01."
)
@click.option("--books", type=click.Path(path_type=Path), help="Write the simulator's books here when it ends.")
@click.option("--max-seconds", type=click.FloatRange(min=0), help="End by itself after so long.")
@click.option("--parent", type=int, help="End by itself when this process is gone.")
@stand_in.options
def command(
    port: int,
    name: str,
    seed: int,
    tokenizer: str | None,
    changes: tuple[str, ...],
    books: Path | None,
    max_seconds: float | None,
    parent: int | None,
    **engine: Any,
) -> None:
    """Serve an OpenRouter-compatible API of virtual providers on 127.0.0.1; the base URL is printed on stdout.

    Its books are at /sim/books and /sim/state: what was sampled, sent and billed. With --engine it is a server of that
    engine's kind instead, with a base URL for its backend and its books at /counts.
    """
    scenario = changed(load(name), changes)
    if engine["engine"] is not None:
        stand_in.serve(
            engine, scenario, seed, tokenizer, port=port, parent=parent, max_seconds=max_seconds, books=books
        )
        return
    folder = vocab.resolve(tokenizer) if tokenizer else vocab.kimi_folder()
    family = by_name(FAMILY).load(folder)
    if parent is None and sys.stderr.isatty():
        say(f"in RUN.toml, under [target]: base_url as below, and tokenizer = {json.dumps(str(folder))}; ^C ends it")
    world = World(scenario, seed, family.vocab, time.monotonic, family.count_prompt)
    wire.run_forever(world, port=port, parent=parent, max_seconds=max_seconds, books=books)


def changed(scenario: Scenario, changes: tuple[str, ...]) -> Scenario:
    """The scenario with fields replaced: NAME=VALUE, or faults.NAME=VALUE.

    Raises:
        UsageError: there is no such field, or the value does not fit it.
    """
    fields: dict[str, Any] = msgspec.structs.asdict(scenario)
    faults: dict[str, Any] = msgspec.structs.asdict(scenario.faults)
    for change in changes:
        name, equals, value = change.partition("=")
        table, field = (faults, name.removeprefix("faults.")) if name.startswith("faults.") else (fields, name)
        if not equals or field not in table:
            raise UsageError(
                f"--set {change}: give NAME=VALUE with a field of the scenario: {', '.join(sorted(fields))}"
            )
        listed = isinstance(table[field], tuple)
        table[field] = value.split(",") if listed else None if value.lower() == "none" else value
    try:
        return msgspec.convert({**fields, "faults": faults}, Scenario, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"--set: {error}") from None
