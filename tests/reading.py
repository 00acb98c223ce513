"""Sources made for the tests of reading: bytes as files, rows that every format holds, and a reader that keeps what came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eyas.errors import UsageError
from eyas.prompts.read import BadRow, Row, rows

TALKS: list[dict[str, Any]] = [
    {
        "id": 7,
        "messages": [
            {"role": "user", "content": 'A line\nand "quotes", commas; 问题 \U0001f600'},
            {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "arguments": "{}"}]},
        ],
        "tags": ["a", "b"],
    },
    {"id": 8, "messages": [{"role": "user", "content": "short"}], "score": 0.5},
    {"id": 9, "messages": [{"role": "user", "content": "last"}], "tags": []},
]
"""Conversations with what tables make hard: missing columns, missing fields, line breaks, empty lists."""


def read(folder: Path, content: bytes, name: str = "set.jsonl") -> list[Row | BadRow]:
    """Reads bytes as a file."""
    (folder / name).write_bytes(content)
    return list(rows(name, folder))


def data(got: list[Row | BadRow]) -> list[dict[str, Any]]:
    """What good rows hold; a bad one fails the test with its reason."""
    bad = [row for row in got if isinstance(row, BadRow)]
    assert not bad, bad[0]
    return [row.data for row in got if isinstance(row, Row)]


def until_error(folder: Path, content: bytes, name: str = "set.jsonl") -> tuple[list[Row | BadRow], str]:
    """Reads a file that breaks: what came before, and the error."""
    (folder / name).write_bytes(content)
    got: list[Row | BadRow] = []  # extend keeps what a failing iterator gave before it failed
    with pytest.raises(UsageError) as caught:
        got.extend(rows(name, folder))
    return got, str(caught.value)
