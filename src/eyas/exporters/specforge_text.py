"""Text for SpecForge's route `data.train_data_path` with `data.is_preformatted: true`: prompt and answer as one string.

SpecForge 0.2.0 encodes the text again and finds the answer by a regular expression over it. `docs/formats.md` has the
chat template that it must be given; where the format `rows` can be used, it is the better one.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from pathlib import Path

from eyas.exporters.base import Row
from eyas.exporters.lines import Lines, pack

_HALF = "\ufffd"


class SpecForgeText:
    """The format `specforge-text`."""

    name = "specforge-text"
    suffix = ".jsonl"
    text = True
    cannot = (
        "Token ids: the text is encoded again, and words that the model split in another way come out otherwise.",
        "The loss mask: all that follows the assistant's header is supervised, ids that are not sure included.",
        "Two modes in one file: the header that ends the prompt differs between thinking and instant answers.",
        "Where an answer comes from: a row is its id and its text.",
    )

    def refuses(self, row: Row, /) -> str:
        """Why an answer cannot be carried at all, or an empty string: ids that end inside a character are no text."""
        return "the ids end inside a character" if row.text.endswith(_HALF) else ""

    def pack(self, rows: Many[Row]) -> bytes:
        """Rows as JSON lines."""
        return pack({"id": row.sequence.record_id, "text": row.text} for row in rows)

    def open(self, path: Path) -> Lines:
        """A new shard."""
        return Lines(path)
