"""One session of a run over many machines, as the coordinator has it; and as a worker does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eyas.config import RunConfig
from eyas.engine.coordinator import Coordinator
from eyas.engine.desk import Desk
from eyas.engine.fleet import Fleet
from eyas.engine.fleet_pulse import FleetBeat
from eyas.engine.grants import Crew
from eyas.engine.inputs import Inputs
from eyas.engine.lookup import WAITS, Lookups
from eyas.engine.regain import Regain
from eyas.engine.session import Ended, Options, Parts, open_session, run, session
from eyas.engine.target import api_of
from eyas.engine.turns import Turns
from eyas.events import Corrected, SessionClosed
from eyas.lock import lock
from eyas.transport import HttpTransport, Transport

NOTHING = Inputs(prompts=(), counts={}, quarantined=(), duplicates=0)
"""A worker has no sources: it is handed its prompts."""


async def lead(
    parts: Parts, transport: Transport, options: Options, fleet: Fleet, begin: Callable[[Coordinator], None], crew: Crew
) -> Ended:
    """Run one session over the workers of a fleet; the caller holds the lock of the run directory.

    Raises:
        UsageError: no endpoint may answer, or prompts vanished from the sources.
        StorageError: the run's journal cannot be written or read.
    """
    with session(parts, transport) as (books, known, journal):
        opened = await open_session(parts, books, known, options)
        coordinator = Coordinator(books, fleet, crew, Regain(books, Turns(books, known), parts.inputs))
        begin(coordinator)
        beat = FleetBeat(parts.config.dir, journal, coordinator.on_tick)
        coordinator.on_tick = beat.tick
        try:
            reason = await coordinator.run()
        finally:
            beat.end()
        if parts.backend.bills and (unknown := books.state.unknown()):

            async def book(event: Corrected) -> None:
                await books.correct(event)

            backend = api_of(parts.config, parts.backend.key)
            await Lookups(transport, backend, book, books.world.wall).settle_all(unknown, WAITS[:4])
        await books.emit(SessionClosed(at=books.world.wall(), reason=reason))
        return Ended(reason, books.stop_detail, books.state, opened.recovered)


async def serve(parts: Parts, desk: Desk, processes: int = 1) -> None:
    """Be a worker until the coordinator says that nothing more comes; `parts` are as `worker_parts` makes them.

    Whatever goes wrong is told at the desk.
    """
    options = Options(on_start=desk.start, on_tick=desk.tick)
    try:
        with lock(parts.config.dir):
            async with HttpTransport() as transport:
                ended = await run(parts, transport, options, processes)
    except BaseException as error:
        desk.failed(error)
        raise
    desk.over(ended)


def worker_parts(parts: Parts, worker: int, crew: Crew) -> Parts:
    """What a session of a worker is made of: no sources, no quotas, its share of what may be wasted, a directory of its own."""
    config = worker_config(parts.config, worker, crew)
    return replace(parts, config=config, inputs=NOTHING, text="")


def worker_config(config: RunConfig, worker: int, crew: Crew) -> RunConfig:
    """The run as a worker has it. Its cap is 0 from its first event on, whatever stands here: what it gets is granted."""
    usd = None if config.budget.usd is None else config.budget.usd / crew.workers
    alone = {"usd": usd, "output_tokens": None, "total_output_tokens": None}
    return config.model_copy(
        update={
            "run": config.run.model_copy(update={"dir": f"{config.run.dir}/workers/{worker}"}),
            "budget": config.budget.model_copy(update=alone),
            "limits": config.limits.model_copy(update={"in_flight": crew.in_flight}),
            "datasets": tuple(each.model_copy(update={"output_tokens": None}) for each in config.datasets),
        }
    )
