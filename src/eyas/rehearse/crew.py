"""Plays beside each other, a process for each core; results come in the order of their tasks."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple

from eyas.errors import EyasError, UsageError
from eyas.machine import cores
from eyas.rehearse.play import Job, Played, rehearse


class Task(NamedTuple):
    """One play. `optional`: where no endpoint can serve it, it has no result, and that is no error."""

    job: Job
    seed: int
    optional: bool = False


def play_all(
    tasks: Sequence[Task], workers: int | None = None, heard: Callable[[int], None] = lambda _: None
) -> list[Played | None]:
    """Play all tasks in so many processes (None: one a core; 1: in this one); `heard` is told how many are done.

    Raises:
        UsageError: a run cannot be asked: no endpoint may answer, or none takes a dataset's max_tokens.
        EyasError: a process ended before its task did.
    """
    count = min(len(tasks), cores() if workers is None else workers)
    if count <= 1:
        return [_told(play_one(task), number, heard) for number, task in enumerate(tasks, 1)]
    # Spawned, not forked: threads of the caller would be lost in a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context, initializer=_begin) as executor:
        try:
            return [_told(each, number, heard) for number, each in enumerate(executor.map(play_one, tasks), 1)]
        except BrokenProcessPool:
            raise EyasError(
                "a process of the rehearsal was ended from outside, perhaps for want of memory: rehearse fewer --seeds"
            ) from None
        except BaseException:
            executor.shutdown(cancel_futures=True)
            raise


def play_one(task: Task) -> Played | None:
    """Play one task, without the garbage collector: it takes a third of the time and finds next to nothing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return rehearse(task.job, task.seed)
    except UsageError:
        if task.optional:
            return None
        raise
    finally:
        if collects:
            gc.enable()


def _told(played: Played | None, number: int, heard: Callable[[int], None]) -> Played | None:
    heard(number)
    return played


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears of it and ends its processes
