"""What the machine has: cores, and an event loop, uvloop where there is one."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

LOOKS = (20_000, 20, 10)
"""Objects between two looks at the youngest, looks at those to one at the middle ones, and of these to one at all."""


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; what `freeze_heap` did in it is undone then."""
    with heap_restored():
        return _run_loop(work)


def _run_loop(work: Coroutine[Any, Any, T]) -> T:
    try:
        import uvloop  # noqa: PLC0415  # not there on Windows
    except ImportError:
        factory = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


@contextmanager
def heap_restored() -> Generator[None]:
    """Undo at the end what `freeze_heap` does within."""
    thresholds = gc.get_threshold()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def freeze_heap() -> None:
    """Have the garbage collector leave alone what stands now, and look less often at what comes.

    A look at all objects of a run stops its loop for tenths of a second (164,000 of them at 1000 in flight), and finds
    next to nothing: what a request leaves is free once nobody names it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*LOOKS)
