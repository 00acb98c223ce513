"""RUN.toml on the pages: whole files, and fragments that load once the rest of a small file is put around them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eyas.config import RunConfig
from eyas.config.target import API
from tests.shown.pages import Block

_TABLE = re.compile(r"^\[\[?[a-z]+\]?\]\s*(#.*)?$")
_KEY = re.compile(r"^[a-z_]+ = ")
SECTIONS = ("datasets", "target", "budget", "providers", "limits", "run", "fallback")
"""Where keys without a section may belong, the likeliest first."""


def is_toml(block: Block) -> bool:
    """Whether a block is RUN.toml, or a part of one."""
    if block.language or block.title:
        return block.language == "toml" or block.title.endswith(".toml")
    first = next((line for line in block.lines if not line.startswith("#")), "")
    return bool(_TABLE.match(first)) or (bool(_KEY.match(first)) and _parses(block.text))


def _parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def problem(text: str) -> str:
    """Why a file or a fragment does not load; empty if it does."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return f"no TOML: {error}"
    why = ""
    for wish in _wishes(data):
        try:
            RunConfig.model_validate({**_whole(wish), "base": Path()})
        except ValidationError as error:
            why = why or "; ".join(f"{each['loc']}: {each['msg']}" for each in error.errors(include_url=False))
        else:
            return ""
    return why


def _wishes(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The file with its tables, or the same keys in each table where they may belong."""
    if all(isinstance(value, (dict, list)) and name in RunConfig.model_fields for name, value in data.items()):
        yield data
        return
    for section in SECTIONS:
        yield {section: [data] if section == "datasets" else data}


def _whole(data: dict[str, Any]) -> dict[str, Any]:
    """The rest of a RUN.toml around it."""
    target = {"model": "moonshotai/kimi-k2.5", **data.get("target", {})}
    if target.get("backend", API) != API:
        target.setdefault("base_url", "http://127.0.0.1:8000/v1")
    datasets = [{"name": f"D{n}", "source": "d.jsonl", **each} for n, each in enumerate(data.get("datasets", [{}]))]
    return {
        **data,
        "run": {"dir": "run", **data.get("run", {})},
        "target": target,
        "budget": {"usd": 1.0, **data.get("budget", {})},
        "datasets": datasets,
    }
