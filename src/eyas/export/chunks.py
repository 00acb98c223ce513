"""What every pass over the answers does first: cut them into chunks, and learn the providers' habits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from eyas.export.pool import Crew
from eyas.export.work import Worker, sample
from eyas.records import Ref
from eyas.tokens import Habits, learn

T = TypeVar("T")


def learned(hands: Crew, refs: Sequence[Ref], size: int) -> dict[str, Habits]:
    """The providers' habits, from a sample of the answers, `size` of them a job."""
    return learn(item for found in hands.map(Worker.learn, batches(sample(refs), size)) for item in found)


def batches(items: Sequence[T], size: int) -> Iterator[tuple[T, ...]]:
    """The items in order, so many at a time."""
    for start in range(0, len(items), size):
        yield tuple(items[start : start + size])
