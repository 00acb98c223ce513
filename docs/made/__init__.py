"""Parts of the documentation that are made from the code whenever it is built, so that they cannot be out of date.

A page has a mark, `<!-- made: NAME -->`, in a line of its own; the part of that name takes its place in the built page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from made import benchmarks, commands, keys, python, words

PARTS: Mapping[str, Callable[[], str]] = {
    "benchmarks": benchmarks.text,
    "commands": commands.text,
    "keys": keys.text,
    "python": python.text,
    "exit codes": words.exit_codes,
    "errors": words.errors,
    "labels": words.labels,
}
"""What a mark may name."""
_MARK = re.compile(r"^<!-- made: (.+) -->$", re.MULTILINE)


def marks(text: str) -> list[str]:
    """The names that a page's marks give, in their order."""
    return _MARK.findall(text)


def fill(text: str) -> str:
    """A page's text with what is made in place of its marks.

    Raises:
        KeyError: a mark names no part.
    """
    return _MARK.sub(lambda mark: PARTS[mark[1]](), text)
