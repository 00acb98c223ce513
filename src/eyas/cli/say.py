"""What commands say to people, on stderr: wrapped to the terminal, as it is where there is none."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from eyas.cli.style import style_of
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
    print(style_of(sys.stderr).told(fit(text, columns_of(sys.stderr))), file=sys.stderr)


def say_error(text: str) -> None:
    """Write what went wrong to stderr, behind the name of the program."""
    name, said = "eyas:", fit(f"eyas: {text}", columns_of(sys.stderr))
    print(style_of(sys.stderr).bad(name) + said.removeprefix(name), file=sys.stderr)
