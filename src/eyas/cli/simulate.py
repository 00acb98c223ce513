"""`eyas simulate`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from eyas import vocab
from eyas.cli import stand_in
from eyas.cli.say import say
from eyas.errors import UsageError
from eyas.families import by_name
from eyas.sim import wire
from eyas.sim.scenarios import Scenario, load
from eyas.sim.world import World

FAMILY = "kimi-k2.5"


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
    """Serve an OpenRouter-compatible API of virtual providers on 127.0.0.1; the base URL is printed on stdout."""
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
        raise UsageError(f"--set: {error}: give a value of that kind") from None
