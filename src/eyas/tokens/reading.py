"""Readings of one record: the ids of its prompt, and of its answer whole or piece by piece (pure)."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Collection, Sequence
from itertools import accumulate, pairwise
from typing import Any, cast

import msgspec

from eyas.errors import UsageError
from eyas.families import Channel, Loaded, Part
from eyas.types import Completion, Finish, Message, Pieces, Record
from eyas.vocab import Vocab

_UNREADABLE = re.compile("[\ufffd\ud800-\udfff]")

_TAIL = 4096
_LOOP = 40
"""A tail that packs so many times smaller says the same again and again; tables and code stay below a fifth of it."""


class Prompt(msgspec.Struct, frozen=True):
    """A rendered prompt. `off` is usage.prompt_tokens minus its length, None without usage; `reason`: what is amiss."""

    ids: list[int]
    off: int | None
    reason: str = ""


class Answer(msgspec.Struct, frozen=True):
    """An answer as ids, part by part. `pieces` and `singles` are 0 for texts encoded whole."""

    parts: tuple[Part, ...]
    ids: list[list[int]]
    pieces: int = 0
    singles: int = 0

    @property
    def total(self) -> int:
        """How many ids it has."""
        return sum(map(len, self.ids))

    @property
    def proven(self) -> bool:
        """Whether every streamed piece is one vocabulary entry."""
        return 0 < self.pieces == self.singles

    def count(self, channel: Channel) -> int:
        """How many ids the texts of a channel have."""
        return sum(len(ids) for part, ids in zip(self.parts, self.ids, strict=True) if part.channel is channel)


def read_prompt(record: Record, family: Loaded, *, thinking: bool, offsets: Collection[int]) -> Prompt:
    """Ids of a record's prompt; if the API's count is off, in the form that a server re-dumping arguments sees.

    Args:
        record: the answer and its prompt.
        family: the family of the model.
        thinking: the mode it was asked in.
        offsets: differences to the API's count that have a known cause.
    """
    prompt, usage = record.prompt, record.completion.usage
    try:
        ids = family.prompt_ids(prompt.messages, prompt.tools, thinking)
        off = None if usage is None else usage.prompt_tokens - len(ids)
        if off is None or off in offsets:
            return Prompt(ids, off)
        redumped = _redumped(prompt.messages)
        if redumped is not None and usage is not None:
            other = family.prompt_ids(redumped, prompt.tools, thinking)
            if usage.prompt_tokens - len(other) in offsets:
                return Prompt(other, usage.prompt_tokens - len(other))
    except UsageError as error:
        return Prompt([], None, str(error))
    return Prompt(ids, off, f"the API counted {off:+d} prompt tokens more than the template gives")


def spells_special(record: Record, vocab: Vocab) -> bool:
    """Whether a text of the prompt spells a special token, which the engine then reads as that token."""
    contents = (message.get("content") for message in record.prompt.messages)
    return any(isinstance(content, str) and vocab.spelled(content) for content in contents)


def read_whole(parts: tuple[Part, ...], vocab: Vocab) -> Answer:
    """The answer with each text encoded whole: its canonical ids."""
    return Answer(parts, [_whole(part, vocab) for part in parts])


def read_pieces(parts: tuple[Part, ...], pieces: Pieces | None, vocab: Vocab) -> Answer | None:
    """The answer with reasoning and content encoded piece by piece, or None if the pieces are not known.

    On a stream that is cut at tokens these are the sampled ids, also where the sampler split a word non-canonically.
    """
    if pieces is None:
        return None
    lengths = {Channel.REASONING: pieces.reasoning, Channel.CONTENT: pieces.content}
    ids: list[list[int]] = []
    count = singles = 0
    for part in parts:
        cut = None if part.channel is None else lengths.get(part.channel)
        if cut is None:
            ids.append(_whole(part, vocab))
            continue
        if sum(cut) != len(part.text):
            return None
        found, single = _pieced(part.text, cut, vocab)
        ids.append(found)
        count += sum(length > 0 for length in cut)
        singles += single
    return Answer(parts, ids, count, singles)


def without_last_space(completion: Completion) -> Completion:
    """The answer without a space at the end of its reasoning; the same object if there is none."""
    if not completion.reasoning.endswith(" "):
        return completion
    pieces = completion.pieces
    if pieces is not None and any(pieces.reasoning):
        cut = [length for length in pieces.reasoning if length]
        pieces = msgspec.structs.replace(pieces, reasoning=(*cut[:-1], cut[-1] - 1))
    return msgspec.structs.replace(completion, reasoning=completion.reasoning[:-1], pieces=pieces)


def defect(completion: Completion, family: Loaded) -> str:
    """What makes an answer's text useless for training, or an empty string."""
    texts = (completion.reasoning, completion.content, *(call.arguments for call in completion.tool_calls))
    for text in texts:
        if not text.isascii() and _UNREADABLE.search(text):
            return "the text holds bytes that are no UTF-8"
        if family.leaks(text):
            return "the text holds markers that the server should have parsed"
    if completion.finish is Finish.CONTENT_FILTER:
        return "a content filter ended it"
    if completion.finish not in (Finish.STOP, Finish.TOOL_CALLS) and _loops(texts[0] + texts[1]):
        return "it repeats itself until it was cut"
    return ""


def _whole(part: Part, vocab: Vocab) -> list[int]:
    return vocab.encode(part.text) if part.token is None else [part.token]


def _pieced(text: str, lengths: Sequence[int], vocab: Vocab) -> tuple[list[int], int]:
    """Ids of a text piece by piece, and how many pieces are one entry."""
    id_of, ids, singles = vocab.id_of, list[int](), 0
    for start, end in pairwise(accumulate(lengths, initial=0)):
        if start == end:
            continue
        number = id_of(text[start:end].encode(errors="surrogatepass"))
        if number is None:
            ids += vocab.encode(text[start:end])
        else:
            ids.append(number)
            singles += 1
    return ids, singles


def _loops(text: str) -> bool:
    tail = text[-_TAIL:].encode(errors="replace")
    return len(tail) >= _TAIL and len(zlib.compress(tail, 1)) * _LOOP < len(tail)


def _redumped(messages: Sequence[Message]) -> list[Message] | None:
    """Messages with tool arguments parsed and dumped again, as some servers give them to the template; None if equal."""
    changed = False
    result: list[Message] = []
    for message in messages:
        calls: list[Any] = []
        for call in cast("list[dict[str, Any]]", message.get("tool_calls") or []):
            function: dict[str, Any] = dict(call.get("function") or {})
            before = function.get("arguments")
            function["arguments"] = _dumped(before)
            changed = changed or function["arguments"] != before
            calls.append({**call, "function": function})
        result.append({**message, "tool_calls": calls} if calls else message)
    return result if changed else None


def _dumped(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except ValueError:
        return arguments
