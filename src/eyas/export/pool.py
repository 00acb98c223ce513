"""Chunks over processes: results come in the order of their jobs, and only a few are held at a time."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from eyas.errors import EyasError
from eyas.export.work import Setup, Worker
from eyas.machine import cores

_HELD = 3
_CHUNKS_EACH = 4
_OBJECTS = 100_000

J = TypeVar("J")
R = TypeVar("R")


class Crew:
    """Does jobs, here or in other processes, to which `submit` gives them. Each opens the runs and loads the tokenizer for itself."""

    def __init__(self, worker: Worker, submit: Callable[..., Future[Any]] | None, workers: int) -> None:
        self._worker, self._submit, self._held = worker, submit, _HELD * workers

    def map(self, task: Callable[[Worker, J], R], jobs: Iterable[J]) -> Iterator[R]:
        """Results in the order of the jobs.

        Raises:
            EyasError: a process ended before its job did.
        """
        if self._submit is None:
            yield from (task(self._worker, job) for job in jobs)
            return
        waiting: deque[Future[R]] = deque()
        try:
            for job in jobs:
                waiting.append(self._submit(task, job))
                if len(waiting) > self._held:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise EyasError(
                "a process of the export was ended from outside, perhaps for want of memory: "
                "export again with fewer --workers"
            ) from None


Hire = Callable[[Setup, int | None, int], AbstractContextManager[Crew]]
"""Makes a crew: of a setup, so many workers (None: as many as is good), for so many chunks."""


@contextmanager
def crew(setup: Setup, workers: int | None, chunks: int) -> Generator[Crew]:
    """So many processes (1: none but this one; None: one a processor, fewer for few chunks), ended at the end."""
    # A process takes two seconds to start, which a few chunks do not.
    count = min(cores(), max(1, chunks // _CHUNKS_EACH)) if workers is None else workers
    with closing(Worker(setup)) as worker:
        if count == 1:
            yield Crew(worker, None, 1)
            return
        # Spawned, not forked: threads of the caller (of the encoder, of numpy) would be lost in a fork.
        context = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(setup,))
        try:
            yield Crew(worker, partial(executor.submit, _do), count)
        finally:
            executor.shutdown(cancel_futures=True)


_here: list[Worker] = []
"""The worker of this process."""


def _begin(setup: Setup) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears of it and ends its processes
    threading.Thread(target=_end_with_parent, daemon=True).start()
    worker = Worker(setup)
    with suppress(EyasError):  # the first job raises it again, where it can be told
        worker.family  # noqa: B018  # loaded while others still read the runs
    # A vocabulary is hundreds of thousands of objects that no collection need look at, and rows make no cycles.
    gc.freeze()
    gc.set_threshold(_OBJECTS)
    _here.append(worker)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(task: Callable[[Worker, J], R], job: J) -> R:
    return task(_here[0], job)
