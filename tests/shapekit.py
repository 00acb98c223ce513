"""Rows for the tests of shapes: one conversation written in every shape that data sets use."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from eyas.config import Turns
from eyas.prompts.columns import Reading, columns_of
from eyas.prompts.detect import detect
from eyas.prompts.read import Row
from eyas.prompts.shape import DEFAULT, BadShape, to_prompt
from eyas.types import Prompt

USER = {"role": "user", "content": "Why?"}
SYSTEM = {"role": "system", "content": "Be brief."}
ANSWER = {"role": "assistant", "content": "Because."}
FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}


def make(data: dict[str, Any], system: str | None = None, reading: Reading = DEFAULT) -> Prompt:
    """Makes the prompt of a row of these columns."""
    return to_prompt(Row(data, "f", 3), "B3", reading, lambda _: system)


def found(data: dict[str, Any], turns: Turns | None = "replay", **mapped: str) -> Prompt:
    """Makes the prompt of a row of a set whose columns are guessed from that row alone, with those that are mapped."""
    return make(data, reading=Reading(columns_of(detect([data]), mapped), turns))


def refusal(data: dict[str, Any], reading: Reading = DEFAULT) -> str:
    """The reason why these columns are no prompt."""
    with pytest.raises(BadShape) as caught:
        make(data, reading=reading)
    return str(caught.value)


@dataclass(frozen=True)
class Chat:
    """A conversation: an answer follows each question but perhaps the last."""

    system: str | None
    asked: tuple[str, ...]
    answered: tuple[str, ...]

    @property
    def messages(self) -> list[dict[str, str]]:
        """All turns as messages of the API."""
        said = [{"role": "system", "content": self.system}] if self.system else []
        for at, text in enumerate(self.asked):
            said.append({"role": "user", "content": text})
            said += [{"role": "assistant", "content": each} for each in self.answered[at : at + 1]]
        return said

    @property
    def besides(self) -> dict[str, str]:
        """The system turn as a column."""
        return {"system": self.system} if self.system else {}

    @property
    def strings(self) -> list[str]:
        """What the user and the assistant say in turn."""
        return [each["content"] for each in self.messages if each["role"] != "system"]


# A script's marks stand at the start of a line, and its texts are stripped.
_WORDS = st.text(st.characters(codec="utf-8", exclude_characters=":<"), min_size=1, max_size=8)
TEXTS = _WORDS.map(str.strip).filter(bool)


@st.composite
def chats(draw: st.DrawFn) -> Chat:
    """Conversations of up to three questions."""
    asked = draw(st.lists(TEXTS, min_size=1, max_size=3))
    answered = draw(st.lists(TEXTS, min_size=len(asked) - 1, max_size=len(asked)))
    return Chat(draw(st.none() | TEXTS), tuple(asked), tuple(answered))


def _sharegpt(chat: Chat) -> list[dict[str, str]]:
    names = {"system": "System", "user": "human", "assistant": "gpt"}
    return [{"from": names[each["role"]], "value": each["content"]} for each in chat.messages]


def _columns(messages: list[dict[str, str]]) -> dict[str, list[str]]:
    return {name: [each[name] for each in messages] for name in messages[0]}


def _script(chat: Chat) -> str:
    ends = {"system": "", "user": "", "assistant": " <|endoftext|>"}
    return "\n\n\n".join(f"{each['role'].upper()}: {each['content']}{ends[each['role']]}" for each in chat.messages)


SHAPES: dict[str, Callable[[Chat], dict[str, Any]]] = {
    "messages": lambda chat: {"messages": chat.messages},
    "messages as text": lambda chat: {"messages": json.dumps(chat.messages)},
    "messages beside a prompt": lambda chat: {"prompt": chat.asked[0], "prompt_id": "a", "messages": chat.messages},
    "system column": lambda chat: {"dialog": Chat(None, chat.asked, chat.answered).messages, **chat.besides},
    "sharegpt": lambda chat: {"id": "a", "conversations": _sharegpt(chat)},
    "sharegpt of lists": lambda chat: {"conversations": _columns(_sharegpt(chat))},
    "sharegpt, other column": lambda chat: {"talk_log": _sharegpt(chat), "label": "a long text that is no prompt"},
    "own fields": lambda chat: {"conversation": [{"who": e["role"], "said": e["content"]} for e in chat.messages]},
    "parts": lambda chat: {
        "messages": [{**each, "content": [{"type": "text", "text": each["content"]}]} for each in chat.messages]
    },
    "alternating strings": lambda chat: {"data": chat.strings, **chat.besides},
    "alternating strings as text": lambda chat: {"conversation": json.dumps(chat.strings), **chat.besides},
    "user turns": lambda chat: {"turns": list(chat.asked), "reference": list(chat.answered), **chat.besides},
    "nested": lambda chat: {"question": [[each] for each in chat.messages]},
    "nemotron": lambda chat: {
        "input": Chat(None, chat.asked, chat.answered).messages,
        "output": "x" * 99,
        "system_prompt": chat.system,
    },
    "prompt of messages": lambda chat: {"prompt": chat.messages, "chosen": chat.messages},
    "glaive 1": lambda chat: {"sample": _script(chat)},
    "glaive 2": lambda chat: {
        "system": f"SYSTEM: {chat.system}" if chat.system else "",
        "chat": _script(Chat(None, chat.asked, chat.answered)),
    },
}
"""One conversation in each shape, as the row of a set."""
