"""Workers as their coordinator sees them: where they run, and what is known of each beside the state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from eyas.engine.orders import Grant, Orders, Refusal, Report


class Fleet(Protocol):
    """Where workers run."""

    async def start(self, worker: int) -> str:
        """Start a worker; says on which node. Raises WorkerLost."""
        ...

    async def exchange(self, worker: int, orders: Orders) -> Report:
        """Give a worker orders and get its report. Raises WorkerLost where it cannot be spoken to."""
        ...

    async def end(self, worker: int) -> None:
        """End a worker that is not needed, or not heard of, any more; it may be gone already."""
        ...


@dataclass(slots=True)
class Hand:
    """What is known of a worker beside the state: grants that it has not taken, how far its journal was read, its last report."""

    grants: list[Grant] = field(default_factory=list[Grant])
    heard: int = 0
    report: Report = field(default_factory=Report)
    refusals: list[Refusal] = field(default_factory=list[Refusal])

    @property
    def waiting(self) -> int:
        """Works that wait there or are on their way to it."""
        return self.report.waiting + sum(len(grant.works) for grant in self.grants)

    @property
    def busy(self) -> bool:
        """Whether it has works and money for more than flies, by its last report."""
        report = self.report
        return bool(report.in_flight and report.waiting) and not (report.short or report.ended)

    @property
    def idle(self) -> bool:
        """Whether nothing flies there, and what waits cannot be paid."""
        return not self.report.in_flight and not self.grants and (not self.report.waiting or self.report.short)
