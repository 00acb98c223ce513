"""One session of a run inside a longer process: what it is given, whom it tells, and who may end it."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from eyas.api.configure import Given
from eyas.api.ending import Progress, Result, progress, result
from eyas.api.keys import Key, key_for
from eyas.config import RunConfig, Shard
from eyas.engine.inputs import Inputs
from eyas.engine.open_files import allow_open_files
from eyas.engine.run import Engine
from eyas.engine.scope import Scope
from eyas.engine.session import Ended, Options
from eyas.engine.sessions import run_config
from eyas.engine.stoppable import Stoppable
from eyas.errors import UsageError
from eyas.machine import freeze_heap, heap_restored
from eyas.report import loaded

Listener = Callable[[Progress], object]
"""Hears how far a session is; returns False to have it ended."""

TICKS = 2
"""Ticks of the engine from one progress to the next: twice a second."""

log = logging.getLogger("eyas")


@dataclass(frozen=True, slots=True)
class Wish:
    """What of the run is asked, and of whom."""

    limit: int | None = None
    datasets: tuple[str, ...] = ()
    confirm_removed: bool = False
    fallback: bool = False
    shard: str | None = None

    def of(self, given: Given) -> RunConfig:
        """The config of what is asked.

        Raises:
            UsageError: there is no such part of it, or no [fallback].
        """
        config = given.config
        if self.shard is not None:
            if given.check is not None:
                raise UsageError(f"shard {self.shard}: a plan is of the whole run: give its RUN.toml")
            config = config.part(Shard.read(self.shard))
        return config.fallen_back if self.fallback else config


@dataclass(slots=True)
class Session:
    """One call of `run`. `signals`: ^C ends it, which `interrupted` tells then."""

    given: Given
    wish: Wish
    listener: Listener | None = None
    signals: bool = False
    interrupted: bool = False
    _notes: list[str] = field(default_factory=list[str])
    _stoppable: Stoppable = field(default_factory=Stoppable)
    _failed: Exception | None = None
    _ticks: int = 0

    async def run(self, key: Key | None) -> Result:
        """Run it to its end.

        Raises:
            UsageError, KeyOrCreditsError, ApiError, LockedError, StorageError: as `run_config` does.
            Exception: what the listener raised; the session has ended in order then.
        """
        config, scope = self.wish.of(self.given), Scope(self.wish.limit, self.wish.datasets)
        scope.check(config)
        allow_open_files(config.limits.in_flight)
        first = key_for(config.target, key)
        second = None if config.fallback is None else key_for(config.fallback, key)
        work = run_config(config, self.given.text, first, self._options(scope), second)
        with heap_restored(), self._heard():
            ended = await self._stoppable.run(work)
        self._tell(progress(ended.state, time.time()))
        if self._failed is not None:
            raise self._failed
        return result(config, ended, tuple(self._notes))

    def _options(self, scope: Scope) -> Options:
        return Options(
            confirm_removed=self.wish.confirm_removed,
            on_inputs=self._read,
            on_start=self._begin,
            on_tick=None if self.listener is None else self._tick,
            scope=scope,
            check=self.given.check,
            on_fallback=self._fall_back,
        )

    def _read(self, inputs: Inputs) -> None:
        self._notes += [*inputs.caveats, *loaded.sentences(inputs.sets.values())]

    def _begin(self, engine: Engine) -> None:
        freeze_heap()
        engine.tuner.say = log.info
        self._stoppable.begin(engine)

    def _fall_back(self, ended: Ended) -> None:
        self._notes.append(f"{ended.detail or 'no server is left that may answer the rest'}; went on at [fallback]")

    def _tick(self, engine: Engine) -> None:
        self._ticks += 1
        if self._ticks % TICKS == 0:
            books = engine.books
            self._tell(progress(books.state, books.world.wall(), len(engine.flights), books.last_error))

    def _tell(self, now: Progress) -> None:
        """Tell the listener; an error of it must not cost the answers in flight, so it waits till they have landed."""
        if self.listener is None or self._failed is not None:
            return
        wanted: object = False
        try:
            wanted = self.listener(now)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is raised when nothing flies any more
            self._failed = error
        if wanted is False and not self._stoppable.asked:
            self._stoppable.interrupt()

    def _interrupt(self) -> None:
        self.interrupted = True
        self._stoppable.interrupt()
        log.warning(
            "starting nothing more; what flies may land (^C again ends it)"
            if self._stoppable.asked == 1
            else "ending what flies"
        )

    @contextmanager
    def _heard(self) -> Generator[None]:
        """^C meanwhile ends the session; Python lets only the main thread hear of signals."""
        if not self.signals or threading.current_thread() is not threading.main_thread():
            yield
            return
        loop, former = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, former)
