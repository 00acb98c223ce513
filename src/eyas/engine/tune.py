"""`eyas tune`: a small file in the run directory says what to change, the running session looks for it and answers.

The command writes a request, durable for nobody: it is for the process that holds the run's lock, named in it by its pid. The
session claims it by renaming it, so that a command that gave up can take it back for sure, and leaves its answer in a file
of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from eyas.engine.choice import Choice
from eyas.engine.settle import Books
from eyas.engine.wish import Standing, Wish, judge
from eyas.errors import StorageError, UsageError
from eyas.events import Tuned
from eyas.lock import is_locked, owner

LOOK = 1.0
"""Seconds between two looks of a session."""

PATIENCE = 5.0
"""Seconds that the command waits for the session to take its request."""

_POLL = 0.1
_REQUEST, _TAKEN, _ANSWER = "tune.json", "tune.taken.json", "tune.answer.json"
_MOST_BYTES = 100_000

T = TypeVar("T")


class Asked(msgspec.Struct, frozen=True):
    """A request: to the process of that id."""

    id: str
    pid: int
    wish: Wish


class Told(msgspec.Struct, frozen=True):
    """The answer to a request: what changed, in sentences, or why nothing did."""

    id: str
    said: tuple[str, ...] = ()
    refused: str = ""


def _silent(_: str) -> None:
    """Nobody listens."""


def open_files() -> int | None:
    """Files that this process may have open; None: any number."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


@dataclass(slots=True)
class Tuner:
    """The session's side. `say` hears what changed."""

    books: Books
    choice: Choice
    say: Callable[[str], None] = _silent
    files: Callable[[], int | None] = open_files
    _next: float = 0.0

    def look(self, now: float) -> None:
        """Take a request up if there is one; looks once a second, `now` is monotonic seconds."""
        if now < self._next:
            return
        self._next = now + LOOK
        folder = self.books.setting.config.dir
        asked = _claimed(folder)
        if asked is None:
            return
        try:
            told = Told(asked.id, said=self.apply(asked.wish))
        except UsageError as error:
            told = Told(asked.id, refused=str(error))
        with contextlib.suppress(OSError):  # a full disk ends the run by its journal, and in order
            _write(folder / _ANSWER, msgspec.json.encode(told))

    def apply(self, wish: Wish) -> tuple[str, ...]:
        """Change the session, and note it in the journal; gives what changed.

        Raises:
            UsageError: it cannot be; nothing was changed.
        """
        books, choice = self.books, self.choice
        aside = {r.tag: books.pace.window(r.tag).aside for r in choice.routes if books.pace.window(r.tag).aside}
        standing = Standing(books.pace.most, self.files(), choice.routes, frozenset(choice.dropped), aside)
        change = judge(wish, standing)
        if change.in_flight != books.pace.most:
            books.pace.resize(change.in_flight)
        choice.dropped = set(change.dropped)
        books.emit(Tuned(at=books.world.wall(), changes=change.said))
        for sentence in change.said:
            self.say(f"tuned: {sentence}")
        return change.said


async def ask(folder: Path, wish: Wish, patience: float = PATIENCE) -> tuple[str, ...]:
    """Have the session that runs in `folder` change; gives what changed, in sentences.

    Raises:
        UsageError: nothing runs there, or it refused, or it did not take the request within `patience` seconds.
        StorageError: the request cannot be written.
    """
    pid = owner(folder) if is_locked(folder) else None
    if pid is None:
        raise UsageError(f"nothing runs in {folder}: change RUN.toml instead, `eyas run` goes by it from its start")
    asked = Asked(secrets.token_hex(8), pid, wish)
    _send(folder, asked)
    told = await _answer(folder, asked.id, patience)
    if told is None and _withdrawn(folder):
        why = "it is not ready yet, or busy" if is_locked(folder) else "it has just ended"
        raise UsageError(
            f"the run in {folder} did not take the change within {patience:g} s ({why}): nothing changed; try again, or see "
            f"`eyas status {folder}`"
        )
    told = told or await _answer(folder, asked.id, patience)
    if told is None:
        raise UsageError(
            f"the run in {folder} took the change and ended before it said what came of it: see `eyas status {folder}`"
        )
    if told.refused:
        raise UsageError(f"nothing changed: {told.refused}")
    return told.said


async def _answer(folder: Path, number: str, patience: float) -> Told | None:
    """The answer to that request, if it comes in time."""
    for _ in range(max(1, round(patience / _POLL))):
        await asyncio.sleep(_POLL)
        told = _read(folder / _ANSWER, Told)
        if told is not None and told.id == number:
            with contextlib.suppress(OSError):
                (folder / _ANSWER).unlink()
            return told
    return None


def _send(folder: Path, asked: Asked) -> None:
    """Put a request where the session looks for it; one that was left for another process gives way."""
    standing = _read(folder / _REQUEST, Asked)
    if standing is not None and standing.pid == asked.pid:
        raise UsageError("another `eyas tune` waits for this run: try again in a few seconds")
    try:
        _write(folder / _REQUEST, msgspec.json.encode(asked))
    except OSError as error:
        raise StorageError(f"{folder / _REQUEST} cannot be written ({error.strerror}): free some space") from error


def _withdrawn(folder: Path) -> bool:
    """Whether the request could be taken back: then the session never saw it."""
    try:
        (folder / _REQUEST).unlink()
    except FileNotFoundError:
        return False
    return True


def _claimed(folder: Path) -> Asked | None:
    """The request that waits for this process, taken out of the folder."""
    asked = _read(folder / _REQUEST, Asked)
    if asked is None or asked.pid != os.getpid():
        return None
    try:
        (folder / _REQUEST).replace(folder / _TAKEN)
        (folder / _TAKEN).unlink()
    except FileNotFoundError:
        return None  # who asked gave up
    return asked


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, and for its owner's eyes only."""
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    draft.replace(path)


def _read(path: Path, kind: type[T]) -> T | None:
    """What a file of ours holds; None where there is none, or what is no such thing."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=kind)
    except (OSError, msgspec.DecodeError):
        return None
