"""Prompt sets: files of many shapes in, unique prompts in a stable random order out."""

from eyas.prompts.read import BadRow, Row, rows
from eyas.prompts.select import (
    DatasetSource,
    Loaded,
    LoadedSet,
    interleave,
    load,
    order_key,
    ordered,
    quarantine_lines,
    write_quarantine,
)
from eyas.prompts.shape import BadShape, prompt_id, to_prompt

__all__ = [
    "BadRow",
    "BadShape",
    "DatasetSource",
    "Loaded",
    "LoadedSet",
    "Row",
    "interleave",
    "load",
    "order_key",
    "ordered",
    "prompt_id",
    "quarantine_lines",
    "rows",
    "to_prompt",
    "write_quarantine",
]
