"""The engine: admits, sends, settles, until nothing is owed, the cap is reached, or someone says stop.

One event loop, one owner of the state. Whatever happens becomes an event first: it is folded into the state and handed to
the journal in the same step, and a request leaves only when its intent is durable.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from eyas.backends.openrouter import OpenRouter
from eyas.engine.admit import Admission, Admitted, Blocked, Flying
from eyas.engine.attempt import Flight, Reader
from eyas.engine.lookup import Lookups, first_error
from eyas.engine.owned import owned
from eyas.engine.reread import Reread
from eyas.engine.settle import Books
from eyas.engine.start import begin
from eyas.engine.tune import Tuner
from eyas.errors import KeyOrCreditsError, StorageError
from eyas.events import Headers
from eyas.providers.choose import Verdict
from eyas.report.live.pulse import Pulse
from eyas.state import Attempt
from eyas.types import Billed, Completion, Failure, FailureKind, Outcome, Record, StopReason

TICK = 0.25
"""Longest that the loop sleeps, seconds: windows grow, drafts are kept and quotas are looked at again this often."""

INTERRUPTED = "interrupted by the user"
OVER = "[fallback] after_minutes are over"
AT_THE_CAP = "ended by the stop-loss, before the cap was passed"
NOT_SENT = Failure(FailureKind.CONNECT, Billed.NO, "interrupted before it was sent")


def _nothing(_: object) -> None:
    """Nobody listens."""


def _no_more() -> bool:
    """All that is to be asked is there."""
    return False


@dataclass(slots=True)
class Engine:
    """One session of a run. `on_answer` hears of each durable answer, `on_tick` of the passing of time.

    `tick` is seconds between two ticks, TICK or more: what flies is counted anew then. `until`: when to start nothing more.
    `more` says whether works and money may still come from elsewhere; `blocked` is why nothing more started just now.
    `pulse`: what the session showed of itself last.
    """

    books: Books
    admission: Admission
    reader: Reader
    on_answer: Callable[[Record], None] = _nothing
    on_tick: Callable[[Engine], None] = _nothing
    tick: float = TICK
    until: float | None = None
    more: Callable[[], bool] = _no_more
    pulse: Pulse | None = None
    flights: dict[int, Flight] = field(default_factory=dict[int, Flight])
    tuner: Tuner = field(init=False)
    blocked: Blocked = field(default_factory=Blocked)
    _lookups: Lookups | None = None
    _reread: Reread = field(init=False)
    _tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict[int, "asyncio.Task[None]"])
    _looking: set[asyncio.Task[bool]] = field(default_factory=set["asyncio.Task[bool]"])
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _aborted: bool = False
    _settling: int = 0
    _cut: bool = False
    _peak: int = 0
    _ramp: float = 0.0
    _ticked: float = 0.0

    def __post_init__(self) -> None:
        world = self.books.world
        backend = self.books.setting.backend
        if isinstance(backend, OpenRouter):
            self._lookups = Lookups(world.transport, backend, self.books.correct, world.wall)
        self._reread = Reread(self.books)
        self.tuner = Tuner(self.books, self.admission.choice)

    def take_list(self, found: Sequence[Verdict]) -> None:
        """Set aside who may not answer now, by verdicts on all endpoints."""
        self._reread.apply(found)

    @property
    def in_flight(self) -> int:
        """Requests in flight."""
        return len(self.flights)

    def interrupt(self) -> None:
        """First call: start nothing more and let what flies land. Second call: end what flies, keeping its text."""
        self._aborted = self._aborted or self.books.stopping is StopReason.INTERRUPTED
        self.books.stopping = StopReason.INTERRUPTED
        self._wake.set()

    async def run(self) -> StopReason:
        """Go until the end of this session and say why it ended.

        Raises:
            StorageError: the journal failed; nothing was sent after that.
        """
        self._ticked = self.books.world.clock()
        self.books.quotas.refresh({})
        try:
            async with asyncio.TaskGroup() as group:
                for attempt in self.books.state.unknown():
                    self._look_up(attempt, group)
                rereading = group.create_task(self._reread.watch())
                reason = await self._loop(group)
                for task in (rereading, *self._looking):
                    task.cancel()
        except* StorageError as errors:
            raise first_error(errors) from None
        return reason

    async def _loop(self, group: asyncio.TaskGroup) -> StopReason:
        while True:
            self._tick()
            self.blocked = self._admit(group)
            if self._aborted and not self._cut:
                self._cut = True
                for task in self._tasks.values():
                    task.cancel()
            reason = self._ended(self.blocked)
            if reason is not None:
                return reason
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK):
                    await self._wake.wait()

    def _admit(self, group: asyncio.TaskGroup) -> Blocked:
        now = self.books.world.clock()
        while self.books.stopping is None:
            if len(self.flights) >= self.books.pace.most or not self._may_connect(now):
                return Blocked(room=True)
            admitted = self.admission.next(now)
            if isinstance(admitted, Blocked):
                return admitted
            self._start(admitted, group)
        return Blocked()

    def _may_connect(self, now: float) -> bool:
        """More in flight than ever needs new connections: they are ramped, so that handshakes never stall the loop."""
        if len(self.flights) < self._peak:
            return True
        self._ramp = max(self._ramp, now - TICK)
        if self._ramp > now:
            return False
        self._ramp += 1 / self.books.setting.config.limits.connects_per_second
        self._peak = len(self.flights) + 1
        return True

    def _start(self, admitted: Admitted, group: asyncio.TaskGroup) -> None:
        self.admission.reserve(admitted.reserved)  # raises rather than ever pass the cap
        block = self._reread.block(admitted.route)
        flight, body, durable = begin(self.books, admitted, block, self._headers)
        self.flights[flight.attempt] = flight
        self.books.pace.started(admitted.route.tag)
        self._tasks[flight.attempt] = group.create_task(self._attempt(flight, body, durable, group))

    async def _attempt(self, flight: Flight, body: bytes, durable: Awaitable[None], group: asyncio.TaskGroup) -> None:
        self._settling += 1  # a session is not over before an outcome is durable: its cost may have to be looked up
        try:
            await self._settle(flight, body, durable, group)
        finally:
            self._settling -= 1
            self._wake.set()

    async def _settle(self, flight: Flight, body: bytes, durable: Awaitable[None], group: asyncio.TaskGroup) -> None:
        try:
            try:
                outcome = await self._outcome(flight, body, durable)
                decision, settled = self.books.settle(flight, outcome)
            finally:
                # The next request need not wait for this one's fsync: its own intent stands behind it in the journal.
                self._land(flight)
            await settled
        except StorageError as error:
            self.books.stop(StopReason.STORAGE, str(error))  # a cancelled wait_for may still return: admit nothing more
            raise
        attempt = self.books.state.attempt(flight.attempt)
        if decision.cost is None:
            self._look_up(attempt, group)
        if isinstance(outcome, Completion) and attempt.answered:
            work, prompt, _ = flight.candidate
            self.on_answer(Record(work, prompt, outcome, flight.route.tag, decision.cost, flight.attempt))
        await self.books.follow(flight.candidate, flight.attempt, outcome)

    async def _outcome(self, flight: Flight, body: bytes, durable: Awaitable[None]) -> Outcome:
        try:
            await durable
            request = self.books.setting.backend.chat(body, flight.route.tag, cached=bool(flight.mark))
            return owned(self.books.setting, flight, await self.reader.read(flight, request))
        except asyncio.CancelledError:
            if not (self._aborted or flight.ended):
                raise
            if not flight.sent:
                return NOT_SENT
            why = AT_THE_CAP if flight.ended else INTERRUPTED
            return owned(self.books.setting, flight, await self.reader.finish(flight, why))

    def _land(self, flight: Flight) -> None:
        self.flights.pop(flight.attempt, None)
        self._tasks.pop(flight.attempt, None)
        self.books.pace.ended(flight.route.tag, accepted=flight.accepted)
        self._wake.set()

    def _headers(self, flight: Flight) -> None:
        if flight.accepted:
            self.books.pace.accepted(flight.route.tag)
        if flight.generation_id:
            at = self.books.world.wall()
            self.books.emit(Headers(at=at, attempt=flight.attempt, generation_id=flight.generation_id))

    def _look_up(self, attempt: Attempt, group: asyncio.TaskGroup) -> None:
        """Find out what an attempt cost, beside the run; without a generation id it stays unknown."""
        if self._lookups is not None and attempt.generation_id and self.books.stopping is None:
            task = group.create_task(self._find_cost(self._lookups, attempt))
            self._looking.add(task)
            task.add_done_callback(self._looked)

    async def _find_cost(self, lookups: Lookups, attempt: Attempt) -> bool:
        try:
            return await lookups.settle(attempt)
        except KeyOrCreditsError as error:
            self.books.stop(StopReason.KEY, str(error))
            return False

    def _looked(self, task: asyncio.Task[bool]) -> None:
        self._looking.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.books.stop(StopReason.STORAGE, str(task.exception()))
        self._wake.set()

    def _tick(self) -> None:
        books, now = self.books, self.books.world.clock()
        if now - self._ticked < self.tick:
            return
        self.tuner.look(now)
        books.pace.grow(now, now - self._ticked)
        self._ticked = now
        if self.until is not None and now >= self.until:
            books.stop(StopReason.OWED, OVER)
        so_far: dict[str, list[int]] = {}
        every = books.setting.config.limits.draft_seconds
        drafts = 1 + 1.25 * len(self.flights) * self.tick / every  # those due at once are spread over some ticks
        for flight in self.flights.values():
            tokens = flight.tokens = books.tokens(flight)
            so_far.setdefault(flight.candidate.work.dataset, []).append(tokens)
            if tokens and drafts > 0 and now >= flight.next_draft and flight.progress.started:
                drafts -= 1
                self._draft(flight, now)
        books.quotas.refresh(so_far)
        for attempt in self.admission.watch(map(_flying, self.flights.values()), now):
            self._end(attempt)
        self.on_tick(self)

    def _end(self, attempt: int) -> None:
        """End an answer in flight, keeping its text."""
        self.flights[attempt].ended = True
        self._tasks[attempt].cancel()

    def _draft(self, flight: Flight, now: float) -> None:
        text = flight.progress.draft()
        if text is not None:
            flight.next_draft = now + self.books.setting.config.limits.draft_seconds
            flight.parts += 1
            self.books.world.log.draft(flight.attempt, flight.parts, text)

    def _ended(self, blocked: Blocked) -> StopReason | None:
        """Why the session is over; None while it is not."""
        books = self.books
        if self.flights or self._settling:
            return None
        if books.stopping is not None:
            return books.stopping
        if self._looking or self.more():
            return None
        if not books.pool.waiting(lambda name: not books.state.datasets[name].quota.met):
            return StopReason.COMPLETE
        if books.pace.next_room(books.world.clock()) is not None:
            return None
        if blocked.money:
            return StopReason.CAP
        stuck = blocked.room and not self.admission.servable()
        return StopReason.OWED if stuck and not self._reread.hopeful() else None


def _flying(flight: Flight) -> Flying:
    return Flying(flight.attempt, Admitted(flight.candidate, flight.route, flight.reserved), flight.tokens)
