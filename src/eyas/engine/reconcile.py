"""Settle what is not known, without asking for anything new: left-open attempts, look-ups, write-offs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass

import msgspec
from pydantic import SecretStr

from eyas.config import RunConfig
from eyas.engine.inputs import Tokenizer
from eyas.engine.lookup import WAITS, Lookups
from eyas.engine.recover import doubles
from eyas.engine.resume import left_open
from eyas.engine.retry import policy_of
from eyas.engine.target import api_of
from eyas.errors import UsageError
from eyas.events import AnyEvent, Corrected
from eyas.journal import Journal
from eyas.records import Run
from eyas.state import Attempt, State
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


async def reconcile(
    config: RunConfig, key: SecretStr, tokenizer: Tokenizer, write_off: str | None, wall: Callable[[], float]
) -> Reconciled:
    """Settle unknown outcomes of a run whose lock the caller holds; `write_off` is a work's key, "all" or None.

    Raises:
        UsageError: there is no such work.
        StorageError: the journal cannot be written or read.
    """
    with closing(Journal(config.dir)) as journal, closing(Run(config.dir)) as run:
        state = run.state

        def book(event: AnyEvent, payload: Completion | None = None) -> Awaitable[None]:
            state.apply(event)
            return journal.write(event, payload)

        async def correct(event: Corrected) -> None:
            await book(event)
            for double in doubles(state, state.attempt(event.attempt)):
                await book(Corrected(at=event.at, attempt=double.id, cost=0))

        kept = 0
        thinking = {each.name: config.thinking(each.name) for each in config.datasets}
        for attempt, outcome, event in left_open(state, run.store, tokenizer.loaded, policy_of(config), thinking):
            await book(msgspec.structs.replace(event, at=wall()), outcome if isinstance(outcome, Completion) else None)
            kept += attempt.answered
        before = state.unknown() if key.get_secret_value() else []
        async with HttpTransport() as transport:
            found = await Lookups(transport, api_of(config, key), correct, wall).settle_all(before, (0.0, *WAITS[:4]))
        cost = sum(attempt.cost or 0 for attempt in before)
        chosen = _chosen(state, run, write_off)
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
        )


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
