"""One answer as a person reads it: texts of its tokens, loss mask and channels in runs, the prompt cut to a length (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, cast

from eyas.exporters.tally import Fact
from eyas.families import Channel, Loaded, Part
from eyas.ledger import usd
from eyas.report.document import Sample
from eyas.types import Message, Record
from eyas.types import Sequence as Tokens
from eyas.vocab import Vocab

Run = tuple[str, int]
"""A channel, and how many tokens in a row are of it."""

MARKER, REASONING, CONTENT, CALL = "marker", "reasoning", "content", "call"
UNENDED = "none"
"""Why an answer ended whose stream was cut."""
LAST_CHARACTERS, CHARACTERS = 4000, 1200
"""Shown of the last message of a prompt, and of any other one."""
FIRST_MESSAGES, LAST_MESSAGES = 2, 7
BETWEEN = "…"
_NAMES: dict[Channel | None, str] = {
    Channel.REASONING: REASONING,
    Channel.CONTENT: CONTENT,
    Channel.TOOL_ID: CALL,
    Channel.ARGUMENTS: CALL,
    Channel.FORM: MARKER,
    None: MARKER,
}


def sample(record: Record, sequence: Tokens, fact: Fact, family: Loaded, *, thinking: bool, most: int) -> Sample:
    """An answer with the first `most` of its tokens."""
    completion, ids = record.completion, sequence.completion_ids
    runs = channels(ids, family.parts(completion, thinking), family.vocab)
    mask = sequence.loss_mask[len(sequence.prompt_ids) :]
    return Sample(
        id=record.work.key,
        dataset=record.work.dataset,
        provider=completion.provider,
        tag=record.tag,
        label=sequence.label.value,
        detail=sequence.reason or fact.reason,
        finish=completion.finish or UNENDED,
        usd=None if record.cost is None else usd(record.cost),
        prompt_tokens=len(sequence.prompt_ids),
        completion_tokens=len(ids),
        reasoning_tokens=total(runs, REASONING),
        supervised_tokens=0 if fact.reason else fact.supervised,
        first_token_seconds=completion.first_token,
        seconds=completion.seconds,
        messages=shown(record.prompt.messages),
        tools=[_name_of(tool) for tool in record.prompt.tools],
        tokens=texts(ids[:most], family.vocab),
        mask=mask_runs(mask[:most]),
        channels=first(runs, most),
        left_out=max(0, len(ids) - most),
    )


def channels(ids: Sequence[int], parts: Iterable[Part], vocab: Vocab) -> list[Run]:
    """Which tokens are reasoning, content, calls or markers.

    The special ids of the parts are looked for among the ids, in order; what lies between two of them is the text that does so
    among the parts. Where that is of several channels, the bytes of each say how far it goes.
    """
    found: list[Run] = []
    waiting: list[Part] = []
    at = 0
    for part in parts:
        if part.token is None:
            waiting.append(part)
            continue
        try:
            end = ids.index(part.token, at)
        except ValueError:
            continue  # the answer was read without that marker
        found += [*_between(ids[at:end], waiting, vocab), (MARKER, 1)]
        at, waiting = end + 1, []
    return _joined([*found, *_between(ids[at:], waiting, vocab)])


def _between(ids: Sequence[int], texts_of: Sequence[Part], vocab: Vocab) -> list[Run]:
    names = list(dict.fromkeys(_NAMES[part.channel] for part in texts_of))
    if not ids:
        return []
    if len(names) < 2:
        return [(names[0] if names else CONTENT, len(ids))]
    ends: list[tuple[int, str]] = []
    for part in texts_of:
        ends.append((len(part.text.encode(errors="replace")) + (ends[-1][0] if ends else 0), _NAMES[part.channel]))
    runs: list[Run] = []
    place = done = 0
    for number in ids:
        while place < len(ends) - 1 and done >= ends[place][0]:
            place += 1
        runs.append((ends[place][1], 1))
        done += len(_bytes(number, vocab))
    return runs


def _joined(runs: Iterable[Run]) -> list[Run]:
    """Neighbours of one channel as one run; none is empty."""
    return [(name, sum(count for _, count in group)) for name, group in groupby(runs, key=lambda run: run[0])]


def total(runs: Iterable[Run], name: str) -> int:
    """How many tokens are of a channel."""
    return sum(count for channel, count in runs if channel == name)


def first(runs: Iterable[Run], most: int) -> list[Run]:
    """The runs of the first tokens."""
    found: list[Run] = []
    for name, count in runs:
        if most <= 0:
            break
        found.append((name, min(count, most)))
        most -= count
    return found


def mask_runs(mask: Iterable[int]) -> list[int]:
    """Lengths of the runs of one value, the first one of 1."""
    groups = [(value, sum(1 for _ in group)) for value, group in groupby(mask)]
    return ([0] if groups and not groups[0][0] else []) + [count for _, count in groups]


def texts(ids: Iterable[int], vocab: Vocab) -> list[str]:
    r"""The text of each id, a special's spelling too; bytes that are a part of a character are written as \xNN."""
    return [_bytes(number, vocab).decode(errors="backslashreplace") for number in ids]


def _bytes(number: int, vocab: Vocab) -> bytes:
    try:
        return vocab.token_bytes(number)
    except KeyError:  # an engine may return what the vocabulary lacks; the label says so
        return f"<id {number}>".encode()


def shown(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages of a prompt, long ones and long conversations cut; what is left out is told (`Sample.messages`)."""
    *others, last = messages
    found = [_message(each, CHARACTERS) for each in others]
    if len(found) > FIRST_MESSAGES + LAST_MESSAGES:
        out = len(found) - FIRST_MESSAGES - LAST_MESSAGES
        found[FIRST_MESSAGES:-LAST_MESSAGES] = [{"role": BETWEEN, "content": "", "left_out": out}]
    return [*found, _message(last, LAST_CHARACTERS)]


def _message(message: Message, most: int) -> dict[str, Any]:
    text = _text(message.get("content"))
    found: dict[str, Any] = {"role": str(message.get("role", "")), "content": text[:most]}
    if len(text) > most:
        found["left_out"] = len(text) - most
    calls = cast("Sequence[Any]", message.get("tool_calls") or ())
    if calls:
        found["tool_calls"] = [_call(call, most) for call in calls]
    return found


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    parts = cast("Sequence[Any]", content)
    return "".join(str(cast("dict[str, Any]", part).get("text", "")) for part in parts if isinstance(part, dict))


def _call(call: Any, most: int) -> dict[str, Any]:
    function = _mapping(_mapping(call).get("function"))
    arguments = function.get("arguments", "")
    text = arguments if isinstance(arguments, str) else str(arguments)
    return {"function": {"name": str(function.get("name", "")), "arguments": text[:most]}}


def _name_of(tool: Any) -> str:
    return str(_mapping(_mapping(tool).get("function") or tool).get("name", ""))


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
