"""Named repairs: what a server is known to change in an answer, undone one at a time (pure).

A repair is only a proposal. An answer is repaired if exactly one of them makes every count agree; the tokens that the
repair put in or that stand beside it are masked, since a count does not say which whitespace was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from eyas.families import Channel, Part
from eyas.tokens.habits import End, Habits
from eyas.tokens.prompt import compact, redump, spaced
from eyas.types import Completion, Pieces

_WHITESPACE = ("\n\n", "\n")
"""What models put at the ends of a text as a token of its own; the commoner first."""

_PLACES = {
    End.REASONING_START: "the start of the reasoning",
    End.REASONING_END: "the end of the reasoning",
    End.CONTENT_START: "the start of the content",
    End.CONTENT_END: "the end of the content",
}


class Repair(msgspec.Struct, frozen=True):
    """An answer as it may have been sampled.

    Attributes:
        name: what was changed; repairs of one name are ways of the same repair, the likeliest first.
        completion: the answer, changed.
        ends: ends whose first or last tokens are not sure by it.
        arguments: whether its tool arguments are not sure.
        unclosed: the model called a tool without closing its reasoning, so its raw form has no closing marker.
    """

    name: str
    completion: Completion
    ends: frozenset[End] = frozenset()
    arguments: bool = False
    unclosed: bool = False


def repairs(completion: Completion, habit: Habits) -> Iterator[Repair]:
    """All repairs that make sense for an answer of a provider with these habits."""
    for end in sorted(habit.stripped):
        for white in _WHITESPACE:
            changed = _with_whitespace(completion, end, white)
            if changed is not None:
                yield Repair(f"whitespace put back at {_PLACES[end]}", changed, frozenset({end}))
    if completion.tool_calls:
        if completion.reasoning and not completion.content:
            yield Repair("reasoning ended by the tool call", completion, unclosed=True)
        if habit.keeps_arguments is not True:
            yield from _rewritten(completion)


def unclosed(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts without the marker that closes the reasoning."""
    after = next((i + 1 for i, part in enumerate(parts) if part.channel is Channel.REASONING), 0)
    return parts[:after] + parts[after + 1 :]


def _with_whitespace(completion: Completion, end: End, white: str) -> Completion | None:
    """The answer with whitespace as a piece of its own at one end; None if that text is empty."""
    pieces = completion.pieces
    name = "reasoning" if end in (End.REASONING_START, End.REASONING_END) else "content"
    text: str = getattr(completion, name)
    if not text:
        return None
    first = end in (End.REASONING_START, End.CONTENT_START)
    changes: dict[str, Any] = {name: white + text if first else text + white}
    if pieces is not None:
        cut: tuple[int, ...] = getattr(pieces, name)
        longer = (len(white), *cut) if first else (*cut, len(white))
        changes["pieces"] = _replaced(pieces, name, longer)
    return msgspec.structs.replace(completion, **changes)


def _replaced(pieces: Pieces, name: str, cut: tuple[int, ...]) -> Pieces:
    return msgspec.structs.replace(pieces, **{name: cut})


def _rewritten(completion: Completion) -> Iterator[Repair]:
    """The answer with its tool arguments in the other forms of JSON."""
    dumps: tuple[Callable[[Any], str], ...] = (spaced, compact)
    for dump in dumps:
        calls = tuple(
            msgspec.structs.replace(call, arguments=redump(call.arguments, dump)) for call in completion.tool_calls
        )
        if calls != completion.tool_calls:
            changed = msgspec.structs.replace(completion, tool_calls=calls)
            yield Repair("arguments in another form of JSON", changed, arguments=True)
