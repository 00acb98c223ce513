"""A worker's side of a run over many machines: an ordinary engine that is handed its works and its money by a coordinator.

The engine's loop takes orders at its ticks; `exchange` may be called from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from eyas.engine.admit import Candidate
from eyas.engine.orders import Grant, Orders, Refusal, Report
from eyas.engine.run import Engine
from eyas.engine.session import Ended
from eyas.events import Capped, PromptAdded, Returned
from eyas.journal import Store
from eyas.state.turns import begun
from eyas.state.workers import named
from eyas.types import StopReason, Work

MOST_BYTES = 2_000_000
"""Of a journal's rows in one report."""
PATIENCE = 0.5
"""Seconds that a report is waited for, which is more than a tick."""


@dataclass(slots=True)
class Desk:
    """Where orders lie and reports are made of. `start`, `tick`, `more` and `over` are the session's, `exchange` the coordinator's.

    `part` is the share of every limit that is this worker's.
    """

    part: float = 1.0
    _orders: list[Orders] = field(default_factory=list[Orders])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _turned: threading.Event = field(default_factory=threading.Event)
    _store: Store | None = None
    _cap: int | None = None
    _taken: int = 0
    _given: int = 0
    _richer: bool = False
    _handed: set[Work] = field(default_factory=set[Work])
    _finish: bool = False
    _drained: bool = False
    _report: Report = field(default_factory=Report)
    _refusals: list[Refusal] = field(default_factory=list[Refusal])
    _end: tuple[str, str] = ("", "")

    def start(self, engine: Engine) -> None:
        """The session begins, with nothing to spend."""
        books = engine.books
        self._cap = None if books.state.money.cap is None else 0
        books.emit(Capped(at=books.world.wall(), cap=self._cap))
        engine.more = self.more
        books.pace.part = self.part
        books.pace.heard = self._refused
        self._store = Store(books.setting.config.dir)

    def more(self) -> bool:
        """Whether the coordinator may hand more."""
        return not self._finish

    def tick(self, engine: Engine) -> None:
        """Take what orders there are, and say how things stand."""
        with self._lock:
            orders, self._orders = self._orders, []
        self._richer = False
        for each in orders:
            self._take(engine, each)
        self._tell(engine)
        self._turned.set()

    def over(self, ended: Ended) -> None:
        """The session is over, and all of it is in the journal."""
        self._end = (ended.reason.value, ended.detail)
        self._turned.set()

    def failed(self, error: BaseException) -> None:
        """The session broke off."""
        self._end = (StopReason.ERROR.value, f"{type(error).__name__}: {error}")
        self._turned.set()

    def exchange(self, orders: Orders) -> Report:
        """Leave orders, and get a report; waits until they were seen, or for a moment."""
        with self._lock:
            self._orders.append(orders)
            self._turned.clear()
        if not self._end[0]:
            self._turned.wait(PATIENCE)
        reason, detail = self._end
        rows = () if self._store is None else tuple(self._store.rows(orders.heard, MOST_BYTES))
        with self._lock:
            refusals, self._refusals = tuple(self._refusals), []
        now = self._report
        return Report(
            rows=rows,
            taken=now.taken,
            waiting=now.waiting,
            in_flight=now.in_flight,
            short=now.short,
            ended=reason,
            last=self._store.last() if reason and self._store else 0,
            detail=detail,
            error=now.error,
            refusals=refusals,
            pulse=now.pulse,
        )

    def _refused(self, tag: str, retry_after: float | None) -> None:
        with self._lock:
            self._refusals.append(Refusal(tag, retry_after))

    def _take(self, engine: Engine, orders: Orders) -> None:
        for grant in orders.grants:
            if grant.number == self._taken + 1:
                self._receive(engine, grant)
        now = engine.books.world.clock()
        for refusal in orders.refusals:
            engine.books.pace.refused_elsewhere(refusal.tag, now, refusal.retry_after)
        self._finish |= orders.finish
        drain = (orders.drain or orders.abort) and not self._drained
        self._drained |= drain
        works = self._unbegun(engine, None if drain else orders.drop)
        nano = self._spare(engine) if orders.squeeze or drain else 0
        if works or nano:
            self._give_back(engine, nano, works)
        if orders.abort and engine.books.stopping is not StopReason.INTERRUPTED:
            engine.interrupt()
            engine.interrupt()

    def _receive(self, engine: Engine, grant: Grant) -> None:
        books, at = engine.books, engine.books.world.wall()
        self._taken = grant.number
        if self._cap is not None and grant.nano:
            self._cap += grant.nano
            self._richer = True
            books.emit(Capped(at=at, cap=self._cap))
        for each in grant.works:
            prompt, work = each.prompt, each.work
            turns = work.turn + len(prompt.turns)
            books.emit(
                PromptAdded(at=at, dataset=work.dataset, prompt_id=work.prompt_id, tokens=each.tokens, turns=turns),
                prompt,
            )
            books.pool.add(Candidate(work, prompt, each.tokens))
            self._handed.add(work)

    def _unbegun(self, engine: Engine, datasets: Collection[str] | None) -> tuple[Work, ...]:
        """Handed works that were not begun, taken out of the pool; of all datasets (None) or of some."""
        if datasets is not None and not datasets:
            return ()

        def theirs(candidate: Candidate) -> bool:
            return candidate.work in self._handed and (datasets is None or candidate.work.dataset in datasets)

        return tuple(candidate.work for candidate in engine.books.pool.give_up(theirs))

    def _spare(self, engine: Engine) -> int:
        """Money that is not held and could not start another request."""
        money = engine.books.state.money
        waits = self._richer or (engine.books.pool.size and not self._short(engine))
        return 0 if waits or money.free is None else max(0, money.free)

    def _give_back(self, engine: Engine, nano: int, works: tuple[Work, ...]) -> None:
        books = engine.books
        self._handed.difference_update(works)
        self._given += 1
        if self._cap is not None:
            self._cap -= nano
        names = named(begun(work) for work in works)
        books.emit(Returned(at=books.world.wall(), number=self._given, nano=nano, works=names))

    def _short(self, engine: Engine) -> bool:
        return engine.blocked.money

    def _tell(self, engine: Engine) -> None:
        self._report = Report(
            taken=self._taken,
            waiting=engine.books.pool.size,
            in_flight=len(engine.flights),
            short=self._short(engine),
            error=engine.books.last_error,
            pulse=engine.pulse,
        )
