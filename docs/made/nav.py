"""The navigation: the tables of the first page, section by section."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HEAD = re.compile(r"^## (.+)$")
_ROW = re.compile(r"^\| \[([^\]]+)\]\(([\w-]+)\.md\) \|")


def sections(text: str) -> dict[str, list[tuple[str, str]]]:
    """Of the first page: by head, the (title, page) of each row whose first cell is a link; in their order."""
    found: dict[str, list[tuple[str, str]]] = {}
    head = ""
    for line in text.splitlines():
        if named := _HEAD.match(line):
            head = named[1]
        elif row := _ROW.match(line):
            found.setdefault(head, []).append((row[1], row[2]))
    return found


def toctrees(text: str) -> str:
    """The directives of Sphinx that give the site that navigation."""
    return "\n\n".join(_toctree(head, pages) for head, pages in sections(text).items())


def _toctree(head: str, pages: list[tuple[str, str]]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {head}", "", *_entries(pages), "```"])


def _entries(pages: list[tuple[str, str]]) -> Iterator[str]:
    return (f"{title} <{page}>" for title, page in pages)
