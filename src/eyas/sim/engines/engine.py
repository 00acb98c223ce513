"""A stand-in's engine: so many answers at a time, the others in a queue, all at one speed (pure, on any clock)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import BinaryIO

from eyas.sim.engines.author import Author
from eyas.sim.engines.base import Asked, Job, Settings, Wire
from eyas.sim.engines.books import Books
from eyas.sim.reply import Action, Reply, Step, as_json

_STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
_JSON = {"Content-Type": "application/json"}


class Engine:
    """Answers requests in a wire's form.

    Args:
        wire: paths and forms.
        author: makes the answers.
        settings: slots, speed, when it fails.
        now: the clock, in seconds since the Unix epoch; it must never go back.
        die: what happens after the last answer of a server that fails.
        log: see `Books`.
    """

    def __init__(
        self,
        wire: Wire,
        author: Author,
        settings: Settings,
        now: Callable[[], float],
        die: Callable[[], None] | None = None,
        log: BinaryIO | None = None,
    ) -> None:
        self.wire = wire
        self.books = Books(log)
        self._author = author
        self._settings = settings
        self._now = now
        self._die = die
        self._queue: deque[tuple[Job, Reply]] = deque()
        self._running = self._finished = 0

    def handle(self, method: str, target: str, headers: Mapping[str, str], data: bytes = b"") -> Reply:
        """The reply to a request."""
        del headers  # no engine asks for a key unless it is started with one
        path, _, query = target.partition("?")
        if method == "GET" and path == "/counts":
            return as_json(self.books.to_json(ids="ids=1" in query))
        found = self.wire.post(path, data) if method == "POST" else self.wire.get(path)
        if isinstance(found, Asked):
            return self._accept(found)
        self.books.refused += found is not None and found.status >= 400  # HTTP's errors
        return found or as_json({"detail": "Not Found"}, 404)

    def _accept(self, asked: Asked) -> Reply:
        answer = self._author.answer(asked.prompt, asked.thinking, asked.limit, asked.seed)
        now = self._now()
        job = Job(len(self.books.jobs), asked, answer, int(now), now)
        self.books.jobs.append(job)
        steps = self._stream(job) if asked.stream else self._whole(job)
        free = self._running < self._settings.slots
        if free:
            self._begin(job)
        reply = Reply(200, steps, headers=_STREAM if asked.stream else _JSON)
        if not (asked.stream and asked.form.early):
            reply.wait = self._whole_wait(job) if free else math.inf
        reply.on_close(partial(self._close, job))
        if not free:
            self._queue.append((job, reply))
        return reply

    def _begin(self, job: Job) -> None:
        job.status, job.begun = "running", self._now()
        self._running += 1
        self.books.mark(job)

    def _close(self, job: Job, played: bool) -> None:
        was_running = job.status == "running"
        job.status, job.ended = "full" if played else "cancelled", self._now()
        self.books.mark(job)
        if was_running:
            self._running -= 1
            self._next()
        if played:
            self._finished += 1
            if self._finished == self._settings.fail_after and self._die is not None:
                self._die()

    def _next(self) -> None:
        while self._queue and self._running < self._settings.slots:
            job, reply = self._queue.popleft()
            if job.status == "queued":
                self._begin(job)
                reply.wake(0.0 if reply.wait == 0 else self._whole_wait(job))

    def _whole_wait(self, job: Job) -> float:
        """Seconds until the head of an answer that is not sent at once."""
        if job.asked.stream:
            return 0.0
        return self._settings.latency + job.answer.size * self._seconds()

    def _seconds(self) -> float:
        """Seconds that a token takes now."""
        most, total = self._settings.speed, self._settings.total_speed
        return 1.0 / (most if total is None else min(most, total / max(1, self._running)))

    def _stream(self, job: Job) -> Iterator[Step]:
        if job.begun is None:
            yield 0.0, Action.WAIT
        form, size, interval = job.asked.form, job.answer.size, self._settings.interval
        player, wait = form.player(job.answer), 0.0
        yield self._settings.latency, form.head(job)
        while job.sent < size:
            tokens = min(interval, size - job.sent)
            yield wait, form.piece(job, player.take(tokens))
            job.sent += tokens
            wait = min(interval, size - job.sent) * self._seconds()
        yield 0.0, form.end(job)
        yield 0.0, Action.END

    def _whole(self, job: Job) -> Iterator[Step]:
        form = job.asked.form
        yield 0.0, form.whole(job, form.player(job.answer).take(job.answer.size))
        job.sent = job.answer.size
        yield 0.0, Action.END
