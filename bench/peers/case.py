"""What one table measures: the mode, how many in flight, the answers, and what a perfect client would need."""

from __future__ import annotations

import heapq
from dataclasses import asdict, dataclass
from typing import Any

_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Case:
    """One setting that all tools are measured in; seconds, bytes, pieces a second."""

    stream: bool
    tls: bool
    in_flight: int
    prompts: int
    latency_min: float
    latency_max: float
    size: int
    pieces: int
    rate: float
    ttft: float

    @property
    def name(self) -> str:
        """As results and tables call it."""
        how = (
            f"stream, {self.rate:g} pieces/s"
            if self.stream
            else f"whole, {self.latency_min:g} to {self.latency_max:g} s"
        )
        return f"{self.in_flight} in flight, {how}, {'TLS' if self.tls else 'plain'}, {self.prompts} prompts"

    @property
    def flags(self) -> dict[str, float]:
        """Flags of the load server."""
        kept = ("latency_min", "latency_max", "size", "pieces", "rate", "ttft")
        return {name: value for name, value in asdict(self).items() if name in kept}

    def latency(self, number: int) -> float:
        """Seconds that the server takes for the request of this number, from 1 on; as answers.c draws it."""
        if self.stream:
            return self.ttft + self.pieces / self.rate
        return self.latency_min + (_mixed(number) >> 11) / 2**53 * (self.latency_max - self.latency_min)

    def mean(self) -> float:
        """Mean seconds of an answer over all prompts."""
        return sum(map(self.latency, range(1, self.prompts + 1))) / self.prompts

    def ideal(self) -> float:
        """Seconds that a client would need that starts all at once, and sends the next request the moment one ends."""
        ends = [self.latency(n) for n in range(1, min(self.in_flight, self.prompts) + 1)]
        heapq.heapify(ends)
        for number in range(self.in_flight + 1, self.prompts + 1):
            heapq.heapreplace(ends, ends[0] + self.latency(number))
        return max(ends)

    def to_json(self) -> dict[str, Any]:
        """Its fields."""
        return asdict(self)


def _mixed(x: int) -> int:
    """splitmix64, as answers.c has it."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
