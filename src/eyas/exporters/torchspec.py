"""Conversations for TorchSpec: the reasoning stands inside the content as `<think>R</think>C`.

Read in TorchSpec's code (6f21829, `KimiK25Parser`): it ignores `reasoning_content`, puts `<think></think>` before a
content that does not begin with `<think>`, and strips thinking from every assistant turn but the last. Give it
`last_turn_loss_only: true`, or it supervises the turns of the history too.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Many
from pathlib import Path
from typing import Any, cast

from eyas.exporters.base import Row
from eyas.exporters.lines import Lines, pack
from eyas.exporters.messages import calls
from eyas.exporters.rows import metadata
from eyas.types import Completion, Finish, Message

_IMAGE = "<|image|>"
_ENDED = (Finish.STOP, Finish.TOOL_CALLS)


class TorchSpec:
    """The format `torchspec`."""

    name = "torchspec"
    suffix = ".jsonl"
    text = True
    cannot = (
        "Token ids and loss mask: TorchSpec encodes the text again.",
        "Tool declarations: TorchSpec has no column for them.",
        "The stop token as a target: TorchSpec closes every turn with <|im_end|> and does not supervise it.",
        "The end of the prompt: TorchSpec supervises <think>, and <think></think> of instant answers, as if sampled.",
        "Reasoning between the tool calls of a prompt: TorchSpec strips it, the model's template keeps it.",
        "Models other than Kimi K2.5: the form is that of TorchSpec's KimiK25Parser.",
        "What was put right in the ids (label repaired): texts and arguments stand as the API gave them.",
        "A length: --max-length does not shorten these rows.",
    )

    def refuses(self, row: Row, /) -> str:
        """Why an answer cannot be carried at all, or an empty string."""
        prompt = row.record.prompt
        if prompt.tools:
            return "TorchSpec cannot declare tools"
        if any(_IMAGE in text for text in _texts(prompt.messages)):
            return f"TorchSpec would read {_IMAGE} in the prompt as an image"
        return ""

    def pack(self, rows: Many[Row]) -> bytes:
        """Rows as JSON lines."""
        return pack(map(line, rows))

    def open(self, path: Path) -> Lines:
        """A new shard."""
        return Lines(path)


def line(row: Row) -> dict[str, Any]:
    """One answer as a JSON object."""
    completion = row.record.completion
    answer: Message = {"role": "assistant", "content": inline(completion)}
    if completion.tool_calls:
        answer["tool_calls"] = calls(completion)
    return {
        "id": row.sequence.record_id,
        "conversations": [*row.record.prompt.messages, answer],
        "metadata": metadata(row),
    }


def inline(completion: Completion) -> str:
    """Reasoning and content as one text; without `</think>` where the answer stopped inside its reasoning.

    Without reasoning it is the content alone: the parser puts the empty block there itself.
    """
    if not completion.reasoning:
        return completion.content
    closed = completion.finish in _ENDED or completion.content or completion.tool_calls
    return f"<think>{completion.reasoning}{'</think>' if closed else ''}{completion.content}"


def _texts(messages: Many[Message]) -> Iterator[str]:
    """The texts of messages, of contents in parts too."""
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (str(part.get("text") or "") for part in cast("list[dict[str, Any]]", content))
