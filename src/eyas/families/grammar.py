"""What a model samples for an answer: reasoning, its closing marker, content, tool calls, a stop token (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from eyas.families.base import Channel, Part
from eyas.families.said import Said, after_reasoning, plain
from eyas.types import Completion, Finish, ToolCall
from eyas.vocab import Vocab

Calls = Callable[[tuple[ToolCall, ...], bool], list[Part]]
"""Parts of tool calls. The flag says whether the answer ended: if not, the last call stays open."""

Marks = Mapping[str, Part]
"""The special ids of a tokenizer as parts, by spelling."""

_ENDED = (Finish.STOP, Finish.TOOL_CALLS)


@dataclass(frozen=True, slots=True)
class Grammar:
    """An answer of the form: opening, R, closing, C, tool calls, stop.

    Attributes:
        stop: what ends an answer.
        calls: the tool calls.
        closing: what ends the reasoning.
        opening: what the model samples before its reasoning; empty where the prompt gives it.
        calls_stop: what ends an answer with tool calls; None: the same as any.
    """

    stop: Part
    calls: Calls
    closing: Part | None = None
    opening: tuple[Part, ...] = ()
    calls_stop: Part | None = None

    def parts(self, completion: Completion, thinking: bool) -> tuple[Part, ...]:
        """What the model sampled; nothing is stripped or added.

        An answer without STOP or TOOL_CALLS ends where its text ends: markers after the last text are not known.
        """
        done = ended(completion)
        parts: list[Part] = []
        if thinking and self.closing is not None:
            said = bool(completion.content or completion.tool_calls)
            if done or said or completion.reasoning:
                parts += self.opening
            if completion.reasoning:
                parts.append(Part(completion.reasoning, Channel.REASONING))
            if done or said:
                parts.append(self.closing)
        if completion.content:
            parts.append(Part(completion.content, Channel.CONTENT))
        if completion.tool_calls:
            parts += self.calls(completion.tool_calls, done)
        if done:
            parts.append(self.calls_stop if self.calls_stop and calling(completion) else self.stop)
        return tuple(parts)

    @property
    def stops(self) -> tuple[Part, ...]:
        """All that may end an answer."""
        return (self.stop, self.calls_stop) if self.calls_stop else (self.stop,)

    def said(self, ids: Sequence[int], vocab: Vocab, thinking: bool) -> Said:
        """What sampled ids, without the stop token, say: the way back from `parts`."""
        closing = self.closing.token if thinking and self.closing else None
        opening = [number for part in self.opening for number in _ids(part, vocab)]
        reasoning, rest = after_reasoning(ids, closing, opening)
        return plain(rest, vocab, reasoning)


def _ids(part: Part, vocab: Vocab) -> list[int]:
    return vocab.encode(part.text) if part.token is None else [part.token]


def ended(completion: Completion) -> bool:
    """Whether the model sampled its stop token."""
    return completion.finish in _ENDED


def calling(completion: Completion) -> bool:
    """Whether an answer ends in tool calls."""
    return completion.finish is Finish.TOOL_CALLS or bool(completion.tool_calls)


def marks_of(vocab: Vocab) -> Marks:
    """The parts of all special ids."""
    return {name: Part(name, token=number) for name, number in vocab.specials.items()}


def form(text: str) -> Part:
    """Text that the model samples and no API delivers."""
    return Part(text, Channel.FORM)


def arguments(text: str) -> Part:
    """Text that comes from the arguments of a tool call."""
    return Part(text, Channel.ARGUMENTS)


def merged(parts: Iterable[Part]) -> list[Part]:
    """Parts with neighbouring texts joined, since a token may span both; arguments win over form."""
    found: list[Part] = []
    for part in parts:
        last = found[-1] if found else None
        if part.token is None and not part.text:
            continue
        if part.token is None and last is not None and last.token is None:
            both = {part.channel, last.channel}
            channel = Channel.ARGUMENTS if Channel.ARGUMENTS in both else last.channel
            found[-1] = Part(last.text + part.text, channel)
        else:
            found.append(part)
    return found
