"""Pre-tokenised rows: JSON lines that SpecForge (`data.prompts_path`) and speculators (`prepare-data`) both read as they are.

A row carries ids and mask, so no chat template touches it again: templates drop the reasoning of a finished answer.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eyas.types import NANO, Record, Sequence, Source, Usage

NOWHERE = Source("", 0)

_ENCODER = msgspec.json.Encoder()


def line(record: Record, sequence: Sequence, text: str) -> bytes:
    """One answer as a JSON line.

    Args:
        record: the answer.
        sequence: its training tokens.
        text: decode(input_ids).

    What is not known is -1, "" or line 0, never null: `datasets`, by which speculators reads rows, fixes the type of a
    column from the first 10 MB, and a column of nulls there makes the first number after it an error.
    """
    work, completion, source = record.work, record.completion, record.prompt.source or NOWHERE
    usage = completion.usage or Usage(-1, -1)
    metadata: dict[str, Any] = {
        "dataset": work.dataset,
        "turn": work.turn,
        "label": sequence.label,
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
    row = {
        "id": sequence.record_id,
        "primary_id": work.primary,
        "input_ids": sequence.prompt_ids + sequence.completion_ids,
        "loss_mask": sequence.loss_mask,
        "text": text,
        "metadata": metadata,
    }
    return _ENCODER.encode(row) + b"\n"
