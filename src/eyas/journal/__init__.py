"""The run's only truth: append-only events in SQLite (WAL, synchronous=FULL).

Events are small and stand in a table of their own; the text that belongs to them (prompt, request body, answer) stands
apart, compressed, so that a resume reads keys only. Drafts of answers in flight are kept beside the events and go when
their attempt settles. So is a checkpoint of the State: derived, checked, and folded anew where it is not believed.
"""

from eyas.journal.checkpoint import Kept
from eyas.journal.database import NAME, storage
from eyas.journal.index import Index
from eyas.journal.keep import Keeper
from eyas.journal.read import Store
from eyas.journal.write import Journal, Log, Payload

__all__ = ["NAME", "Index", "Journal", "Keeper", "Kept", "Log", "Payload", "Store", "storage"]
