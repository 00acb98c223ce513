"""What the world answers: a status and timed steps, playable by a server or on a virtual clock (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum

import msgspec


class Action(Enum):
    """What a step does, if it does not send bytes."""

    END = "end"
    RESET = "reset"
    HANG = "hang"
    WAIT = "wait"


Step = tuple[float, bytes | Action]
"""Seconds since the step before, and what to do then."""


class Reply:
    """One answer to play.

    A player waits `wait` seconds, sends status and headers (status 0: resets the connection and sends nothing), then
    plays the steps, each its seconds after the time that the one before was due. END closes the body cleanly, RESET cuts
    the connection, HANG sends nothing more, WAIT nothing until `wake` is called; so does a `wait` without end. After END or
    RESET it calls `delivered`; when the client goes away first, at once `cancelled`. It pulls a step only when the one
    before was played, so that the world knows how far it got.

    Attributes:
        length: bytes of the body if it is one piece, for Content-Length.
        generation_id: of a generation that this reply belongs to.
    """

    __slots__ = ("_close", "_wake", "generation_id", "headers", "length", "status", "steps", "wait")

    def __init__(
        self,
        status: int,
        steps: Iterator[Step],
        *,
        headers: Mapping[str, str] | None = None,
        wait: float = 0.0,
        length: int | None = None,
    ) -> None:
        self.status = status
        self.steps = steps
        self.headers = dict(headers or {})
        self.wait = wait
        self.length = length
        self.generation_id: str | None = None
        self._close: Callable[[bool], None] | None = None
        self._wake: Callable[[float], None] | None = None

    def on_close(self, close: Callable[[bool], None]) -> None:
        """Have the world told once how it ended: True if all was played."""
        self._close = close

    def on_wake(self, wake: Callable[[float], None]) -> None:
        """Have the player told when a WAIT is over, and after how many seconds it goes on."""
        self._wake = wake

    def wake(self, after: float = 0.0) -> None:
        """What the reply waits for is there: the player goes on after so many seconds."""
        if self._wake is not None:
            self._wake(after)

    def delivered(self) -> None:
        """All steps were played."""
        self._end(played=True)

    def cancelled(self) -> None:
        """The client went away before the end."""
        self._end(played=False)

    def _end(self, *, played: bool) -> None:
        close, self._close = self._close, None
        if close is not None:
            close(played)


def body(status: int, data: bytes, *, wait: float = 0.0, headers: Mapping[str, str] | None = None) -> Reply:
    """A body in one piece; JSON unless the headers say otherwise."""
    kind = {"Content-Type": "application/json", **(headers or {})}
    return Reply(status, iter([(0.0, data), (0.0, Action.END)]), headers=kind, wait=wait, length=len(data))


def as_json(value: object, status: int = 200) -> Reply:
    """A JSON body."""
    return body(status, msgspec.json.encode(value))
