"""What State is made of: how one attempt, one work, one dataset and one provider stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import msgspec

from eyas.events import AnyEvent, Intent, Settled
from eyas.ledger import Lease, Quota
from eyas.types import FailureKind, Prices, Verdict, Work

ANSWERED = (Verdict.DONE, Verdict.PARTIAL)
MOST_LOST = 3
"""Attempts at one work whose outcome did not come: after them it has failed, and only `eyas retry` asks again."""


class Attempt(msgspec.Struct, array_like=True):
    """One purchase. `cost` is None while it is in flight or unknown; `settled` tells the two apart.

    `dropped`: it brought an answer, but another one stands for its work, or its prompt was forgotten.
    """

    id: int
    work: Work
    number: int
    tag: str
    reserved: int
    mark: str = ""
    generation_id: str = ""
    settled: Settled | None = None
    cost: int | None = None
    counts: tuple[int, int, int | None] | None = None
    provider: str = ""
    written_off: bool = False
    dropped: bool = False

    @property
    def open(self) -> bool:
        """In flight, or left behind by a killed process."""
        return self.settled is None

    @property
    def unknown(self) -> bool:
        """Ended, but what it cost is not known."""
        return self.settled is not None and self.cost is None

    @property
    def answered(self) -> bool:
        """Its tokens count for its work."""
        return self.settled is not None and self.settled.verdict in ANSWERED and not self.dropped


class WorkState(msgspec.Struct, array_like=True):
    """One work: its last verdict (None: never ended) and the attempt that answered it.

    A work that the user has asked again is owed and keeps its answer until a better one comes; only `tokens` are 0
    meanwhile, so that a quota has room for the new one.

    `tries` counts attempts that failed for free, `numbers` all attempts, `lost` those whose outcome stayed unknown. Of a
    later turn `prompt_tokens` is our count of its prompt, and `detail` says why it was refused before it was sent.
    """

    verdict: Verdict | None = None
    kind: FailureKind | None = None
    tries: int = 0
    numbers: int = 0
    lost: int = 0
    answer: int | None = None
    tokens: int = 0
    prompt_tokens: int = 0
    detail: str = ""

    @property
    def owed(self) -> bool:
        """Whether it is still to be asked."""
        return self.verdict is None or self.verdict is Verdict.AGAIN


@dataclass(slots=True)
class DatasetState:
    """One dataset: prompts (id -> our token count), quota, and works by verdict.

    `turns` are the user's turns that come after a prompt (id -> how many; only where there are any). `gone` are prompts that left the sources: the works of theirs that had ended still count. `forgotten` are prompts that
    the user had removed for good: nothing of theirs counts but the money.
    """

    prompts: dict[str, int] = field(default_factory=dict[str, int])
    turns: dict[str, int] = field(default_factory=dict[str, int])
    gone: dict[str, int] = field(default_factory=dict[str, int])
    forgotten: set[str] = field(default_factory=set[str])
    samples: int = 1
    thinking: bool | None = None
    quota: Quota = field(default_factory=Quota)
    ended: dict[Verdict, int] = field(default_factory=dict[Verdict, int])
    cost: int = 0

    @property
    def works(self) -> int:
        """Answers owed in all, one a turn, ended or not; no fewer than have ended, should `samples` be lowered."""
        turns = len(self.prompts) + sum(self.turns.values())
        return max(turns * self.samples + sum(self.gone.values()), sum(self.ended.values()))


class Left(Enum):
    """Whether a worker still takes part: it does; its journal was read to the end; what it held was written off."""

    NOT = 0
    READ = 1
    WRITTEN_OFF = 2


@dataclass(slots=True)
class WorkerState:
    """One worker of a run over many machines.

    Attributes:
        node: where it runs.
        lease: what it may spend.
        works: conversations that it has (`Work.begun`), until they are at their end.
        attempts: our numbers of its attempts, in the order of its own, which begin with 1.
        grants, backs: how many there were.
        seq: the last event of its journal that was taken in; `at` is when that happened, or when it joined.
        cost: what its attempts cost, as far as that became known before it left.
    """

    node: str = ""
    lease: Lease = field(default_factory=Lease)
    works: set[Work] = field(default_factory=set[Work])
    attempts: list[int] = field(default_factory=list[int])
    grants: int = 0
    backs: int = 0
    seq: int = 0
    at: float = 0.0
    left: Left = Left.NOT
    answers: int = 0
    output_tokens: int = 0
    cost: int = 0

    def heard(self, event: AnyEvent) -> None:
        """Take in an event of its journal, so far as it is the worker's own."""
        self.seq, self.at = event.seq, event.at
        if isinstance(event, Intent):
            self.attempts.append(event.attempt)
        elif isinstance(event, Settled):
            self.answers += event.verdict in ANSWERED
            self.output_tokens += event.tokens


def better(new: Settled, old: Settled, *, usable: bool) -> bool:
    """Whether a new answer takes the place of one that was to be asked again.

    Any answer is better than one whose ids cannot be trained on (not `usable`). Else a whole answer always is, for the user
    asked for it; a cut one only if it is no shorter than the cut one before it.
    """
    if not usable or new.verdict is Verdict.DONE:
        return True
    return old.verdict is Verdict.PARTIAL and new.tokens >= old.tokens


@dataclass(slots=True)
class ProviderState:
    """What the endpoint asked under one tag did.

    `prices` are those of its last request. `judged` counts answers with a label, and attempts that cost something for
    nothing; `unjudged` is what answers cost (nano-dollars, part of `cost`) that have no label yet; `listed` is what those with a
    strict label cost by the prices, on our own counts of their prompts.
    """

    name: str = ""
    answers: int = 0
    output_tokens: int = 0
    cost: int = 0
    seconds: float = 0.0
    failures: dict[FailureKind, int] = field(default_factory=dict[FailureKind, int])
    prices: Prices | None = None
    judged: int = 0
    unjudged: int = 0
    listed: int = 0


def stand(
    dataset: DatasetState, work: WorkState, verdict: Verdict, kind: FailureKind | None = None, tokens: int = 0
) -> None:
    """Where a work stands from now on: the one place that counts works and their tokens."""
    if work.verdict is not None and not work.owed:
        dataset.ended[work.verdict] -= 1
    dataset.quota = dataset.quota.keep(tokens - work.tokens)
    work.verdict, work.kind, work.tokens = verdict, kind, tokens
    if not work.owed:
        dataset.ended[verdict] = dataset.ended.get(verdict, 0) + 1
