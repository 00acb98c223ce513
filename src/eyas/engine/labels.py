"""Provisional labels while the run goes on, in a thread beside the loop; export computes them anew from all answers.

With the labels go the habits learned of each provider, and word of a provider whose answers do not agree with its counts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from eyas.engine.quality import Concern, Quality
from eyas.events import Labelled, Learned
from eyas.families import Loaded
from eyas.tokens import Evidence, Habits, evidence, habit_key, label, learn
from eyas.types import Label, Record

LEARNED_EVERY = 30.0
"""Seconds between two notes of what was learned."""
KEPT = 50
"""The first answers of each provider are labelled again at the end: its habits were not known when they came."""
GAIN = 1.1
"""Habits are learned anew when there is so many times the evidence that they were learned from: learning reads all of it."""
BATCH = 16
"""Answers labelled in one go: while the thread counts, the loop gets little done."""


@dataclass(slots=True)
class Labels:
    """Takes durable answers, labels them in batches and emits the labels; `concern` hears of providers."""

    tokens: Loaded
    thinking: Callable[[str], bool]
    emit: Callable[[Labelled | Learned], Awaitable[None]]
    wall: Callable[[], float]
    now_known: Callable[[Record], Record]
    quality: Quality
    concern: Callable[[Concern], None]
    _waiting: list[Record] = field(default_factory=list[Record])
    _evidence: list[Evidence] = field(default_factory=list[Evidence])
    _learned_from: int = 0
    _habits: dict[str, Habits] = field(default_factory=dict[str, Habits])
    _early: list[Record] = field(default_factory=list[Record])
    _seen: Counter[str] = field(default_factory=Counter[str])
    _given: dict[int, Label] = field(default_factory=dict[int, Label])
    _more: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False
    _noted: dict[str, Habits] = field(default_factory=dict[str, Habits])
    _noted_at: float = 0.0

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
            await self._emit(batch, await asyncio.to_thread(self._label, batch))
            await self._judge()
        await asyncio.to_thread(self._learn)
        await self._label_early()
        await self._note(every=0.0)

    async def _judge(self) -> None:
        """Pass on concerns. What was labelled before its provider was known is labelled again before that."""
        if self.quality.concerned(self._habits):
            await self._label_early()
            for concern in self.quality.concerns(self._habits):
                self.concern(concern)
        await self._note(every=LEARNED_EVERY)

    async def _label_early(self) -> None:
        early = [self.now_known(record) for record in self._early]
        await self._emit(early, await asyncio.to_thread(self._again, early))

    async def _note(self, every: float) -> None:
        """Emit the habits, if there are new ones and the last note is so many seconds old."""
        if self._habits == self._noted or self.wall() - self._noted_at < every:
            return
        self._noted, self._noted_at = self._habits, self.wall()
        await self.emit(Learned(at=self.wall(), habits=msgspec.to_builtins(self._habits)))

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
        if len(self._evidence) > GAIN * self._learned_from:
            self._learn()
        return self._again(batch)

    def _learn(self) -> None:
        if len(self._evidence) > self._learned_from:
            self._habits, self._learned_from = learn(self._evidence), len(self._evidence)

    def _again(self, records: Iterable[Record]) -> dict[int, Label]:
        return {r.attempt: label(r, self.tokens, self._habits, self.thinking(r.work.dataset)) for r in records}

    async def _emit(self, records: list[Record], labels: dict[int, Label]) -> None:
        durable: Awaitable[None] | None = None
        for record in records:
            found, before = labels[record.attempt], self._given.get(record.attempt)
            if before is not found:
                self._given[record.attempt] = found
                self.quality.count(record.completion.provider, found, before)
                durable = self.emit(Labelled(at=self.wall(), attempt=record.attempt, label=found))
        if durable is not None:
            await durable  # what was written before it is durable too
