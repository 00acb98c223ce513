"""The run's only truth: append-only events in SQLite (WAL, synchronous=FULL).

Events are small and stand in a table of their own; the text that belongs to them (prompt, request body, answer) stands
apart, compressed, so that a resume reads keys only. Drafts of answers in flight are kept beside the events and go when
their attempt settles. So is a checkpoint of the State: derived, checked, and folded anew where it is not believed.

Names are loaded when they are first used: a completion on TAB needs `glance` only, and has no time for the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyas.journal.checkpoint import Kept
    from eyas.journal.database import NAME, Packed, Row, storage
    from eyas.journal.index import Index
    from eyas.journal.keep import Keeper
    from eyas.journal.read import Store
    from eyas.journal.write import Journal, Log, Payload

__all__ = ["NAME", "Index", "Journal", "Keeper", "Kept", "Log", "Packed", "Payload", "Row", "Store", "storage"]

_FROM = {
    "NAME": "database",
    "Index": "index",
    "Journal": "write",
    "Keeper": "keep",
    "Kept": "checkpoint",
    "Log": "write",
    "Packed": "database",
    "Payload": "write",
    "Row": "database",
    "Store": "read",
    "storage": "database",
}
"""The file of each name."""


def __getattr__(name: str) -> Any:
    """Load a name when it is first asked for (PEP 562)."""
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_FROM[name]}"), name)
    return found
