"""Pre-tokenised rows: JSON lines that SpecForge (`data.prompts_path`) and speculators (`prepare-data`) both read as they are.

A row carries ids and mask, so no chat template touches it again: templates drop the reasoning of a finished answer.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from pathlib import Path
from typing import Any

import msgspec

from eyas.exporters.base import Row
from eyas.exporters.lines import Lines, pack
from eyas.types import NANO, Source, Usage

NOWHERE = Source("", 0)


class Rows:
    """The format `rows`."""

    name = "rows"
    suffix = ".jsonl"
    text = True
    cannot = (
        "Messages and tools as they were given: a row holds the prompt as the template rendered it.",
        "Why an answer has its label: `eyas show` tells.",
    )

    def refuses(self, _: Row, /) -> str:
        """Every answer can be carried."""
        return ""

    def pack(self, rows: Many[Row]) -> bytes:
        """Rows as JSON lines."""
        return pack(map(line, rows))

    def open(self, path: Path) -> Lines:
        """A new shard."""
        return Lines(path)


def line(row: Row) -> dict[str, Any]:
    """One answer as a JSON object.

    What is not known is -1, "" or line 0, never null: `datasets`, by which speculators reads rows, fixes the type of a
    column from the first 10 MB, and a column of nulls there makes the first number after it an error.
    """
    sequence = row.sequence
    return {
        "id": sequence.record_id,
        "primary_id": row.record.work.primary,
        "input_ids": sequence.prompt_ids + sequence.completion_ids,
        "loss_mask": msgspec.Raw(digits(bytes(sequence.loss_mask))),
        "text": row.text,
        "metadata": metadata(row),
    }


def metadata(row: Row) -> dict[str, Any]:
    """Where an answer comes from, what it cost, and how its ids are known."""
    record, completion = row.record, row.record.completion
    source = record.prompt.source or NOWHERE
    usage = completion.usage or Usage(-1, -1)
    return {
        "dataset": record.work.dataset,
        "turn": record.work.turn,
        "label": row.sequence.label,
        "provider": completion.provider,
        "tag": record.tag,
        "model": completion.model,
        "finish": completion.finish or "",
        "generation_id": completion.generation_id,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "reasoning_tokens": -1 if usage.reasoning_tokens is None else usage.reasoning_tokens,
        "usd": -1.0 if record.cost is None else record.cost / NANO,
        "source": {"file": source.file, "line": source.line},
    }


def digits(mask: bytes) -> bytes:
    """A mask of bytes 0 and 1 as a JSON list; as fast as copying."""
    if not mask:
        return b"[]"
    text = bytearray(b",") * (2 * len(mask) + 1)
    text[0], text[-1] = ord("["), ord("]")
    text[1::2] = mask.translate(_DIGITS)
    return bytes(text)


_DIGITS = bytes.maketrans(b"\0\1", b"01")
