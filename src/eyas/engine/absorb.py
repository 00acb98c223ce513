"""What a worker's journal holds becomes the run's: each event once, under our number of its attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import msgspec

from eyas.events import (
    Alarm,
    AnyEvent,
    Corrected,
    GivenBack,
    Headers,
    Intent,
    Labelled,
    Returned,
    Settled,
    TurnAdded,
    TurnRefused,
)
from eyas.journal import Payload, Row
from eyas.state import Left, State

Emit = Callable[[AnyEvent, Payload], Awaitable[None]]
_decode = msgspec.json.Decoder(AnyEvent).decode


def absorb(state: State, worker: int, rows: Iterable[Row], emit: Emit) -> list[AnyEvent]:
    """Take in rows of a worker's journal that were not taken in yet; gives the events as they are ours.

    `emit` applies an event to the state and appends it to the journal. Rows may come again, but none may be missing.
    """
    found: list[AnyEvent] = []
    for row in rows:
        if row.seq > state.workers[worker].seq:
            event = ours(state, worker, row.seq, _decode(row.event))
            if event is not None:
                emit(event, row.text)
                found.append(event)
    return found


def ours(state: State, worker: int, seq: int, event: AnyEvent) -> AnyEvent | None:
    """The event as it stands in the run's journal; None for what concerns the worker alone.

    Of a worker that was written off only money and answers count: its conversations may be asked elsewhere by now.
    """
    known = state.workers[worker]
    if isinstance(event, Intent):
        return msgspec.structs.replace(event, attempt=state.last_attempt + 1, worker=worker, seq=seq)
    if isinstance(event, Headers | Settled | Corrected | Labelled):
        return msgspec.structs.replace(event, attempt=known.attempts[event.attempt - 1], worker=worker, seq=seq)
    if isinstance(event, TurnAdded | TurnRefused) and known.left is Left.NOT:
        return msgspec.structs.replace(event, worker=worker, seq=seq)
    if isinstance(event, Returned) and known.left is Left.NOT and event.number > known.backs:
        return GivenBack(event.at, by=worker, number=event.number, nano=event.nano, works=event.works)
    if isinstance(event, Alarm):
        attempt = None if event.attempt is None else known.attempts[event.attempt - 1]
        return msgspec.structs.replace(event, attempt=attempt, worker=worker, seq=seq)
    return None
