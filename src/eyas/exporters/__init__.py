"""Trainer formats. One file a format, one line here."""

from __future__ import annotations

from collections.abc import Callable

from eyas.errors import UsageError
from eyas.exporters import rows
from eyas.types import Record, Sequence

__all__ = ["EXPORTERS", "Exporter", "by_name"]

Exporter = Callable[[Record, Sequence, str], bytes]
"""(record, its training tokens, their text) → one line of a shard, its newline included."""

EXPORTERS: dict[str, Exporter] = {
    "rows": rows.line,
}
"""Every format by its name."""


def by_name(name: str) -> Exporter:
    """The exporter of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return EXPORTERS[name]
    except KeyError:
        raise UsageError(f"unknown format {name!r}: --format is one of {', '.join(sorted(EXPORTERS))}.") from None
