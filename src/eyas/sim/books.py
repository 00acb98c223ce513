"""The simulator's own books: for every generation what was sampled, sent and billed, to check a client against."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Any, Literal

import msgspec

from eyas.sim.billing import Counts, dollars
from eyas.sim.text import Part

Status = Literal["open", "full", "cut", "cancelled", "error"]
"""`full`: played to its clean end; `cut`: a fault ended it; `cancelled`: the client went away; `error`: said so."""

SAMPLE_SECONDS = 0.25


class Entry(msgspec.Struct, kw_only=True):
    """One generation.

    Attributes:
        prompt_key: sha256 of the canonical JSON of [messages, tools].
        body_sha256: of the request's exact body.
        parts: what was sampled, by channel, special tokens included; shorter than the answer it might have been.
        sent: tokens whose text reached the player; `produced`: tokens that the provider ran and counts.
        counts: as billed; `counts.cost` is nano-dollars.
        accepted, ended: seconds of the world's clock; `ended` may lie ahead when a provider runs on alone.
        latency: seconds to the first token.
        source: the generation that the response cache repeated.
        fault: the fault that befell it.
    """

    id: str
    key: str
    prompt_key: str
    body_sha256: str
    provider: str
    tag: str
    accepted: float
    stream: bool
    thinking: bool
    finish: str | None
    parts: tuple[Part, ...]
    canonical: bool
    drifted: bool
    total: int
    status: Status = "open"
    sent: int = 0
    produced: int = 0
    counts: Counts = Counts()
    ended: float | None = None
    latency: float = 0.0
    source: str | None = None
    fault: str | None = None

    def ids(self, channel: str | None = None) -> list[int]:
        """Sampled ids of one channel, or the whole raw form."""
        ids = array("i")
        for part in self.parts:
            if channel is None or part.channel == channel:
                ids += part.ids
        return ids.tolist()


class Books:
    """Generations and counters of a world."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.statuses: Counter[int] = Counter()
        self.faults: Counter[str] = Counter()
        self.in_flight = 0
        self.peak = 0
        self.samples: list[tuple[float, int]] = []

    @property
    def billed(self) -> int:
        """Nano-dollars billed in all."""
        return sum(entry.counts.cost for entry in self.entries.values())

    def arrive(self, at: float) -> None:
        """A chat request came in."""
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        self._sample(at)

    def leave(self, at: float) -> None:
        """A chat request ended, one way or another."""
        self.in_flight -= 1
        self._sample(at)

    def _sample(self, at: float) -> None:
        if not self.samples or at - self.samples[-1][0] >= SAMPLE_SECONDS:
            self.samples.append((at, self.in_flight))

    def state(self) -> dict[str, Any]:
        """Counters without the generations, ready for JSON; `samples` are (seconds, in flight) pairs."""
        ended = Counter(entry.status for entry in self.entries.values())
        return {
            "in_flight": self.in_flight,
            "peak": self.peak,
            "requests": sum(self.statuses.values()),
            "statuses": {str(status): number for status, number in sorted(self.statuses.items())},
            "faults": dict(sorted(self.faults.items())),
            "generations": len(self.entries),
            "by_status": dict(sorted(ended.items())),
            "billed_nano": self.billed,
            "billed_usd": float(dollars(self.billed)),
            "samples": self.samples,
        }

    def to_json(self, *, ids: bool) -> dict[str, Any]:
        """State and all generations, ready for JSON."""
        return {"schema": 1, **self.state(), "entries": [_row(entry, ids=ids) for entry in self.entries.values()]}


def _row(entry: Entry, *, ids: bool) -> dict[str, Any]:
    plain = ("id", "prompt_key", "body_sha256", "provider", "tag", "accepted", "ended", "stream", "thinking", "finish",
             "canonical", "drifted", "total", "status", "sent", "produced", "source", "fault")  # fmt: skip
    row: dict[str, Any] = {name: getattr(entry, name) for name in plain}
    row |= {
        "prompt_tokens": entry.counts.prompt,
        "completion_tokens": entry.counts.completion,
        "reasoning_tokens": entry.counts.reasoning,
        "billed_nano": entry.counts.cost,
    }
    if ids:
        row |= {"ids": entry.ids(), "reasoning_ids": entry.ids("reasoning"), "content_ids": entry.ids("content"),
                "parts": [[part.channel, part.ids.tolist()] for part in entry.parts]}  # fmt: skip
    return row
