"""`eyas run --on ray`: the run over many machines, from the machine that leads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pydantic import SecretStr

from eyas.cli import start
from eyas.cli.listener import Carried
from eyas.cluster.on_ray import address_of, run_on_ray
from eyas.config import RunConfig
from eyas.engine.coordinator import Coordinator
from eyas.engine.session import Ended, Options
from eyas.errors import UsageError


class Shown(NamedTuple):
    """Who hears of a session: of its beginning, and of the passing of time."""

    begin: Callable[[Carried], None]
    tick: Callable[[Carried], None]


def run(config: RunConfig, text: str, key: SecretStr, options: Options, on: tuple[str, Shown]) -> Ended:
    """Run a session over a cluster; `on` is what --on says, and who shows it.

    Raises:
        UsageError: --on names no engine that is known, or Ray is not installed.
    """
    address, shown = address_of(on[0]), on[1]
    if config.fallback is not None:
        raise UsageError(
            "--on ray: a run over many machines has no [fallback]: run what is left with `eyas run --fallback`"
        )

    def begin(coordinator: Coordinator) -> None:
        coordinator.on_tick = shown.tick
        shown.begin(coordinator)

    return start.run_loop(run_on_ray(config, text, key, options, begin, address))
