"""The stand-in servers of `eyas simulate --engine`."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from typing import Any

from eyas import vocab
from eyas.errors import UsageError
from eyas.families import by_name, guess
from eyas.families.template import TEMPLATE, TemplateFamily
from eyas.sim import wire
from eyas.sim.cutting import Texts
from eyas.sim.engines import WIRES, Author, Engine, Host, Modes, Settings, Streams, Told
from eyas.sim.scenarios import Scenario


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
