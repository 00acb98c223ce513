"""The coordinator of `leasekit`'s workers as a plain model over a real state, its events and real rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

import msgspec

from eyas.engine.absorb import Emit, absorb
from eyas.events import AnyEvent, Corrected, GivenBack, Granted, PromptAdded, Settled, WorkerJoined, WorkerLeft
from eyas.journal import Payload
from eyas.state import Left, State, askable, fold
from eyas.state.turns import begun, over
from eyas.state.workers import away, mine, named, works_of
from eyas.types import FailureKind, Verdict, Work
from tests_ray.leasekit import OPENED, TALKS, TURNS, Grants, Peer


@dataclass
class Lead:
    """A coordinator: its events, of which the first `durable` ones outlive it, and what lies between it and its workers.

    `free` are conversations that nobody has, as it believes; `heard` is how far it has read each journal; `sent` are grants
    by worker, with the works that they hand out.
    """

    state: State = field(default_factory=State)
    events: list[AnyEvent] = field(default_factory=list[AnyEvent])
    durable: int = 0
    free: set[Work] = field(default_factory=set[Work])
    heard: Counter[int] = field(default_factory=Counter[int])
    sent: dict[int, Grants] = field(default_factory=dict[int, Grants])

    def emit(self, event: AnyEvent, _payload: Payload = None) -> None:
        """As `Books.emit` does."""
        self.state.apply(event)
        self.events.append(event)

    def sure(self, event: AnyEvent) -> None:
        """An event that is waited for until it is durable."""
        self.emit(event)
        self.durable = len(self.events)

    def open(self, cap: int) -> None:
        """The first session."""
        self.sure(msgspec.structs.replace(OPENED, cap=cap))
        for prompt_id, turns in TURNS.items():
            self.sure(PromptAdded(at=0.0, dataset="A", prompt_id=prompt_id, tokens=10, turns=turns))
        self.look()

    def look(self) -> None:
        """Find out which conversations are free, as a session does that opens."""
        elsewhere = away(self.state)
        self.free = {talk for talk in TALKS if talk not in elsewhere and next(self.owed(talk), None)}

    def owed(self, talk: Work) -> Iterator[Work]:
        """The works of a conversation that may be asked now."""
        for turn in range(1 + TURNS[talk.prompt_id]):
            work = Work(talk.dataset, talk.prompt_id, turn, talk.sample)
            known = self.state.works.get(work)
            if (known is None or known.owed) and askable(self.state, work):
                yield work

    def join(self) -> Peer:
        """One more worker."""
        number = max(self.state.workers, default=0) + 1
        self.sure(WorkerJoined(at=1.0, who=number, node=f"node-{number}"))
        self.sent[number] = []
        return Peer(number)

    def grant(self, number: int, nano: int, talks: list[Work]) -> None:
        """Set money and conversations apart for a worker; it hears of them later."""
        works = tuple(work for talk in talks for work in [*self.owed(talk)][:1])
        self.state.money.lease(nano)
        self.free -= set(talks)
        known = self.state.workers[number]
        event = Granted(at=1.0, to=number, number=known.grants + 1, nano=nano, works=named(map(begun, works)))
        self.sure(event)
        self.sent[number].append((event, works))

    def absorb(self, peer: Peer, most: int, again: int = 0) -> None:
        """Read so many rows that were not read yet, after some that were."""
        start = self.heard[peer.number]
        rows = peer.rows[max(0, start - again) : start + most]
        late = self.state.workers[peer.number].left is Left.WRITTEN_OFF
        found = absorb(self.state, peer.number, rows, cast("Emit", self.emit))
        self.heard[peer.number] = max(start, min(start + most, len(peer.rows)))
        for event in found:
            if isinstance(event, GivenBack):
                self.free |= {talk for talk in works_of(event.works) if not over(self.state, talk)}
        if late:
            self.look()

    def to_the_end(self, peer: Peer, bill: Fraction) -> None:
        """Read all that a worker left, and let it go."""
        peer.close(bill)
        self.absorb(peer, len(peer.rows))
        had = set(self.state.workers[peer.number].works)
        if self.state.workers[peer.number].left is not Left.READ:
            self.sure(WorkerLeft(at=4.0, who=peer.number))
        self.free |= {talk for talk in had if next(self.owed(talk), None)}

    def write_off(self, number: int) -> None:
        """Nobody waits for a worker any more."""
        had = set(self.state.workers[number].works)
        self.sure(WorkerLeft(at=4.0, who=number, written_off=True))
        self.free |= {talk for talk in had if next(self.owed(talk), None)}

    def crash(self, cut: int) -> None:
        """The process is killed: so many of its events stay, and another one goes on."""
        del self.events[cut:]
        self.state = fold(self.events)
        self.heard = Counter({number: worker.seq for number, worker in self.state.workers.items()})
        for attempt in mine(self.state):
            self.emit(Settled(at=6.0, attempt=attempt.id, verdict=Verdict.AGAIN, cost=None, kind=FailureKind.LOST))
        self.look()

    def look_up(self, attempt: int, bill: int) -> None:
        """Ask the API what an attempt cost."""
        self.emit(Corrected(at=5.0, attempt=attempt, cost=bill))
        self.look()
