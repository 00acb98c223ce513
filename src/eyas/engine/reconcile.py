"""Settle what is not known, without asking for anything new: left-open attempts, look-ups, write-offs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass

import msgspec
from pydantic import SecretStr

from eyas.config import RunConfig
from eyas.engine.inputs import Tokenizer
from eyas.engine.leftover import Intake, take_back
from eyas.engine.lookup import WAITS, Lookups
from eyas.engine.recover import doubles
from eyas.engine.resume import left_open
from eyas.engine.retry import policy_of
from eyas.engine.target import api_of
from eyas.errors import UsageError
from eyas.events import AnyEvent, Corrected, WorkerLeft
from eyas.journal import Journal, Payload
from eyas.records import Run
from eyas.state import Attempt, Left, State
from eyas.transport import HttpTransport
from eyas.types import Completion


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What came of it; money is nano-dollars. `without_id` of the unknown ones have no generation id."""

    asked: int
    found: int
    cost: int
    kept: int
    written_off: int
    written_off_cost: int
    unknown: int
    without_id: int
    held: int
    workers: tuple[int, ...] = ()
    workers_cost: int = 0
    away: int = 0


async def reconcile(
    config: RunConfig, key: SecretStr, tokenizer: Tokenizer, write_off: str | None, wall: Callable[[], float]
) -> Reconciled:
    """Settle unknown outcomes of a run whose lock the caller holds; `write_off` is a work's key, a worker's number, "all" or None.

    Journals of workers that can be read now are taken in first.

    Raises:
        UsageError: there is no such work.
        StorageError: the journal cannot be written or read.
    """
    with closing(Journal(config.dir)) as journal, closing(Run(config.dir)) as run:
        state = run.state

        def book(event: AnyEvent, payload: Payload = None) -> Awaitable[None]:
            state.apply(event)
            return journal.write(event, payload)

        async def correct(event: Corrected) -> None:
            await book(event)
            for double in doubles(state, state.attempt(event.attempt)):
                await book(Corrected(at=event.at, attempt=double.id, cost=0))

        policy = policy_of(config)
        await take_back(Intake(config, state, book, journal.flush, wall, tokenizer.loaded, policy))
        kept = 0
        thinking = {each.name: config.thinking(each.name) for each in config.datasets}
        for attempt, outcome, event in left_open(state, run.store, tokenizer.loaded, policy, thinking):
            await book(msgspec.structs.replace(event, at=wall()), outcome if isinstance(outcome, Completion) else None)
            kept += attempt.answered
        before = state.unknown() if key.get_secret_value() else []
        async with HttpTransport() as transport:
            found = await Lookups(transport, api_of(config, key), correct, wall).settle_all(before, (0.0, *WAITS[:4]))
        cost = sum(attempt.cost or 0 for attempt in before)
        gone, leases = _workers(state, write_off), state.money.leased
        for number in gone:
            await book(WorkerLeft(at=wall(), who=number, written_off=True))
        chosen = [] if gone and write_off != "all" else _chosen(state, run, write_off)
        for attempt in chosen:
            await book(Corrected(at=wall(), attempt=attempt.id, cost=attempt.reserved, written_off=True))
        left = state.unknown()
        return Reconciled(
            asked=len(before),
            found=found,
            cost=cost,
            kept=kept,
            written_off=len(chosen),
            written_off_cost=sum(attempt.reserved for attempt in chosen),
            unknown=len(left),
            without_id=sum(not attempt.generation_id for attempt in left),
            held=state.money.unknown,
            workers=gone,
            workers_cost=leases - state.money.leased,
            away=sum(worker.left is Left.NOT for worker in state.workers.values()),
        )


def _workers(state: State, write_off: str | None) -> tuple[int, ...]:
    """The workers whose leases are written off: those that can be heard of no more, all or the one that is named."""
    away = [number for number, worker in state.workers.items() if worker.left is Left.NOT]
    if write_off is None or "/" in write_off:
        return ()
    if write_off == "all":
        return tuple(away)
    if write_off.isdecimal() and int(write_off) not in away:
        raise UsageError(
            f"--write-off {write_off}: no worker {write_off} is away: "
            f"{', '.join(map(str, away)) or 'none'} {'is' if len(away) < 2 else 'are'}"
        )
    return (int(write_off),) if write_off.isdecimal() else ()


def _chosen(state: State, run: Run, write_off: str | None) -> list[Attempt]:
    if write_off is None:
        return []
    if write_off == "all":
        return state.unknown()
    work = run.find(write_off)
    chosen = [attempt for attempt in state.unknown() if attempt.work == work]
    if not chosen:
        raise UsageError(f"{write_off} has no unknown outcome: `eyas show` lists its attempts")
    return chosen
