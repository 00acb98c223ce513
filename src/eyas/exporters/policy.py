"""What the runs of an export asked of the API: whose models, and who may keep data. For the dataset card; from the manifest alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

KEYS = ("enforce_distillable_text", "data_collection", "zdr")
"""Fields of OpenRouter's `provider` object that a reader of the data may ask for."""

_SAYS: dict[tuple[str, Any], str] = {
    ("enforce_distillable_text", True): "only models whose author allows distillation",
    ("enforce_distillable_text", False): "models whether or not their author allows distillation",
    ("data_collection", "deny"): "no provider that keeps prompts and answers",
    ("data_collection", "allow"): "providers that keep prompts and answers too",
    ("zdr", True): "only endpoints that retain nothing",
    ("zdr", False): "endpoints whether or not they retain data",
}


def section(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Lines of the card: what each key said; nothing for a manifest that does not know."""
    policy: Mapping[str, Sequence[Any]] = manifest.get("policy") or {}
    lines = [line for key in KEYS if (line := _line(key, policy.get(key, ())))]
    if lines:
        yield "## What was asked of the API\n"
        yield "As RUN.toml said when each run was last started; the API keeps to it, eyas cannot check it.\n"
        yield from lines


def _line(key: str, values: Sequence[Any]) -> str:
    """One key over all runs; a key that no run set is told for the two that matter to every reader."""
    if not values or (key == "zdr" and set(values) == {None}):
        return ""
    said = [_SAYS.get((key, value), "not set: as the account says") for value in values]
    return f"- `{key}`: {said[0] if len(said) == 1 else 'differs between the runs: ' + '; '.join(said)}"
