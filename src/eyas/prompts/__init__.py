"""Prompt sets: files of many shapes in, unique prompts in a stable random order out."""

from eyas.prompts.contaminate import Contaminated
from eyas.prompts.load import load
from eyas.prompts.order import order_key
from eyas.prompts.quarantine import Rejected, json_lines, write_lines, write_quarantine
from eyas.prompts.read import BadRow, Row, rows
from eyas.prompts.select import Counts, Loaded, LoadedSet, interleave, part
from eyas.prompts.shape import BadShape, prompt_id, to_prompt
from eyas.prompts.sift import Count

__all__ = [
    "BadRow",
    "BadShape",
    "Contaminated",
    "Count",
    "Counts",
    "Loaded",
    "LoadedSet",
    "Rejected",
    "Row",
    "interleave",
    "json_lines",
    "load",
    "order_key",
    "part",
    "prompt_id",
    "rows",
    "to_prompt",
    "write_lines",
    "write_quarantine",
]
