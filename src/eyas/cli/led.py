"""`eyas run --on ray`: the run over many machines, from the machine that leads it."""

from __future__ import annotations

import asyncio
import functools
import signal
import sys
from collections.abc import Callable

from pydantic import SecretStr

from eyas.cli import start
from eyas.cli.progress import Show, line_of, shows
from eyas.cli.say import say
from eyas.cluster.on_ray import address_of, run_on_ray
from eyas.config import RunConfig
from eyas.engine.coordinator import Coordinator
from eyas.engine.session import Ended, Options
from eyas.errors import UsageError
from eyas.report.progress import plain
from eyas.report.resume import sentences
from eyas.types import StopReason


def run(config: RunConfig, text: str, key: SecretStr, options: Options, on: tuple[str, str | None]) -> Ended:
    """Run a session over a cluster; `on` is what --on says, and what --progress does.

    Raises:
        UsageError: --on names no engine that is known, or Ray is not installed.
    """
    address = address_of(on[0])
    if config.fallback is not None:
        raise UsageError(
            "--on ray: a run over many machines has no [fallback]: run what is left with `eyas run --fallback`"
        )
    return start.run_loop(run_on_ray(config, text, key, options, functools.partial(begin, on[1]), address))


def begin(progress: str | None, coordinator: Coordinator) -> None:
    """Say what a resumed run found, show lines while it goes on, and watch signals."""
    if shows(progress, sys.stderr) is not Show.NONE:
        books = coordinator.books
        for sentence in sentences(books.state, books.setting.config.dir, len(books.pool.repeats)):
            say(plain(sentence, 600))
        coordinator.on_tick = ticking()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        again = coordinator.books.stopping is StopReason.INTERRUPTED
        say(
            "ending what flies; its text is kept"
            if again
            else f"handing out nothing more; {coordinator.in_flight} in flight may land (^C again ends them and keeps their text)"
        )
        coordinator.interrupt()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)


def ticking() -> Callable[[Coordinator], None]:
    """Writes a line about the run to stderr now and then."""
    line = line_of(sys.stderr)

    def tick(coordinator: Coordinator) -> None:
        line.tick(coordinator.books.state, coordinator.in_flight, coordinator.last_error)

    return tick
