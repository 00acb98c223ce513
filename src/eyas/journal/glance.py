"""A first look into a journal for completion on TAB: a few names out of a bounded number of events, in milliseconds."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eyas.journal.database import NAME, connect

MOST = 50
"""Names that are given."""
LOOKED_AT = 50_000
"""Events that are looked at: the first for prompts, the last for providers."""
_FIRST = "SELECT data FROM events WHERE seq <= ? AND data LIKE ? AND data LIKE ?"
_LAST = "SELECT data FROM (SELECT seq, data FROM events ORDER BY seq DESC LIMIT ?) WHERE data LIKE ? AND data LIKE ?"


def prompts(folder: Path, start: str = "") -> list[str]:
    """Ids of prompts, DATASET/PROMPTID16, that begin so; at most 50, of a large run those of its first events only."""
    _, slash, rest = start.partition("/")
    # What a pattern of SQLite might take for a sign of its own is left to the comparison below.
    clue = rest.partition("/")[0] if slash and rest.partition("/")[0].isalnum() else ""
    found: list[str] = []
    for event in _events(folder, _FIRST, "prompt", f'%"prompt_id":"{clue}%'):
        key = f"{event['dataset']}/{event['prompt_id']}"
        if key.startswith(start) or (slash and start.startswith(f"{key}/")):
            found.append(key)
        if len(found) == MOST:
            break
    return sorted(found)


def tags(folder: Path) -> list[str]:
    """Tags of endpoints that were asked lately."""
    return sorted({str(event["tag"]) for event in _events(folder, _LAST, "intent", "%")})[:MOST]


def providers(folder: Path) -> list[str]:
    """Providers that answered lately, as they name themselves."""
    named = _events(folder, _LAST, "settled", '%"provider":"%')
    return sorted({str(event["provider"]) for event in named if event.get("provider")})[:MOST]


def _events(folder: Path, query: str, kind: str, clue: str) -> Iterator[dict[str, Any]]:
    """Events of a kind; none where there is no journal that can be read: a completion says nothing of it."""
    path = folder / NAME
    if not path.is_file():
        return
    with contextlib.suppress(sqlite3.Error):
        db = connect(f"file:{quote(str(path))}?mode=ro", ("busy_timeout=50",))
        with contextlib.closing(db):
            for (data,) in db.execute(query, (LOOKED_AT, f'{{"e":"{kind}",%', clue)):
                yield json.loads(data)
