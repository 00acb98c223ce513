"""Conversations for whole runs on the virtual clock: their prompts, and the journal in memory as a session reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from eyas.events import AnyEvent
from eyas.records import Run
from eyas.state import State
from eyas.types import DraftText, Prompt
from tests.virtual import MemoryLog


def prompts(count: int, turns: int) -> tuple[Prompt, ...]:
    """So many prompts in each of datasets A and B; number n is followed by n modulo `turns` + 1 turns of the user."""
    return tuple(
        Prompt(
            f"{number:016x}",
            name,
            ({"role": "user", "content": f"{name}: say {number}"},),
            turns=tuple(f"And {number + turn}?" for turn in range(number % (turns + 1))),
        )
        for number in range(count)
        for name in "AB"
    )


class MemoryStore:
    """A journal in memory as a `Run` reads it."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def events(self, after: int = 0) -> list[tuple[int, AnyEvent]]:
        """The events after that number, with their numbers."""
        return list(enumerate(self._log.events[after:], after + 1))

    def checkpoint(self) -> Iterator[bytes]:
        """There is none."""
        return iter(())

    def payload(self, seq: int) -> bytes:
        """The text of an event."""
        return self._log.payloads[seq]

    def drafts(self, attempt: int) -> list[DraftText]:
        """What is durable of an answer that never settled."""
        return self._log.safe.get(attempt, [])


def opened(log: MemoryLog, state: State) -> Run:
    """The journal, opened for reading beside a state that is its fold; labels play no part."""
    run = Run(Path("/nowhere"), MemoryStore(log))
    run.state = state
    run.records_without_label = list
    return run


async def at_once(count: Callable[[], int]) -> int:
    """Count in the loop: a thread has no part in virtual time."""
    return count()
