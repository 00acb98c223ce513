"""An answer that comes as token ids, streamed or whole: what SGLang, vLLM and llama.cpp give for prompts that are ids.

Nothing is kept of one that was cut: the engine is the user's, so it is asked again and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from eyas.backends import errors
from eyas.backends.events import DONE, Events
from eyas.types import Billed, Completion, Failure, FailureKind, Finish, Outcome, Usage

NO_IDS = "the server gave text without token ids: it is too old for that, or something between has left them out"


@dataclass(frozen=True, slots=True)
class Came:
    """What one event brings.

    Attributes:
        text, ids: what was sampled; `so_far`: since the beginning, else since the last event.
        finish: why it ended; empty while it goes on.
        stop: the id that ended it, where the engine names it.
        prompt_ids: the prompt as the engine took it, where it says so.
        error: an error in place of all that.
    """

    text: str = ""
    ids: tuple[int, ...] | list[int] = ()
    so_far: bool = False
    finish: str = ""
    stop: int | None = None
    usage: Usage | None = None
    prompt_ids: tuple[int, ...] | list[int] | None = None
    model: str = ""
    error: object = None


Decode = Callable[[bytes], Came]
"""An event's data, or a whole body; raises msgspec.DecodeError or UnicodeDecodeError where it is no such thing."""


@dataclass(slots=True)
class IdStream:
    """Takes the bytes of one response with status 200. `takes` reads one event of the engine's."""

    takes: Decode
    done: bool = False
    _events: Events = field(default_factory=Events)
    _texts: list[str] = field(default_factory=list[str])
    _ids: list[int] = field(default_factory=list[int])
    _last: Came = field(default_factory=Came)
    _usage: Usage | None = None
    _prompt_ids: tuple[int, ...] | None = None
    _model: str = ""
    _error: object = None
    _garbage: str = ""
    _repeats: bool = False

    @property
    def tokens(self) -> int:
        """Ids that came."""
        return len(self._ids)

    @property
    def started(self) -> bool:
        """Whether any came."""
        return bool(self._ids or self._texts)

    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        for event in self._events.feed(data):
            self._event(event)

    def end(self) -> None:
        """No more bytes will come."""
        for event in self._events.end():
            self._event(event)
        body = self._events.body()
        if body:
            self._take(body)
        self._garbage = self._garbage or self._events.garbage
        self.done = self.done or bool(self._last.finish)

    def draft(self) -> None:
        """Nothing is kept of a part."""
        return

    def outcome(self, broken: str | None = None) -> Outcome:
        """The answer, with its text as the engine gave it in `content`; or why there is none."""
        if self._error is not None:
            return msgspec.structs.replace(errors.from_error(self._error, 200, {}), billed=Billed.NO)
        if not self._last.finish:
            return _failed(FailureKind.LOST, broken or self._garbage or "the answer ended without a reason")
        if self._last.finish == "abort":
            return _failed(FailureKind.LOST, "the engine gave the answer up")
        if not self._ids:
            return _failed(FailureKind.EMPTY, NO_IDS if any(self._texts) else "an answer without a token")
        counted = self._usage.completion_tokens if self._usage else len(self._ids)
        if not len(self._ids) <= counted <= len(self._ids) + 1:  # a stop token may be left out
            return _failed(
                FailureKind.UPSTREAM, f"{len(self._ids)} token ids came of {counted} that the server counted"
            )
        return Completion(
            content="".join(self._texts),
            finish=_FINISH.get(self._last.finish, Finish.OTHER),
            usage=self._usage,
            model=self._model,
            token_ids=(*self._ids, *self._unlisted_stop()),
            prompt_ids=self._prompt_ids,
        )

    def _unlisted_stop(self) -> tuple[int, ...]:
        """The stop token, where the engine names it but left it out of the ids."""
        stop = self._last.stop
        return () if stop is None or self._ids[-1] == stop else (stop,)

    def _event(self, data: bytes) -> None:
        if data.strip() == DONE:
            self.done = True
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        try:
            came = self.takes(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._garbage = self._garbage or f"not what this engine answers ({error}): {data[:200]!r}"
            return
        self._error = came.error if self._error is None else self._error
        self._repeats |= came.so_far and bool(self._ids)
        if came.so_far or self._repeats:
            self._texts.clear()
            self._ids.clear()
        if came.text:
            self._texts.append(came.text)
        self._ids += came.ids
        if came.finish:
            self._last = came
        self._usage = came.usage or self._usage
        self._model = self._model or came.model
        if came.prompt_ids is not None:
            self._prompt_ids = tuple(came.prompt_ids)


_FINISH = {"stop": Finish.STOP, "length": Finish.LENGTH, "tool_calls": Finish.TOOL_CALLS}


def _failed(kind: FailureKind, detail: str) -> Failure:
    return Failure(kind, Billed.NO, detail)
