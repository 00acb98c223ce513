"""Pre-tokenised rows: JSON lines that SpecForge (`data.prompts_path`) and speculators (`prepare-data`) both read as they are.

A row carries ids and mask, so no chat template touches it again: templates drop the reasoning of a finished answer.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eyas.types import NANO, Record, Sequence

_ENCODER = msgspec.json.Encoder()


def line(record: Record, sequence: Sequence, text: str) -> bytes:
    """One answer as a JSON line.

    Args:
        record: the answer; `usd` is None while its cost is unknown, the token counts are the API's (None: not given).
        sequence: its training tokens.
        text: decode(input_ids).
    """
    work, completion, source = record.work, record.completion, record.prompt.source
    usage = completion.usage
    metadata: dict[str, Any] = {
        "dataset": work.dataset,
        "turn": work.turn,
        "label": sequence.label,
        "provider": completion.provider,
        "tag": record.tag,
        "model": completion.model,
        "finish": completion.finish,
        "generation_id": completion.generation_id,
        "prompt_tokens": usage.prompt_tokens if usage else None,
        "completion_tokens": usage.completion_tokens if usage else None,
        "reasoning_tokens": usage.reasoning_tokens if usage else None,
        "usd": None if record.cost is None else record.cost / NANO,
        "source": {"file": source.file, "line": source.line} if source else None,
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
