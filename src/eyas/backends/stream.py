"""The body of a chat completion, streamed or whole, taken in as it comes: text, pieces, usage, errors.

Source of the wire: https://openrouter.ai/docs/api-reference/streaming and recorded exchanges (tests/data/recorded).
"""

from __future__ import annotations

from typing import Any

import msgspec

from eyas.backends import errors as wire_errors
from eyas.backends.chunk import Choice, Chunk, Detail, TextChunk, Tool, decode, token_bytes, usage_of
from eyas.backends.events import DONE, Events
from eyas.backends.texts import Call, Text, Texts, texts
from eyas.types import Billed, Completion, DraftText, Failure, FailureKind, Finish, Outcome, Pieces, ToolCall, Usage

MOST_WAITING = 16 * 1024
"""Bytes of events that may wait to be decoded together."""

TAIL = 64
"""Bytes at the end of what came in which the end of a stream is looked for at once."""


class Stream:
    """Takes the bytes of one response with status 200 and says what came of it. No I/O, no clock."""

    def __init__(self) -> None:
        self.generation_id = ""
        self.provider = ""
        self.model = ""
        self.finish: str | None = None
        self.native_finish: str | None = None
        self.usage: Usage | None = None
        self.error: Any = None
        self.done = False
        self._tokens = 0
        self._waiting: list[bytes] = []
        self._size = self._guess = 0
        self._between = self._plain = True
        self._events = Events()
        self._garbage = ""
        self._reasoning = Text()
        self._content = Text()
        self._calls: dict[int, Call] = {}
        self._drafted = 0
        self._listed: list[bytes] | None = []
        self._ids: list[int] = []
        self._prompt_ids: list[int] | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere. Whole events of a stream that has begun may wait to be decoded together."""
        self._waiting.append(data)
        self._size += len(data)
        whole = data.endswith(b"\n\n")
        if (
            whole
            and self._between
            and self._tokens
            and self._plain
            and self._size < MOST_WAITING
            and b"[DONE]" not in data[-TAIL:]
        ):
            self._guess += data.count(b"\n") // 2
        else:
            self._decode()
            self._between = whole

    def _decode(self) -> None:
        """Take what waits."""
        data = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
        self._waiting.clear()
        self._size = self._guess = 0
        self._take_bytes(data)
        self._garbage = self._garbage or self._events.garbage

    def _take_bytes(self, data: bytes) -> None:
        if self._tokens and self._plain and self._events.between:
            came = texts(data)
            if came is not None:
                self._take_texts(came)
                return
            middle = data.find(b"\n\n", len(data) // 2) + 2
            if 2 < middle < len(data):  # one of them is more than text: find it
                self._take_bytes(data[:middle])
                self._take_bytes(data[middle:])
                return
        for event in self._events.feed(data):
            self._event(event)

    def _take_texts(self, came: Texts) -> None:
        for text, pieces in ((self._reasoning, came.reasoning), (self._content, came.content)):
            if pieces:
                text.add(pieces)
                self._tokens += len(pieces)
        self._ids += came.ids
        if not (self.generation_id and self.provider and self.model):
            for chunk in came.chunks:
                self._name(chunk)

    def end(self) -> None:
        """No more bytes will come."""
        self._decode()
        for event in self._events.end():
            self._event(event)
        self._garbage = self._garbage or self._events.garbage
        body = self._events.body()
        if body:
            self._take(body, whole=True)
            self.done = self.error is None and not self._garbage

    def _event(self, data: bytes) -> None:
        if data.strip() == DONE:
            self.done = True
        else:
            self._take(data, whole=False)

    def _take(self, data: bytes, *, whole: bool) -> None:
        try:
            chunk = decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, ArithmeticError) as error:
            self._garbage = self._garbage or f"not a chat completion ({error}): {data[:200]!r}"
            return
        self._name(chunk)
        if chunk.error is not None:
            self.error = chunk.error
        if chunk.usage is not None:
            self.usage = usage_of(chunk.usage)
        self._prompt_ids = chunk.prompt_token_ids or self._prompt_ids
        for choice in chunk.choices or ():
            self._choice(choice, whole=whole)

    def _name(self, chunk: Chunk | TextChunk) -> None:
        self.generation_id = self.generation_id or chunk.id or ""
        self.provider = self.provider or chunk.provider or ""
        self.model = self.model or chunk.model or ""

    def _choice(self, choice: Choice, *, whole: bool) -> None:
        if choice.error is not None:
            self.error = choice.error
        if choice.finish_reason is not None:
            self.finish = choice.finish_reason
            self.native_finish = choice.native_finish_reason
        if choice.logprobs:
            self._list(choice.logprobs)
        if choice.token_ids:
            self._ids += choice.token_ids
        self._prompt_ids = choice.prompt_token_ids or self._prompt_ids
        delta = choice.message if whole and choice.message is not None else choice.delta
        if delta is None:
            return
        reasoning = delta.reasoning or delta.reasoning_content or _joined(delta.reasoning_details)
        if reasoning:
            self._reasoning.add([reasoning])
            self._tokens += 1
        if delta.content:
            self._content.add([delta.content])
            self._tokens += 1
        for position, tool in enumerate(delta.tool_calls or ()):
            self._tool(tool, position)

    def _list(self, logprobs: msgspec.Raw) -> None:
        """Take a list of logprobs; one that cannot be read makes all of them useless."""
        found = token_bytes(logprobs)
        self._plain = self._plain and found == []
        if found is None:
            self._listed = None
        elif self._listed is not None:
            self._listed += found

    def _tool(self, tool: Tool, position: int) -> None:
        self._plain = False
        call = self._calls.setdefault(tool.index if tool.index is not None else position, Call())
        self._tokens += call.take(tool)

    @property
    def tokens(self) -> int:
        """Pieces of text that came: exact after a draft and at the end, between them each event that waits counts as one."""
        return self._tokens + self._guess

    @property
    def started(self) -> bool:
        """Whether any text came."""
        return bool(self._tokens or self._calls)

    def draft(self) -> DraftText | None:
        """What came since the last draft; None if nothing did."""
        self._decode()
        calls, self._drafted = self._drafted, sum(len(call.pieces) for call in self._calls.values())
        (reasoning, thought), (content, said) = self._reasoning.draft(), self._content.draft()
        if not thought and not said and calls == self._drafted:
            return None
        pieces = Pieces(thought, said, self._argument_pieces())
        return DraftText(reasoning, content, self._tool_calls(), pieces, self.provider)

    def outcome(self, broken: str | None = None) -> Outcome:
        """What came of it; `broken` says why the connection did not end cleanly. Call `end` before."""
        failure = self._failure(broken)
        if failure is not None and not self.started:
            return failure
        if self.usage is not None and self.usage.completion_tokens == 0 and not self.started:
            return self._fail(FailureKind.EMPTY, Billed.NO, "an answer without a token")
        return Completion(
            reasoning="".join(self._reasoning.parts),
            content="".join(self._content.parts),
            tool_calls=self._tool_calls(),
            finish=_finish(self.finish),
            usage=self.usage,
            provider=self.provider,
            model=self.model,
            generation_id=self.generation_id,
            pieces=Pieces(tuple(self._reasoning.lengths), tuple(self._content.lengths), self._argument_pieces())
            if self._events.count
            else None,
            cut=failure,
            token_ids=tuple(self._ids) or None,
            prompt_ids=None if self._prompt_ids is None else tuple(self._prompt_ids),
            token_bytes=tuple(self._listed) if self._listed else None,
            extra=self._extra(),
        )

    def _failure(self, broken: str | None) -> Failure | None:
        if self.error is not None or self.finish == "error":
            return self._error()
        if self.finish is not None:
            return None if self.started else self._empty()
        if self._garbage and not broken:
            broken = self._garbage
        if self.started:
            return self._fail(FailureKind.CUT, Billed.UNKNOWN, broken or "the stream ended without a finish_reason")
        if self.done and self.usage is None and not broken:
            return self._fail(FailureKind.EMPTY, Billed.NO, "a body without an answer")
        if self.usage is not None:
            return self._empty()
        return self._fail(FailureKind.LOST, Billed.UNKNOWN, broken or "the stream ended before a token")

    def _error(self) -> Failure:
        failure = wire_errors.from_error(self.error, 200, {})
        if self.started:
            return self._fail(FailureKind.CUT, Billed.YES if self.usage else Billed.UNKNOWN, failure.detail)
        return msgspec.structs.replace(
            failure, usage=self.usage, generation_id=self.generation_id, provider=self.provider or failure.provider
        )

    def _empty(self) -> Failure:
        billed = Billed.UNKNOWN  # without usage nothing says that it sampled nothing
        if self.usage is not None:
            billed = Billed.YES if self.usage.completion_tokens > 0 or self.usage.cost else Billed.NO
        return self._fail(FailureKind.EMPTY, billed, f"finish_reason {self.finish!r} without any text")

    def _fail(self, kind: FailureKind, billed: Billed, detail: str) -> Failure:
        return Failure(kind, billed, detail, usage=self.usage, generation_id=self.generation_id, provider=self.provider)

    def _tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(ToolCall(call.id, call.name, "".join(call.arguments)) for _, call in sorted(self._calls.items()))

    def _argument_pieces(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(call.pieces) for _, call in sorted(self._calls.items()))

    def _extra(self) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        if self.native_finish and self.native_finish != self.finish:
            extra["native_finish_reason"] = self.native_finish
        if self._events.count and not self.done:
            extra["no_done"] = True
        if self._garbage:
            extra["garbage"] = self._garbage
        return extra


def _joined(details: list[Detail] | None) -> str:
    return "".join(detail.text or "" for detail in details) if details else ""


def _finish(reason: str | None) -> Finish | None:
    if reason is None:
        return None
    try:
        return Finish(reason)
    except ValueError:
        return Finish.OTHER
