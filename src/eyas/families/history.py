"""Answers of the past as an API wants them back, and histories that an API refuses (pure).

No family's template keeps the reasoning of a plain answer once the user spoke again (rendered and compared, every family
and mode), so it is not sent. That of an answer with tool calls is kept by Kimi's, DeepSeek V4's and gpt-oss's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eyas.types import Completion, Message

_REASONING = ("reasoning_content", "reasoning", "reasoning_details")


def past(completion: Completion, *, remembers: bool) -> Message:
    """An answer as a turn of the history: content and tool calls verbatim.

    Args:
        completion: the answer.
        remembers: whether the template keeps the reasoning of an answer with tool calls; it is sent then, also if empty.
    """
    message: Message = {"role": "assistant", "content": completion.content}
    if completion.tool_calls:
        message |= {"reasoning_content": completion.reasoning} if remembers else {}
        message["tool_calls"] = calls(completion)
    return message


def calls(completion: Completion) -> list[dict[str, Any]]:
    """The tool calls in OpenAI's form; arguments are the text that came, for parsing and dumping changes their ids."""
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in completion.tool_calls
    ]


def accepted(messages: Sequence[Message], thinking: bool) -> str:  # noqa: ARG001  # as every such rule
    """No history is refused: an empty string."""
    return ""


def reasoned(messages: Sequence[Message], thinking: bool) -> str:
    """Why Moonshot's API refuses a history, or an empty string.

    With thinking on it answers 400, "thinking is enabled but reasoning_content is missing in assistant tool call message at
    index N", and SiliconFlow does the same; an empty text is no missing one. Sources:
    https://github.com/earendil-works/pi/pull/987, https://github.com/MoonshotAI/kimi-cli/pull/2446,
    https://github.com/agentscope-ai/QwenPaw/issues/433
    """
    for index, message in enumerate(messages if thinking else ()):
        if message.get("tool_calls") and all(message.get(name) is None for name in _REASONING):
            return (
                f"message {index} of its history calls tools and has no reasoning_content, which the API refuses while the "
                "model thinks: add it to the row, set thinking = false for the dataset, or remove the row"
            )
    return ""
