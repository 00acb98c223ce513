"""What is seen of a tool from outside: CPU and memory of its processes, and when its journal holds an answer."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
POLL = 0.01
"""Seconds between two looks at the journal: the resolution of its figure."""


@dataclass(frozen=True)
class Seen:
    """One look: CLOCK_MONOTONIC, CPU seconds and peak resident bytes of all processes of a session, requests so far."""

    clock: float
    cpu: float
    rss: int
    requests: int


def session(leader: int) -> tuple[float, int]:
    """(CPU seconds, sum of the peaks of resident bytes) of all processes of a session; CPU of its ended ones as well.

    Not ru_maxrss: that of a process that was just forked holds its parent's.
    """
    cpu, rss = 0, 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                cpu += sum(map(int, fields[11:15]))
                status = (entry / "status").read_text()
                rss += int(status.partition("VmHWM:")[2].split()[0]) if "VmHWM:" in status else 0
    return cpu / _TICK, rss * 1024


def busy() -> float:
    """CPU seconds that this machine has spent on anything, stolen ones included."""
    fields = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]))
    return (sum(fields[:3]) + sum(fields[5:8])) / _TICK


class JournalWatch:
    """Looks again and again which event is the last that another process can read: it is durable then."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._looks: list[tuple[float, int]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._path.exists():
            if self._ended.wait(0.05):
                return
        db = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, check_same_thread=False)
        last = 0
        while not self._ended.wait(POLL):
            with contextlib.suppress(sqlite3.OperationalError):  # its tables are not made yet
                top = db.execute("SELECT max(seq) FROM events").fetchone()[0] or 0
                if top > last:
                    self._looks.append((time.monotonic(), top))
                    last = top
        db.close()

    def stop(self, finished: Sequence[int]) -> list[float]:
        """Seconds from each answer's last byte, by the server's clock, to the look that first saw it in the journal."""
        self._ended.set()
        self._thread.join()
        if not self._looks:
            return []
        db = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)
        rows = db.execute("SELECT seq, data FROM events ORDER BY seq").fetchall()
        db.close()
        return sorted(delays(((seq, json.loads(data)) for seq, data in rows), self._looks, finished))


def delays(events, looks: Sequence[tuple[float, int]], finished: Sequence[int]) -> list[float]:
    """The same of (number, event) pairs; `looks` are (clock, last event seen), both rising."""
    ids: Mapping[int, str] = {}
    found, at = [], 0
    for seq, event in events:
        if event["e"] == "headers":
            ids[event["attempt"]] = event["generation_id"]
        if event["e"] != "settled" or event["attempt"] not in ids:
            continue
        number = int(ids[event["attempt"]].rpartition("-")[2])
        while at < len(looks) and looks[at][1] < seq:
            at += 1
        if at < len(looks) and number <= len(finished) and finished[number - 1]:
            found.append(looks[at][0] - finished[number - 1] / 1000)
    return found
