"""The ids of a record's prompt, in the form in which the server gave it to the template (pure).

A server may parse tool arguments of the history and dump them again, and may drop or read the reasoning in it; the
prompt count tells which. No other difference is accepted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, cast

import msgspec

from eyas.errors import UsageError
from eyas.families import Loaded
from eyas.types import Message, Record
from eyas.vocab import Vocab


class Prompt(msgspec.Struct, frozen=True):
    """A rendered prompt.

    Attributes:
        ids: its ids; empty if it cannot be rendered.
        off: usage.prompt_tokens minus their number, None without usage.
        reason: what is amiss.
        form: the form of its history, see `forms`.
        choice: whether its history has more than one form.
    """

    ids: list[int]
    off: int | None
    reason: str = ""
    form: str = ""
    choice: bool = False


def read_prompt(record: Record, family: Loaded, thinking: bool, offsets: Collection[int], form: str = "") -> Prompt:
    """Ids of a record's prompt in the first form whose count agrees; as sent, with a reason, where none does.

    Args:
        record: the answer and its prompt.
        family: the family of the model.
        thinking: the mode it was asked in.
        offsets: differences to the API's count that have a known cause.
        form: the form that is tried first, as learned of the provider.
    """
    prompt, usage = record.prompt, record.completion.usage
    ways = dict(forms(prompt.messages))
    order = [form, *(name for name in ways if name != form)] if form in ways else list(ways)
    found: Prompt | None = None
    for name in order:
        try:
            ids = family.prompt_ids(ways[name], prompt.tools, thinking)
        except UsageError as error:
            return Prompt([], None, str(error))
        off = None if usage is None else usage.prompt_tokens - len(ids)
        if off is None or off in offsets:
            return Prompt(ids, off, form=name, choice=len(ways) > 1)
        found = found or Prompt(ids, off, f"the API counted {off:+d} prompt tokens against the template", name)
    return found or Prompt([], None, "the prompt is empty")


def spells_special(record: Record, vocab: Vocab) -> bool:
    """Whether a text of the prompt spells a special token, which the engine then reads as that token."""
    contents = (message.get("content") for message in record.prompt.messages)
    return any(isinstance(content, str) and vocab.spelled(content) for content in contents)


def forms(messages: Sequence[Message]) -> Iterator[tuple[str, Sequence[Message]]]:
    """The distinct forms in which servers give a history to the template, as sent first; the name says what is done."""
    yield "", messages
    if not any(message.get("role") == "assistant" for message in messages):
        return
    seen: list[Sequence[Message]] = [messages]
    for (said, arguments), (told, reasoning) in product(_ARGUMENTS, _REASONING):
        changed = [reasoning(arguments(message)) for message in messages]
        if changed not in seen:
            seen.append(changed)
            yield " and ".join(filter(None, (said, told))), changed


def _same(message: Message) -> Message:
    return message


def _redumped(message: Message, dump: Callable[[Any], str]) -> Message:
    """A message with its tool arguments parsed and dumped again."""
    calls = cast("list[dict[str, Any]] | None", message.get("tool_calls"))
    if not calls:
        return message
    changed: list[dict[str, Any]] = []
    for call in calls:
        function = dict(cast("dict[str, Any]", call.get("function") or {}))
        function["arguments"] = redump(function.get("arguments"), dump)
        changed.append({**call, "function": function})
    return {**message, "tool_calls": changed}


def redump(arguments: Any, dump: Callable[[Any], str]) -> Any:
    """Tool arguments parsed and dumped again; as they are if they are no JSON text."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return dump(json.loads(arguments))
    except ValueError:
        return arguments


def _reasoning_read(message: Message) -> Message:
    """A message whose reasoning stands where templates look for it, whatever field it was sent in."""
    if message.get("role") != "assistant" or isinstance(message.get("reasoning_content"), str):
        return message
    details = cast("list[dict[str, Any]]", message.get("reasoning_details") or [])
    text = message.get("reasoning") or "".join(str(each.get("text") or "") for each in details)
    return {**message, "reasoning_content": text} if isinstance(text, str) and text else message


def _reasoning_dropped(message: Message) -> Message:
    return {key: value for key, value in message.items() if key not in _REASONING_KEYS}


_REASONING_KEYS = ("reasoning", "reasoning_content", "reasoning_details")

spaced: Callable[[Any], str] = partial(json.dumps, ensure_ascii=False)
"""JSON as Python dumps it: `", "` and `": "`."""

compact: Callable[[Any], str] = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
"""JSON without spaces."""

_ARGUMENTS: tuple[tuple[str, Callable[[Message], Message]], ...] = (
    ("", _same),
    ("arguments spaced", partial(_redumped, dump=spaced)),
    ("arguments compact", partial(_redumped, dump=compact)),
)
_REASONING: tuple[tuple[str, Callable[[Message], Message]], ...] = (
    ("", _same),
    ("reasoning read", _reasoning_read),
    ("reasoning dropped", _reasoning_dropped),
)
