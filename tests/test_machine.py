"""What the process is told of its machine."""

from __future__ import annotations

import gc

from eyas.machine import LOOKS, freeze_heap, run_loop


def test_what_is_loaded_is_left_alone() -> None:
    """What stands when a run begins is not looked at again, and the collector comes seldom."""
    before = gc.get_threshold()
    try:
        freeze_heap()
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold() == LOOKS
        assert gc.isenabled()
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_a_loop_leaves_the_collector_as_it_was() -> None:
    """What a run changes of the collector ends with its loop: whoever runs it inside a longer process keeps theirs."""

    async def work() -> int:
        freeze_heap()
        return gc.get_freeze_count()

    before = gc.get_threshold()
    assert run_loop(work()) > 1000
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before
