"""Provisional labels while the run goes on, in a thread beside the loop; export computes them anew from all answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from eyas.events import Labelled
from eyas.families import Loaded
from eyas.tokens import Evidence, Habits, evidence, habit_key, label, learn
from eyas.types import Label, Record

KEPT = 50
"""The first answers of each provider are labelled again at the end: its habits were not known when they came."""
BATCH = 64


@dataclass(slots=True)
class Labels:
    """Takes durable answers, labels them in batches and emits the labels."""

    tokens: Loaded
    thinking: Callable[[str], bool]
    emit: Callable[[Labelled], Awaitable[None]]
    wall: Callable[[], float]
    now_known: Callable[[Record], Record]
    _waiting: list[Record] = field(default_factory=list[Record])
    _evidence: list[Evidence] = field(default_factory=list[Evidence])
    _habits: dict[str, Habits] = field(default_factory=dict[str, Habits])
    _early: list[Record] = field(default_factory=list[Record])
    _seen: Counter[str] = field(default_factory=Counter[str])
    _given: dict[int, Label] = field(default_factory=dict[int, Label])
    _more: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False

    def add(self, record: Record) -> None:
        """A durable answer."""
        self._waiting.append(record)
        self._more.set()

    def close(self) -> None:
        """No more answers will come: `work` labels what waits, looks at the early ones again, and returns."""
        self._closing = True
        self._more.set()

    async def work(self) -> None:
        """Label until closed."""
        while self._waiting or not self._closing:
            if not self._waiting:
                self._more.clear()
                await self._more.wait()
                continue
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            await self._emit(await asyncio.to_thread(self._label, batch))
        await self._emit(await asyncio.to_thread(self._again, [self.now_known(record) for record in self._early]))

    def _label(self, batch: list[Record]) -> dict[int, Label]:
        for record in batch:
            thinking = self.thinking(record.work.dataset)
            key = habit_key(record.completion.provider, thinking=thinking)
            self._seen[key] += 1
            if self._seen[key] <= KEPT or not record.completion.provider:
                self._early.append(record)
            if self._seen[key] <= 20 * KEPT:
                found = evidence(record, self.tokens, thinking)
                if found is not None:
                    self._evidence.append(found)
        if self._evidence:
            self._habits = learn(self._evidence)
        return self._again(batch)

    def _again(self, records: Iterable[Record]) -> dict[int, Label]:
        return {r.attempt: label(r, self.tokens, self._habits, self.thinking(r.work.dataset)) for r in records}

    async def _emit(self, labels: dict[int, Label]) -> None:
        for attempt, found in labels.items():
            if self._given.get(attempt) is not found:
                self._given[attempt] = found
                await self.emit(Labelled(at=self.wall(), attempt=attempt, label=found))
