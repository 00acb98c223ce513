"""The run's only truth: append-only events in SQLite (WAL, synchronous=FULL).

Events are small and stand in a table of their own; the text that belongs to them (prompt, request body, answer) stands
apart, compressed, so that a resume reads keys only. Drafts of answers in flight are kept beside the events and go when
their attempt settles.
"""

from eyas.journal.database import NAME, storage
from eyas.journal.read import Store
from eyas.journal.write import Journal, Log, Payload

__all__ = ["NAME", "Journal", "Log", "Payload", "Store", "storage"]
