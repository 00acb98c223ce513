"""Whether a loop is running here already: a call that starts one of its own cannot work then."""

from __future__ import annotations

import asyncio

from eyas.errors import UsageError


def refuse_in_a_loop(name: str) -> None:
    """Say what to write where an event loop is running.

    Raises:
        UsageError: one is running in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        f"an event loop is running here, as in every notebook, so eyas.{name} cannot start one: write "
        f"`await eyas.{name}_async(...)` with the same arguments"
    )
