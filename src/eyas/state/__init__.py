"""Where a run stands: State = fold(events), the one way to know. Pure and incremental."""

from __future__ import annotations

from collections.abc import Iterable

from eyas.events import (
    Alarm,
    AnyEvent,
    Capped,
    Corrected,
    Event,
    Forgotten,
    GivenBack,
    Granted,
    Headers,
    Intent,
    Labelled,
    Learned,
    PromptAdded,
    PromptRemoved,
    Retried,
    Returned,
    SessionClosed,
    SessionOpened,
    Settled,
    Tuned,
    TurnAdded,
    TurnRefused,
    WorkerJoined,
    WorkerLeft,
)
from eyas.standing import ANSWERED, Attempt, DatasetState, Left, ProviderState, WorkerState, WorkState
from eyas.state import attempts, prompts, workers
from eyas.state.model import APPLY as _APPLY
from eyas.state.model import State
from eyas.state.touched import Touched
from eyas.state.turns import askable, count_stranded, followed, stranded, wanted

__all__ = [
    "ANSWERED",
    "Attempt",
    "DatasetState",
    "Left",
    "ProviderState",
    "State",
    "Touched",
    "WorkState",
    "WorkerState",
    "askable",
    "count_stranded",
    "fold",
    "followed",
    "stranded",
    "wanted",
]


def fold(events: Iterable[AnyEvent], state: State | None = None) -> State:
    """State after those events, on top of `state` if given."""
    state = state if state is not None else State()
    for event in events:
        state.apply(event)
    return state


_APPLY.update(
    {
        SessionOpened: prompts.opened,
        SessionClosed: prompts.closed,
        PromptAdded: prompts.added,
        PromptRemoved: prompts.removed,
        Forgotten: prompts.forgotten,
        Retried: prompts.retried,
        TurnAdded: prompts.turn_added,
        TurnRefused: prompts.turn_refused,
        Intent: attempts.begun,
        Headers: attempts.headers,
        Settled: attempts.settled,
        Corrected: workers.corrected,
        Labelled: attempts.labelled,
        Learned: lambda state, event: state.habits.update(event.habits),
        Alarm: lambda state, event: state.alarms.append(event.detail),
        Event: workers.take,
        WorkerJoined: workers.joined,
        Granted: workers.granted,
        GivenBack: workers.given_back,
        WorkerLeft: workers.left,
        Capped: prompts.capped,
        Returned: prompts.returned,
        Tuned: lambda _state, _event: None,
    }
)
