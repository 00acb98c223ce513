"""What commands say to people, on stderr: wrapped to the terminal, as it is where there is none."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from eyas.report.fit import fit

NARROWEST = 40
"""A terminal that says it is narrower, or 0, is not believed."""
USUAL = 80
"""Columns of a terminal that does not tell."""


def columns_of(stream: TextIO) -> int:
    """Columns of the terminal that a stream goes to; 0 where it goes to none."""
    if not stream.isatty():
        return 0
    try:
        return max(NARROWEST, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return USUAL


def say(text: str) -> None:
    """Write lines to stderr."""
    print(fit(text, columns_of(sys.stderr)), file=sys.stderr)
