"""The State of a run, and what several kinds of events do to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from eyas.errors import LedgerError
from eyas.events import AnyEvent, Event
from eyas.ledger import Money
from eyas.standing import Attempt, DatasetState, ProviderState, WorkerState, WorkState, stand
from eyas.state.packed import Attempts
from eyas.state.touched import Touched
from eyas.types import Label, StopReason, Work

APPLY: dict[type[Event], Callable[[State, Any], None]] = {}
"""What each kind of event does, and `Event` what any does that happened at a worker; the package fills it."""


@dataclass(slots=True)
class State:
    """The run, folded. `apply` one event after the other; nothing else changes it.

    `labelled` are the labels by who answered. `began` is when the first session was opened, `opened` when the last one was. `touched` notes what may have changed, where
    a checkpoint is kept; it is no part of where the run stands.
    """

    model: str = ""
    family: str = ""
    money: Money = field(default_factory=Money)
    waste_limit: int | None = None
    datasets: dict[str, DatasetState] = field(default_factory=dict[str, DatasetState])
    works: dict[Work, WorkState] = field(default_factory=dict[Work, WorkState])
    attempts: Attempts = field(default_factory=Attempts)
    pending_cost: set[int] = field(default_factory=set[int])
    providers: dict[str, ProviderState] = field(default_factory=dict[str, ProviderState])
    labels: dict[int, Label] = field(default_factory=dict[int, Label])
    labelled: dict[str, dict[Label, int]] = field(default_factory=dict[str, dict[Label, int]])
    sessions: int = 0
    closed: StopReason | None = None
    habits: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    began: float = 0.0
    opened: float = 0.0
    alarms: list[str] = field(default_factory=list[str])
    last_attempt: int = 0
    workers: dict[int, WorkerState] = field(default_factory=dict[int, WorkerState])
    touched: Touched | None = field(default=None, compare=False, repr=False)

    def apply(self, event: AnyEvent) -> None:
        """Take one event in.

        Raises:
            LedgerError: the event contradicts what came before it.
        """
        APPLY[Event if event.worker else type(event)](self, event)

    def attempt(self, number: int) -> Attempt:
        """The attempt of that id, to be looked at or changed; raises LedgerError if there is none."""
        if number not in self.attempts:
            raise LedgerError(f"attempt {number} has no intent in the journal")
        if self.touched is not None:
            self.touched.attempts.add(number)
        return self.attempts[number]

    def work(self, work: Work) -> WorkState:
        """The state of a work, to be looked at or changed; a fresh one if it was never asked."""
        if self.touched is not None:
            self.touched.works.add(work)
        return self.works.get(work) or self.works.setdefault(work, WorkState())

    def prompt_tokens(self, work: Work) -> int:
        """Our own count of the prompt of a work, its history included; 0 where it was not counted."""
        if not work.turn:
            return self.datasets[work.dataset].prompts.get(work.prompt_id, 0)
        known = self.works.get(work)
        return known.prompt_tokens if known else 0

    def attempts_at(self, work: Work) -> list[Attempt]:
        """All attempts at a work, to be looked at only."""
        found = [attempt for attempt in self.attempts.unpacked() if attempt.work == work]
        known = self.works.get(work)
        if known is not None and known.answer is not None and all(each.id != known.answer for each in found):
            found.append(self.attempts[known.answer])  # a packed one is the answer that its work stands by
        return sorted(found, key=lambda attempt: attempt.id)

    def left_open(self) -> list[Attempt]:
        """Attempts without an outcome, oldest first: in flight, or cut by a kill."""
        return [self.attempts[number] for number in sorted(self.pending_cost) if self.attempts[number].open]

    def unknown(self) -> list[Attempt]:
        """Attempts whose cost is not known, oldest first."""
        return [self.attempts[number] for number in sorted(self.pending_cost) if self.attempts[number].unknown]


def stand_by(state: State, dataset: DatasetState, work: WorkState) -> None:
    """The work stands by the answer that it has."""
    settled = state.attempt(work.answer or 0).settled
    if settled is not None:
        stand(dataset, work, settled.verdict, settled.kind, settled.tokens)


def drop(state: State, number: int) -> None:
    """An answer counts no more: what it cost is waste from now on."""
    attempt = state.attempt(number)
    attempt.dropped = True
    if attempt.cost is not None:
        state.money = state.money.correct(attempt.cost, 0).correct(0, attempt.cost, wasted=True)
