"""The figures of `eyas status` of several runs as one (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

_STATES = ("running", "stopped", "partial", "complete")
"""What all of several runs are: the first that one of them is."""


def together(figures: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of one run as they are; of several their sums.

    A share or a rate of several is left out, or reckoned anew from its parts; caps are one only where each run has one.
    """
    if len(figures) == 1:
        return figures[0]
    whole: dict[str, Any] = {"schema": 1}
    for each in figures:
        whole = cast("dict[str, Any]", _sum(whole, each))
    states = {each["state"] for each in figures}
    caps = [each["money"]["cap"] for each in figures]
    answers = sum(known["done"] + known["partial"] for known in whole["datasets"].values())
    return {
        **whole,
        "schema": 1,
        "workers": {f"{place}.{n}": each for place, run in enumerate(figures, 1) for n, each in run["workers"].items()},
        "habits": {name: habit for each in figures for name, habit in each["habits"].items()},
        "state": next(name for name in _STATES if name in states),
        "money": {**whole["money"], "cap": None if None in caps else sum(caps)},
        "length": {**whole["length"], "share": whole["length"]["answers"] / answers if answers else 0.0},
        "providers": {tag: {**each, "tokens_per_second": None} for tag, each in whole["providers"].items()},
        "throughput": None,
        "predicted": None,
    }


def _sum(first: Any, second: Any) -> Any:
    """Numbers are added, lists joined, tables summed by key; of anything else the first stands, unless there is none."""
    if isinstance(first, dict) and isinstance(second, dict):
        ours, theirs = cast("dict[str, Any]", first), cast("dict[str, Any]", second)
        return {key: _sum(ours.get(key), theirs.get(key)) for key in {**ours, **theirs}}
    if isinstance(first, list) and isinstance(second, list):
        return [*cast("list[Any]", first), *cast("list[Any]", second)]
    if isinstance(first, int | float) and isinstance(second, int | float) and not isinstance(first, bool):
        return first + second
    return cast("Any", second if first is None else first)
