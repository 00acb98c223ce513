"""Answers made at random from a seed: unicode, whitespace, spelled markers, tools, empty parts, and cuts in each part."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from eyas.types import Completion, Finish, ToolCall

_WORDS = (
    *("the", "model", "says", "that", "42", "is", "prime", ":", "don't", "—", "'quoted'", "«so»", "(x)", "[y]", "{z}"),
    *("#1", "a/b", "\\n", "3.14", "€", "½", "ß", "\u0131", "\u0130"),
    *(
        "日本語",
        "中文字符",
        "한국어",
        "ไทย",
        "ελληνικά",
        "العربية",
        "हिन्दी",
        "naïve",
        "e\u0301",
        "🙂",
        "👩‍👩‍👧",
        "🇩🇪",
        "\u200b",
        "\u00a0x",
    ),
    *(
        "```py\ncode\n```",
        "$x^2$",
        "<b>",
        "a < b",
        "<unknown>",
        "&amp;",
        "|",
        "</",
        "\uff5c",
        "[PAD]",
        '"',
        "\\",
        "\\u00e9",
    ),
)
_GAPS = (" ", " ", " ", " ", "", "\n", "\n\n", "  ", "\t", "\r\n", " \n ")
_NAMES = ("add", "get_weather", "search-web", "f", "Lookup_2")


@dataclass(frozen=True)
class Made:
    """A finished answer, the same one cut somewhere (None: not cut), and the tools it calls."""

    whole: Completion
    cut: Completion | None
    tools: list[dict[str, Any]]


def answer(random: Random, markers: Sequence[str], *, thinks: bool) -> Made:
    """An answer; one text in thirty spells one of the markers."""
    reasoning = text(random, markers) if thinks and random.random() < 0.9 else ""
    content = text(random, markers) if random.random() < 0.8 else ""
    calls = [call(random, markers, index) for index in range(random.choice((0, 0, 0, 1, 1, 2, 3)))]
    finish = Finish.TOOL_CALLS if calls else Finish.STOP
    whole = Completion(reasoning, content, tuple(calls), finish=finish)
    return Made(whole, cut(random, whole) if random.random() < 0.4 else None, [tool(each) for each in calls])


def text(random: Random, markers: Sequence[str]) -> str:
    """Some words and gaps; whitespace may stand at both ends."""
    words = [random.choice(_WORDS) + random.choice(_GAPS) for _ in range(random.randint(0, 20))]
    if markers and random.random() < 1 / 30:
        words.insert(random.randint(0, len(words)), random.choice(markers))
    return (random.choice(_GAPS) if random.random() < 0.3 else "") + "".join(words)


def call(random: Random, markers: Sequence[str], index: int) -> ToolCall:
    """A tool call whose arguments are dumped in one of the ways that servers and models use."""
    arguments = {f"{kind}{i}": value(random, markers) for i, (kind, value) in enumerate(_values(random))}
    style: dict[str, Any] = random.choice(({}, {"separators": (",", ":")}, {"indent": 1}))
    name = random.choice(_NAMES)
    dumped = json.dumps(arguments, ensure_ascii=random.random() < 0.3, **style)
    return ToolCall(f"functions.{name}:{index}", name, dumped)


def tool(called: ToolCall) -> dict[str, Any]:
    """The declaration of a called tool, its parameters typed by the names of the arguments."""
    kinds = {"s": "string", "n": "number", "b": "boolean", "o": "object", "l": "array", "z": "null"}
    properties = {name: {"type": kinds[name[0]]} for name in json.loads(called.arguments)}
    return {
        "type": "function",
        "function": {
            "name": called.name,
            "description": f"Does {called.name}.",
            "parameters": {"type": "object", "properties": properties},
        },
    }


def conversation(random: Random, *, tools: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Messages that end with a question or a tool's result, and the tools that are called in them."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": text(random, ())}] if random.random() < 0.5 else []
    declared: list[dict[str, Any]] = []
    for last in (False, False, True):
        messages.append({"role": "user", "content": text(random, ())})
        if tools and random.random() < 0.6:
            calls = [call(random, (), index) for index in range(random.randint(1, 2))]
            declared += map(tool, calls)
            turn = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls
            ]
            content = text(random, ()) if random.random() < 0.5 else None
            messages.append({**_past(random), "content": content, "tool_calls": turn})
            results = (({"role": "tool", "tool_call_id": c.id, "name": c.name}, text(random, ())) for c in calls)
            messages += ({**result, "content": said} for result, said in results)
        if not last:
            messages.append(_past(random))
    return messages, declared


def _past(random: Random) -> dict[str, Any]:
    return {"role": "assistant", "content": text(random, ()), "reasoning_content": text(random, ())}


def cut(random: Random, whole: Completion) -> Completion:
    """An answer that ends inside its reasoning, its content or a tool call, with or without a finish."""
    finish = random.choice((None, Finish.LENGTH))
    where = [
        name for name in ("reasoning", "content", "calls") if getattr(whole, name if name != "calls" else "tool_calls")
    ]
    place = random.choice(where) if where else ""
    if place == "calls":
        last = random.randrange(len(whole.tool_calls))
        broken = whole.tool_calls[last]
        rest = broken.arguments[: random.randint(0, len(broken.arguments))]
        calls = (*whole.tool_calls[:last], ToolCall(broken.id, broken.name, rest))
        return Completion(whole.reasoning, whole.content, calls, finish=finish)
    if place == "content":
        return Completion(whole.reasoning, whole.content[: random.randint(1, len(whole.content))], finish=finish)
    return Completion(whole.reasoning[: random.randint(0, len(whole.reasoning))], finish=finish)


def _values(random: Random) -> list[tuple[str, Callable[[Random, Sequence[str]], Any]]]:
    return random.choices(tuple(_KINDS.items()), k=random.choice((0, 1, 1, 2, 3)))


_KINDS: Mapping[str, Callable[[Random, Sequence[str]], Any]] = {
    "s": lambda random, markers: text(random, markers).strip(),
    "n": lambda random, _: random.choice((0, -7, 12345678901234567890, 0.5, -1.25e-9)),
    "b": lambda random, _: random.random() < 0.5,
    "l": lambda random, markers: [1, "x, y", text(random, ()), None][: random.randint(0, 4)],
    "o": lambda random, markers: {"k": text(random, ()), "m": [{"n": True}]},
    "z": lambda *_: None,
}
