"""A run over many machines: the coordinator hands works and money to workers, and takes in what their journals hold.

The run's own journal is the only truth. What a worker may spend is set apart in it (`Granted`) before the worker hears of it, and
is free again only by what its journal says, or when the user writes it off.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from eyas.engine import grants
from eyas.engine.absorb import absorb
from eyas.engine.admit import Candidate
from eyas.engine.fleet import Fleet, Hand
from eyas.engine.grants import Crew
from eyas.engine.leftover import Intake, read_to_the_end
from eyas.engine.orders import Grant, Handed, Orders, Report
from eyas.engine.regain import Regain
from eyas.engine.settle import Books
from eyas.errors import StorageError, WorkerLost
from eyas.events import Alarm, AnyEvent, Corrected, GivenBack, Granted, Settled, TurnRefused, WorkerJoined, WorkerLeft
from eyas.ledger import reservation
from eyas.report.live.pulse import Pulse
from eyas.state import Left
from eyas.state.turns import begun, doubtful
from eyas.state.workers import named, works_of
from eyas.types import StopReason, Verdict, Work

MOST_LOST = 5
"""Workers in a row that brought no answer before their place is given up."""
CALM = 0.75
"""Seconds that a worker is left alone that has enough to do: a word costs a millisecond or two of this process, whatever it says."""
LOOK = 1.0
"""Seconds between two looks at what is foreseen for the quotas."""
_STOPS = {each.value: each for each in (StopReason.KEY, StopReason.ALARM, StopReason.STORAGE)}


def _nothing(_: object) -> None:
    """Nobody listens."""


@dataclass(slots=True)
class Coordinator:
    """One session. `on_tick` hears of the passing of time.

    `handed` are the works that workers were handed, by their conversations, until these end. `pulse`: what the session showed of
    itself last.
    """

    books: Books
    fleet: Fleet
    crew: Crew
    regain: Regain
    on_tick: Callable[[Coordinator], None] = _nothing
    hands: dict[int, Hand] = field(default_factory=dict[int, Hand])
    handed: dict[Work, Candidate] = field(default_factory=dict[Work, Candidate])
    pulse: Pulse | None = None
    _reason: StopReason | None = None
    _aborted: bool = False
    _looked: float = -LOOK
    _needed: int = 0
    _between: int = 0

    @property
    def in_flight(self) -> int:
        """Requests of all workers, by their last reports."""
        return sum(hand.report.in_flight for hand in self.hands.values())

    def interrupt(self) -> None:
        """First call: hand out nothing more and let what flies land. Second call: end what flies, keeping its text."""
        self._aborted = self._aborted or self.books.stopping is StopReason.INTERRUPTED
        self.books.stopping = StopReason.INTERRUPTED

    async def run(self) -> StopReason:
        """Go until the end of this session and say why it ended.

        Raises:
            StorageError: the run's journal failed; nothing was handed out after that.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.crew.workers):
                    group.create_task(self._place())
        except* StorageError as errors:
            raise errors.exceptions[0] from None
        return self.books.stopping or self._reason or StopReason.OWED

    async def _place(self) -> None:
        """One worker after the other, until nothing more is to be asked or too many were lost."""
        lost = 0
        while lost < MOST_LOST and self._end() is None:
            number = max((*self.books.state.workers, *self.hands), default=0) + 1
            hand = self.hands[number] = Hand()
            try:
                node = await self.fleet.start(number)
            except WorkerLost as error:
                self.books.last_error, lost = f"no worker could be started ({error})", lost + 1
                del self.hands[number]
                continue
            await self.books.emit(WorkerJoined(at=self.books.world.wall(), who=number, node=node))
            lost = await self._employ(number, hand, lost)

    async def _employ(self, number: int, hand: Hand, lost: int) -> int:
        """One worker from its first order until all that it had is somebody else's; gives how many were lost in a row."""
        worker = self.books.state.workers[number]
        try:
            await self._attend(number, hand)
            had = set(worker.works)
            await self.books.emit(WorkerLeft(at=self.books.world.wall(), who=number))
            lost = MOST_LOST if hand.report.ended == StopReason.OWED.value else 0
        except WorkerLost as error:
            had = set(worker.works)
            await self._lose(number, str(error))
            lost = 0 if worker.answers else lost + 1
        finally:
            del self.hands[number]
            self._between += 1
            await self.fleet.end(number)
        if worker.left is Left.READ and had:
            await self._take_up(had)
        self._between -= 1
        return lost

    async def _attend(self, number: int, hand: Hand) -> None:
        while not (hand.report.ended and hand.heard >= hand.report.last):
            orders = await self._orders(number, hand)
            report = await self.fleet.exchange(number, orders)
            self._take(number, hand, report)
            self.on_tick(self)
            if hand.busy and self._end() is None:
                await asyncio.sleep(CALM)
        if stop := _STOPS.get(hand.report.ended):
            self.books.stop(stop, hand.report.detail)
        if hand.report.ended == StopReason.ERROR.value:
            raise WorkerLost(hand.report.detail)

    def _take(self, number: int, hand: Hand, report: Report) -> None:
        """What a worker reports."""
        for event in absorb(self.books.state, number, report.rows, self.books.emit):
            self._heed(event)
        hand.report = report
        hand.heard = report.rows[-1].seq if report.rows else hand.heard
        hand.grants = [grant for grant in hand.grants if grant.number > report.taken]
        for other in self.hands.values():
            if other is not hand:
                other.refusals.extend(report.refusals)
        self.books.last_error = report.error or self.books.last_error

    def _heed(self, event: AnyEvent) -> None:
        """What an event of a worker means for what is handed out next."""
        state = self.books.state
        if isinstance(event, GivenBack):
            for conversation in works_of(event.works):
                self.books.pool.put_back(self.handed.pop(conversation))
        if isinstance(event, Settled | Corrected | TurnRefused):
            work = event.work if isinstance(event, TurnRefused) else state.attempts[event.attempt].work
            if isinstance(event, Settled) and event.verdict is Verdict.DONE:
                self.books.quotas.learn(work, state.prompt_tokens(work), event.tokens, event.seconds)
            if begun(work) not in state.workers[event.worker].works:
                self.handed.pop(begun(work), None)

    async def _orders(self, number: int, hand: Hand) -> Orders:
        """What a worker is told next; a new grant is durable before it is told."""
        ending = self._end()
        if ending is None and not hand.report.ended:
            await self._grant(number, hand)
        state, refusals = self.books.state, tuple(hand.refusals)
        hand.refusals.clear()
        return Orders(
            grants=tuple(hand.grants),
            heard=hand.heard,
            drop=tuple(name for name, dataset in state.datasets.items() if dataset.quota.met),
            squeeze=self._short_of_money(),
            finish=ending is not None,
            drain=ending not in (None, StopReason.COMPLETE),
            abort=self._aborted,
            refusals=refusals,
        )

    async def _grant(self, number: int, hand: Hand) -> None:
        books, lease = self.books, self.books.state.workers[number].lease
        works = list(self._next(grants.prompts(self.crew, hand.waiting, books.pool.size)))
        nano = 0
        if (free := books.state.money.free) is not None:
            need = grants.Need(hand.waiting + len(works), hand.report.in_flight, self._needed)
            nano = grants.money(self.crew, need, lease, max(0, free))
        if not works and not nano:
            return
        grant = Grant(books.state.workers[number].grants + 1, nano, tuple(Handed(*each) for each in works))
        names = named(begun(candidate.work) for candidate in works)
        books.state.money.lease(nano)  # raises rather than ever pass the cap
        hand.grants.append(grant)
        await books.emit(Granted(at=books.world.wall(), to=number, number=grant.number, nano=nano, works=names))

    def _next(self, most: int) -> Iterator[Candidate]:
        """The works that are handed out next, taken out of the pool, as far as the quotas want them."""
        books, now = self.books, self.books.world.clock()
        self._look(now)
        for _ in range(most):
            heads = books.pool.heads(now, books.quotas.progress)
            found = next((each for each in heads if books.quotas.admits(each.work.dataset)), None)
            if found is None:
                return
            books.pool.take(found)
            books.quotas.started(found.work.dataset)
            self.handed[begun(found.work)] = found
            self._needed = max(self._needed, self._reservation(found))
            yield found

    def _look(self, now: float) -> None:
        """Foresee anew what the works that are handed out will bring."""
        if now < self._looked + LOOK:
            return
        self._looked = now
        away = Counter(work.dataset for worker in self.books.state.workers.values() for work in worker.works)
        self.books.quotas.refresh({name: [0] * count for name, count in away.items()})

    def _reservation(self, candidate: Candidate) -> int:
        """The most that a request for it reserves, whoever answers it."""
        most = self.books.setting.config.max_tokens(candidate.work.dataset)
        routes = self.books.setting.served.routes
        return max((reservation(route.prices, candidate.tokens, most) for route in routes), default=0)

    def _short_of_money(self) -> bool:
        """Whether a worker lacks money that others may have and not need."""
        free = self.books.state.money.free
        return free is not None and free < self._needed and any(hand.report.short for hand in self.hands.values())

    def _end(self) -> StopReason | None:
        """Why nothing more is handed out; None while something may be."""
        books = self.books
        if self._reason is None:
            self._reason = books.stopping or self._over()
        return books.stopping or self._reason

    def _over(self) -> StopReason | None:
        state, pool = self.books.state, self.books.pool
        wanted = pool.waiting(lambda name: not state.datasets[name].quota.met)
        if self._between:
            return None  # what a worker left may not be handed out again yet
        if not wanted and not any(self._busy(number) for number in self.hands):
            return StopReason.COMPLETE
        if self._short_of_money() and all(map(self._exhausted, self.hands)):
            return StopReason.CAP
        return None

    def _busy(self, number: int) -> bool:
        worker = self.books.state.workers.get(number)
        if worker is None:
            return False
        return bool(self.hands[number].grants) or any(not doubtful(self.books.state, each) for each in worker.works)

    def _exhausted(self, number: int) -> bool:
        """Whether a worker can do nothing with what it has, and has given back all money."""
        worker = self.books.state.workers.get(number)
        return worker is None or (self.hands[number].idle and not worker.lease.left)

    async def _lose(self, number: int, why: str) -> None:
        """A worker is gone: what its journal holds is taken in, if it can be read here."""
        books = self.books
        at, node = books.world.wall(), books.state.workers[number].node
        if await read_to_the_end(Intake.of(books), number):
            told = f"worker {number} was lost ({why}); its journal was read to the end, and another one goes on"
        else:
            told = (
                f"worker {number}{f' on {node}' if node else ''} was lost ({why}) and its journal cannot be read here: its money "
                f"and prompts stay set apart; bring workers/{number} back, or `eyas reconcile --write-off {number}`"
            )
        await books.emit(Alarm(at=at, detail=told))
        self.books.last_error = told

    async def _take_up(self, conversations: set[Work]) -> None:
        """Conversations that a worker left unfinished are handed out again, each where it stands."""
        await self.books.world.log.flush()
        for work in conversations:
            self.handed.pop(work, None)
        for candidate in self.regain.works(conversations):
            self.books.pool.put_back(candidate)
