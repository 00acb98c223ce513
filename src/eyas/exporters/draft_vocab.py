"""Draft vocabularies: which ids of the target a drafter can say, chosen by how often they are supervised.

The files are those that speculators 0.9.0 loads (`train --d2t-path --t2d-path`, or by these names in `--data-path`), and
whose arrays SpecForge 0.2.0 loads once they are saved by torch (docs/formats.md). The choice is speculators'
`build_vocab_mappings_from_distribution`: the most frequent ids, of equals the lower one; where fewer ids occur than are
asked for, the lowest ids fill up. SpecForge's own choice differs only among ids that are equally frequent.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyas.errors import UsageError

COVERED = (8_000, 16_000, 32_000, 64_000)
"""Sizes whose coverage is always told."""

_DIGITS = 6


def write(
    folder: Path, counts: Mapping[str, NDArray[np.int64]], sizes: Sequence[int], vocab_size: int
) -> dict[str, Any]:
    """Write the draft vocabularies of an export.

    Args:
        folder: where the files go: `token_freq.npy`, and `d2t-SIZE.npy` and `t2d-SIZE.npy` of every size.
        counts: how often each id stands under mask 1, by dataset: arrays of `vocab_size` numbers.
        sizes: how many ids each draft vocabulary has.
        vocab_size: that of the target's config: it may be larger than its tokenizer.

    Returns:
        What the manifest keeps: `vocab_size`, `supervised_tokens`, `distinct` ids, `sizes`, by size how many ids are
        `filled` in that never occur, `files` (name, bytes, sha256) and `coverage`: the share of supervised tokens that
        the N most frequent ids cover, in `all` and by `datasets`.

    Raises:
        UsageError: a size is below 1 or above the vocabulary.
        ValueError: an array has another length.
    """
    wanted = sorted(set(sizes))
    if wanted and not 1 <= wanted[0] <= wanted[-1] <= vocab_size:
        raise UsageError(f"a draft vocabulary has 1 to {vocab_size:,} ids: correct --draft-vocab {list(sizes)}.")
    if any(each.shape != (vocab_size,) for each in counts.values()):
        raise ValueError("counts must have one number for each id of the vocabulary")
    total, order = _ranked(counts, vocab_size)
    distinct = int(np.count_nonzero(total))
    files = [_save(folder, "token_freq.npy", total)]
    for size in wanted:
        d2t, t2d = mapping(order, size)
        files += [_save(folder, f"d2t-{size}.npy", d2t), _save(folder, f"t2d-{size}.npy", t2d)]
    shown = sorted({*wanted, *(size for size in COVERED if size <= vocab_size)})
    return {
        "vocab_size": vocab_size,
        "supervised_tokens": int(total.sum()),
        "distinct": distinct,
        "sizes": wanted,
        "filled": {str(size): max(0, size - distinct) for size in wanted},
        "files": files,
        "coverage": _covered(counts, total, order, shown),
    }


def told(counts: Mapping[str, NDArray[np.int64]], vocab_size: int) -> dict[str, Any]:
    """What `write` tells where no draft vocabulary is wanted: `vocab_size`, `supervised_tokens`, `distinct`, `coverage`."""
    total, order = _ranked(counts, vocab_size)
    return {
        "vocab_size": vocab_size,
        "supervised_tokens": int(total.sum()),
        "distinct": int(np.count_nonzero(total)),
        "coverage": _covered(counts, total, order, [size for size in COVERED if size <= vocab_size]),
    }


def mapping(order: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The maps of the draft vocabulary that holds the first ids of an order.

    Args:
        order: all ids of the target, the most wanted first.
        size: ids in the draft vocabulary.

    Returns:
        d2t, by draft index what is to be added to it to get the target's id, ascending in the id; and t2d, by id of the
        target whether it is in.
    """
    chosen = np.sort(order[:size]).astype(np.int64)
    d2t = chosen - np.arange(size, dtype=np.int64)
    t2d = np.zeros(len(order), np.bool_)
    t2d[chosen] = True
    return d2t, t2d


def _ranked(counts: Mapping[str, NDArray[np.int64]], vocab_size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How often each id is supervised in all, and the ids by that, the most frequent first."""
    total = np.zeros(vocab_size, np.int64)
    for each in counts.values():
        total += each
    return total, np.argsort(-total, kind="stable")


def _covered(
    counts: Mapping[str, NDArray[np.int64]], total: NDArray[np.int64], order: NDArray[np.int64], sizes: Sequence[int]
) -> dict[str, Any]:
    """The coverage of all, and by dataset where there is any."""
    return {
        "all": _coverage(total, order, sizes),
        "datasets": {name: _coverage(counts[name], order, sizes) for name in sorted(counts) if counts[name].any()},
    }


def _coverage(counts: NDArray[np.int64], order: NDArray[np.int64], sizes: Sequence[int]) -> dict[str, float]:
    """By size, the share of the counts that the first ids of the order cover; nothing of nothing."""
    whole = int(counts.sum())
    if not whole:
        return {}
    reached = np.cumsum(counts[order])
    return {str(size): round(int(reached[size - 1]) / whole, _DIGITS) for size in sizes}


def _save(folder: Path, name: str, values: NDArray[Any]) -> dict[str, Any]:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    data = buffer.getvalue()
    (folder / name).write_bytes(data)
    return {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
