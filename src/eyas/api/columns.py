"""Attempts as columns of equal length, which a data frame takes as they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from eyas.ledger import usd
from eyas.records import Run
from eyas.standing import Attempt

Columns = dict[str, np.ndarray[Any, np.dtype[Any]]]
"""Name -> values; texts are empty and numbers NaN where nothing is known."""

_TEXTS = ("id", "dataset", "provider", "tag", "label", "verdict", "kind", "finish", "generation_id")
_WHOLE = ("turn", "sample", "number", "output_tokens")
_PERHAPS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "usd", "first_token", "seconds", "at")


class Found(NamedTuple):
    """An attempt, and the run it belongs to."""

    run: Run
    attempt: Attempt


def columns(found: Iterable[Found]) -> Columns:
    """One row an attempt, in the order given."""
    rows = [_row(*each) for each in found]
    names = (*_TEXTS, *_WHOLE, *_PERHAPS)
    values = zip(*rows, strict=True) if rows else [()] * len(names)
    kinds = {**dict.fromkeys(_TEXTS, np.str_), **dict.fromkeys(_WHOLE, np.int64), **dict.fromkeys(_PERHAPS, np.float64)}
    made = {name: np.array(column, dtype=kinds[name]) for name, column in zip(names, values, strict=True)}
    return {name: made[name] for name in ORDER}


ORDER = (
    "id", "dataset", "turn", "sample", "number", "provider", "tag", "verdict", "kind", "finish", "label", "prompt_tokens",
    "completion_tokens", "reasoning_tokens", "output_tokens", "usd", "first_token", "seconds", "at", "generation_id",
)  # fmt: skip
"""The columns; more may be added behind them."""


def _row(run: Run, attempt: Attempt) -> tuple[Any, ...]:
    """Values in the order of _TEXTS, _WHOLE, _PERHAPS."""
    work, settled = attempt.work, attempt.settled
    label = run.state.labels.get(attempt.id)
    prompt, completion, reasoning = attempt.counts or (None, None, None)
    return (
        work.key,
        work.dataset,
        attempt.provider,
        attempt.tag,
        "" if label is None else label.value,
        "in flight" if settled is None else settled.verdict.value,
        "" if settled is None or settled.kind is None else settled.kind.value,
        "" if settled is None or settled.finish is None else settled.finish.value,
        attempt.generation_id,
        work.turn,
        work.sample,
        attempt.number,
        0 if settled is None else settled.tokens,
        _number(prompt),
        _number(completion),
        _number(reasoning),
        _number(None if attempt.cost is None else usd(attempt.cost)),
        _number(None if settled is None else settled.first_token),
        _number(None if settled is None else settled.seconds),
        _number(None if settled is None else settled.at),
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
