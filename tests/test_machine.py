"""What the process is told of its machine."""

from __future__ import annotations

import gc

from eyas.machine import LOOKS, freeze_heap


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
