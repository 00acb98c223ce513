"""The one place that waits between two refreshes of a view."""

from __future__ import annotations

import threading
from collections.abc import Iterator


def every(seconds: float) -> Iterator[None]:
    """At once, and then after so many seconds each time, until ^C."""
    ended = threading.Event()
    try:
        yield
        while not ended.wait(seconds):
            yield
    except KeyboardInterrupt:
        return
