"""Workers of a coordinator (`leadkit`) as plain models over real states, events and rows: no loop, no disk, no waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from eyas.errors import CapReached, LedgerError
from eyas.events import (
    AnyEvent,
    Capped,
    Corrected,
    Granted,
    Headers,
    Intent,
    PromptAdded,
    Returned,
    SessionOpened,
    Settled,
    TurnAdded,
    TurnRefused,
)
from eyas.journal import Row
from eyas.state import ANSWERED, State, followed
from eyas.state.turns import after, begun
from eyas.state.workers import named, works_of
from eyas.types import FailureKind, Finish, Prices, Verdict, Work

TURNS = {"0": 2, "1": 0, "2": 1}
"""Prompts of dataset A, and how many turns of the user come after each."""
TALKS = tuple(Work("A", prompt_id, 0, sample) for prompt_id in TURNS for sample in range(5))
OPENED = SessionOpened(at=0.0, model="m", cap=None, quotas={"A": None}, samples={"A": 5})


ENDINGS = (*Verdict, *[Verdict.DONE] * 5, *[Verdict.PARTIAL] * 3, *[Verdict.UNKNOWN] * 2)
"""How what a worker asks may end, each as often as it stands here."""
Grants = list[tuple[Granted, tuple[Work, ...]]]
"""Grants to a worker, each with the works that it hands out."""


@dataclass
class Peer:
    """A worker: it holds to its own cap, and to what it was handed.

    `bills` is what its requests cost once they ended, whoever knows it. `ready` works may be asked now, `fresh` of them were
    never begun, `held` ones wait for an outcome to become known. `gone`: no process of it is left; `hidden`: its journal
    cannot be read.
    """

    number: int
    state: State = field(default_factory=State)
    rows: list[Row] = field(default_factory=list[Row])
    bills: dict[int, int] = field(default_factory=dict[int, int])
    ready: list[Work] = field(default_factory=list[Work])
    fresh: set[Work] = field(default_factory=set[Work])
    held: set[Work] = field(default_factory=set[Work])
    taken: int = 0
    given: int = 0
    gone: bool = False
    hidden: bool = False

    def __post_init__(self) -> None:
        self.say(OPENED)
        self.say(Capped(at=0.0, cap=0))

    def say(self, event: AnyEvent) -> None:
        """An event, into its state and its journal."""
        self.state.apply(event)
        self.rows.append(Row(len(self.rows) + 1, msgspec.json.encode(event), None))

    @property
    def cap(self) -> int:
        """What it may spend in all."""
        return self.state.money.cap or 0

    @property
    def flying(self) -> list[int]:
        """Its attempts in flight."""
        return [attempt.id for attempt in self.state.left_open()]

    @property
    def talks(self) -> set[Work]:
        """The conversations that it may still ask something of."""
        flying = (self.state.attempts[number].work for number in self.flying)
        return {begun(work) for work in (*self.ready, *self.held, *flying)}

    @property
    def spent(self) -> int:
        """What its requests really cost, and may cost."""
        return sum(self.bills.get(each.id, each.reserved) for each in self.state.attempts.values())

    def take(self, grant: Granted) -> bool:
        """Hear of a grant, perhaps again; whether it is taken now."""
        if grant.number != self.taken + 1 or self.gone:
            return False
        self.taken = grant.number
        self.say(Capped(at=1.0, cap=self.cap + grant.nano))
        for work in works_of(grant.works):
            self.say(PromptAdded(at=1.0, dataset="A", prompt_id=work.prompt_id, tokens=10, turns=TURNS[work.prompt_id]))
        return True

    def hand(self, works: tuple[Work, ...]) -> None:
        """Works of a grant that it took."""
        self.ready += works
        self.fresh |= set(works)

    def begin(self, work: Work, reserved: int) -> None:
        """Ask a work, if its money covers that."""
        if not self.state.money.fits(reserved):
            return
        self.ready.remove(work)
        self.fresh.discard(work)
        attempt = self.state.last_attempt + 1
        number = self.state.work(work).numbers + 1
        mark = f"body of {work.key}" if not work.turn else f"{work.key} after what worker {self.number} knows"
        prices = Prices(1, 2)
        self.say(
            Intent(1.0, attempt=attempt, work=work, number=number, tag="p", prices=prices, reserved=reserved, mark=mark)
        )
        self.say(Headers(at=1.5, attempt=attempt, generation_id=f"gen-{self.number}-{attempt}"))

    def settle(self, attempt: int, verdict: Verdict, share: Fraction, *, known: bool, follows: bool = True) -> None:
        """An attempt ends and cost that share of its reservation, which is known now or later.

        `follows`: the user's next turn can be asked.
        """
        work = self.state.attempts[attempt].work
        bill = self.bills[attempt] = int(share * self.state.attempts[attempt].reserved)
        tokens = 5 if verdict in ANSWERED else 0
        lost = verdict is Verdict.UNKNOWN
        cost = bill if known and not lost else None
        kind, finish = FailureKind.LOST if lost else None, Finish.STOP if verdict is Verdict.DONE else None
        repeated = not self.state.work(work).owed
        self.say(Settled(2.0, attempt=attempt, verdict=verdict, cost=cost, tokens=tokens, kind=kind, finish=finish))
        if self.gone:
            return
        if followed(self.state, work):
            self.go_on(after(work), follows=follows)
        elif self.state.work(work).owed or (verdict is Verdict.PARTIAL and not repeated):
            self.ready.append(work)  # a part may become whole: the same body is asked again
        elif self.state.work(work).verdict is Verdict.UNKNOWN:
            self.held.add(work)

    def go_on(self, work: Work, *, follows: bool) -> None:
        """The next turn of a conversation, if there is one."""
        if work.turn > TURNS[work.prompt_id] or not self.state.work(work).owed:
            return
        if follows:
            self.say(TurnAdded(at=2.5, work=work, tokens=20))
            self.ready.append(work)
        else:
            self.say(TurnRefused(at=2.5, work=work, detail="it has grown too long"))

    def learn(self, attempt: int) -> None:
        """What an attempt cost becomes known."""
        self.say(Corrected(at=3.0, attempt=attempt, cost=self.bills[attempt]))
        work = self.state.attempts[attempt].work
        if work in self.held and self.state.work(work).verdict is not Verdict.UNKNOWN:
            self.held.discard(work)
            if self.state.work(work).owed and not self.gone:
                self.ready.append(work)

    def give_back(self, nano: int, works: set[Work]) -> None:
        """Money that is not held, and works that were not begun."""
        self.given += 1
        self.ready = [work for work in self.ready if work not in works]
        self.fresh -= works
        self.say(Returned(at=3.0, number=self.given, nano=nano, works=named(map(begun, works))))

    def die(self) -> None:
        """Its process is gone, and what flew goes on at the provider."""
        self.gone = True
        self.ready.clear()
        self.held.clear()
        self.fresh.clear()

    def close(self, bill: Fraction) -> None:
        """Whoever reads its journal to the end settles what it left open, in that journal; `bill` is the share billed."""
        verdict = Verdict.PARTIAL if bill > 1 / 2 else Verdict.AGAIN
        for attempt in self.flying:
            self.settle(attempt, verdict, bill, known=False)


def play(peer: Peer, tape: bytes) -> None:
    """A worker asks within its own cap, hears of ends, learns costs, or gives back what it has not begun."""
    for kind, which, share, turn in batched(tape, 4):
        part, flying, free = Fraction(share, 255), peer.flying, max(0, peer.state.money.free or 0)
        if kind % 8 < 3 and peer.ready:
            peer.begin(peer.ready[which % len(peer.ready)], int(part * free))
        elif kind % 8 < 6 and flying:
            verdict = ENDINGS[turn // 4 % len(ENDINGS)]
            peer.settle(flying[which % len(flying)], verdict, part, known=turn % 4 > 0, follows=turn % 4 > 1)
        elif kind % 8 == 6 and peer.bills:
            learn(peer, which, part)
        elif kind % 8 == 7:
            peer.give_back(int(part * free), set(sorted(peer.fresh)[: turn % 4]))


def learn(peer: Peer, which: int, share: Fraction) -> None:
    """A worker finds out what something cost; or that it cost less than it was told."""
    unknown = [attempt.id for attempt in peer.state.unknown()]
    ended = unknown or sorted(peer.bills)
    attempt = ended[which % len(ended)]
    peer.bills[attempt] = int(peer.bills[attempt] * (1 if unknown else share))
    peer.learn(attempt)


def batched(tape: bytes, size: int) -> Iterator[bytes]:
    """So many bytes at a time; what is left over is no whole one."""
    return (tape[at : at + size] for at in range(0, len(tape) - size + 1, size))


def refuses(act: Callable[[], object]) -> bool:
    """Whether it is refused as a contradiction, or as too much."""
    try:
        act()
    except (LedgerError, CapReached):
        return True
    return False
