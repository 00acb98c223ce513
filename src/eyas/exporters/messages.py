"""Messages in the form of OpenAI and of Hugging Face's trainers: what was asked, and the answer as one more turn.

A row has no ids. Whoever renders it with the model's template makes his own, and Kimi's template drops the reasoning of
a finished answer: with the real loaders of SpecForge and speculators 0 of 36 answers kept theirs (docs/formats.md).
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from pathlib import Path
from typing import Any

import msgspec

from eyas.exporters.base import Row
from eyas.exporters.lines import Lines, pack
from eyas.exporters.rows import metadata
from eyas.families.history import calls
from eyas.types import Completion, Message


class Messages:
    """The format `messages`."""

    name = "messages"
    suffix = ".jsonl"
    text = True
    cannot = (
        "Token ids and loss mask: a trainer makes its own from the text.",
        "Reasoning through a trainer's template: Kimi's drops that of a finished answer without tool calls (0 of 36 answers kept theirs).",
        "That an answer stopped early: templates close every turn with a stop token that the model did not sample.",
        "What was put right in the ids (label repaired): texts and arguments stand as the API gave them.",
        "A length: --max-length does not shorten these rows.",
    )

    def refuses(self, _: Row, /) -> str:
        """Why an answer cannot be carried at all, or an empty string; here every answer can."""
        return ""

    def pack(self, rows: Many[Row]) -> bytes:
        """Rows as JSON lines."""
        return pack(map(line, rows))

    def open(self, path: Path) -> Lines:
        """A new shard."""
        return Lines(path)


def line(row: Row) -> dict[str, Any]:
    """One answer as a JSON object.

    `tools` is JSON text, as SpecForge, speculators, NeMo and TRL take it: schemas differ from row to row, and `datasets`
    5.2 fails on a column of lists whose first 10 MB are empty.
    """
    record = row.record
    return {
        "id": row.sequence.record_id,
        "primary_id": record.work.primary,
        "messages": [*record.prompt.messages, turn(record.completion)],
        "tools": json_text(record.prompt.tools),
        "metadata": metadata(row),
    }


def turn(completion: Completion) -> Message:
    """An answer as the assistant's turn; its reasoning stands in `reasoning_content`, also where it is empty."""
    message: Message = {
        "role": "assistant",
        "content": completion.content,
        "reasoning_content": completion.reasoning,
    }
    if completion.tool_calls:
        message["tool_calls"] = calls(completion)
    return message


def json_text(value: Any) -> str:
    """A value as JSON text, keys in the order they have."""
    return msgspec.json.encode(value).decode()
