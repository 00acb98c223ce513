"""A run over several workers in one process: a fleet of asyncio tasks that can be lost, cut off or slow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from eyas import config as configs
from eyas.engine.coordinator import Coordinator
from eyas.engine.desk import Desk
from eyas.engine.grants import Crew
from eyas.engine.inputs import list_endpoints, load_tokenizer, read_inputs
from eyas.engine.lead import lead, serve, worker_parts
from eyas.engine.orders import Orders, Report
from eyas.engine.session import Ended, Options, Parts
from eyas.engine.target import backend_of
from eyas.errors import WorkerLost
from eyas.lock import lock
from eyas.transport import HttpTransport
from tests import kit

CREW = Crew(3, 40, 20)


@dataclass
class Here:
    """Workers as tasks of this loop. `twice` has every word told twice; `cut` are workers that cannot be spoken to any more."""

    parts: Parts
    crew: Crew
    twice: bool = False
    desks: dict[int, Desk] = field(default_factory=dict[int, Desk])
    tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict[int, "asyncio.Task[None]"])
    cut: set[int] = field(default_factory=set[int])

    async def start(self, worker: int) -> str:
        """Begin a worker."""
        desk = self.desks[worker] = Desk(part=1 / self.crew.workers)
        self.tasks[worker] = asyncio.create_task(serve(worker_parts(self.parts, worker, self.crew), desk))
        return f"node-{worker}"

    async def exchange(self, worker: int, orders: Orders) -> Report:
        """Speak to it."""
        if worker in self.cut or worker not in self.tasks:
            raise WorkerLost("it does not answer")
        if self.twice:
            await asyncio.to_thread(self.desks[worker].exchange, orders)
        return await asyncio.to_thread(self.desks[worker].exchange, orders)

    async def end(self, worker: int) -> None:
        """End it at once, as a kill does: nothing is settled."""
        task = self.tasks.pop(worker, None)
        if task is not None:
            task.cancel()
            with contextlib.suppress(BaseException):
                await task


def write(folder: Path, sim: kit.Sim, tokenizer: Path, prompts: int, **limits: object) -> configs.RunConfig:
    """A run's files, and its config."""
    kit.write_run(folder, sim, tokenizer, prompts, **limits)
    return configs.load(folder / "RUN.toml")


async def led(
    config: configs.RunConfig,
    begin: Callable[[Coordinator, Here], None] = lambda _c, _f: None,
    crew: Crew = CREW,
    *,
    twice: bool = False,
) -> Ended:
    """One session over a fleet of this process."""
    text = (config.base / "RUN.toml").read_text(encoding="utf-8")
    tokenizer = load_tokenizer(config)
    backend = backend_of(config, SecretStr(kit.KEY))
    async with HttpTransport() as transport:
        offer = await list_endpoints(config, backend, transport)
        parts = Parts(config, backend, tokenizer, read_inputs(config, tokenizer), offer, text)
        fleet = Here(parts, crew, twice)
        try:
            with lock(config.dir):
                return await lead(parts, transport, Options(), fleet, lambda c: begin(c, fleet), crew)
        finally:
            for worker in list(fleet.tasks):
                await fleet.end(worker)
