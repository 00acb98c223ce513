"""Text for a terminal of so many columns: broken at spaces, never inside a word or a command. Pure."""

from __future__ import annotations

import re
import textwrap

_HELD = "\0"
"""Stands for a space that must not become the end of a line."""


def fit(text: str, width: int, indent: str = "  ") -> str:
    """Lines of at most `width` columns (0: as they are); further ones begin with `indent`.

    A command in backticks stays on one line, so that it can be copied. A word wider than the terminal stays whole.
    """
    if width <= 0:
        return text
    return "\n".join(line if len(line) <= width else _broken(line, width, indent) for line in text.split("\n"))


def _broken(line: str, width: int, indent: str) -> str:
    first = line[: len(line) - len(line.lstrip())]
    held = re.sub(r"`[^`]+`", lambda command: _hold(command[0], width - len(indent)), line.strip())
    lines = textwrap.wrap(
        held,
        width,
        initial_indent=first,
        subsequent_indent=first + indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace(_HELD, " ")


def _hold(command: str, most: int) -> str:
    return command.replace(" ", _HELD) if len(command) <= most else command
