"""Trainer formats. One file a format, one line here; its file imports `eyas.exporters.…`, never this table."""

from __future__ import annotations

from eyas.errors import UsageError
from eyas.exporters.base import Format, Row, Writer
from eyas.exporters.messages import Messages
from eyas.exporters.parquet import Parquet
from eyas.exporters.rows import Rows
from eyas.exporters.specforge_text import SpecForgeText
from eyas.exporters.torchspec import TorchSpec

__all__ = ["FORMATS", "Format", "Row", "Writer", "by_name"]

FORMATS: dict[str, Format] = {
    "rows": Rows(),
    "parquet": Parquet(),
    "messages": Messages(),
    "specforge-text": SpecForgeText(),
    "torchspec": TorchSpec(),
}
"""Every format by its name."""


def by_name(name: str) -> Format:
    """The format of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return FORMATS[name]
    except KeyError:
        raise UsageError(f"unknown format {name!r}: give --format one of {', '.join(sorted(FORMATS))}.") from None
