"""From what was counted to the figures of a table (pure)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from peers.case import Case
from peers.watch import Seen

RAMP = 300
"""New connections a second that eyas allows itself: 1.2 times this ramp is where the steady part begins at the latest."""


@dataclass(frozen=True)
class Trial:
    """One run of one tool. `error` is why there is none, `cut` the time limit in seconds that ended it (0: it ended itself).

    Figures: `rate` answers/s over the steady part, `share` of the ideal over it, `whole` ideal seconds of the whole run by
    the real ones, `cpu_ms` an answer, `cpu_us` a piece, `cpu_total` seconds from start to end, `rss_mb` and `peak` in
    flight at most, `answers` in the tool's output, `lost` by the server's count, `resent` requests beyond one a prompt,
    `journal_ms` p99 from the last byte to the journal; `late` is the share of pieces that the server itself wrote over
    20 ms late, `others` the CPU cores that other programs took meanwhile. None: not measured.
    """

    tool: str
    run: int
    error: str = ""
    cut: float = 0.0
    rate: float | None = None
    share: float | None = None
    whole: float | None = None
    cpu_ms: float | None = None
    cpu_us: float | None = None
    cpu_total: float | None = None
    rss_mb: float | None = None
    peak: int | None = None
    answers: int | None = None
    lost: int | None = None
    resent: int | None = None
    journal_ms: float | None = None
    late: float | None = None
    others: float | None = None
    load: float | None = None
    server_cpu: float | None = None
    exit: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the same command tries it again: it was not installed, or ended with an error of its own."""
        return self.error.startswith("cannot") or bool(self.exit and not self.cut)


def steady(
    stats: dict[str, Any], seen: Sequence[dict[str, Any]], case: Case
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """(first, last) count of the steady part: from the limit reached, or 1.2 times the ramp, until the last request was sent.

    None if that is shorter than an answer: the tool was hardly begun.
    """
    first, last = stats["full"], stats["last"]
    if first is None and stats["first"]:
        begin = stats["first"]["clock"] + 1.2 * case.in_flight / RAMP
        first = next((look for look in seen if look["clock"] >= begin), None)
    if first is None or last is None or last["clock"] - first["clock"] < case.mean():
        return None
    return first, last


def throughput(stats: dict[str, Any], seen: Sequence[dict[str, Any]], case: Case) -> tuple[float, float] | None:
    """(answers a second, share of the ideal) over the steady part.

    What is in flight works off one answer in its latency, so the rate is the mean number in flight by that latency; what
    an answer takes beyond its due end, because it is read too slowly, is no work. The ideal is the limit by the latency.
    A count of answers that ended would depend on where in their latencies the window begins.
    """
    window = steady(stats, seen, case)
    if window is None:
        return None
    first, last = window
    worked = (last["integral"] - last["overtime"]) - (first["integral"] - first["overtime"])
    flying = worked / (last["clock"] - first["clock"])
    return flying / case.mean(), flying / case.in_flight


def since_first(looks: Sequence[Seen], total: float) -> float:
    """CPU seconds from the first request on: without imports, without what is loaded and planned before."""
    before = [look.cpu for look in looks if look.requests == 0]
    return total - (before[-1] if before else 0.0)


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value below which that share lies; `values` rise. None of an empty list."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def spread(trials: Sequence[Trial], name: str) -> tuple[float, float, float] | None:
    """(median, least, most) of one figure over a tool's runs; None if none has it."""
    values = [value for trial in trials if (value := getattr(trial, name)) is not None]
    return (statistics.median(values), min(values), max(values)) if values else None
