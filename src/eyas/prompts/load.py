"""Loads the sets of a run, each in two passes: its rows to prompts on disk, then each prompt once through the sieve."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from eyas.config import Dataset
from eyas.errors import UsageError
from eyas.prompts.contaminate import Benchmarks
from eyas.prompts.duplicates import unique
from eyas.prompts.gather import Gathered, Settings, gather
from eyas.prompts.quarantine import check
from eyas.prompts.select import Ids, Loaded, LoadedSet, Picked
from eyas.prompts.sift import Count, Sieve
from eyas.types import Prompt

_REMEDY = "correct the keys of this set that leave them out, or name another source"


def load(datasets: Iterable[Dataset], base: Path, seed: int, count: Count, folder: Path | None = None) -> Loaded:
    """Reads the sets of a run; the prompts stay on disk, memory takes some 50 bytes a row while it works.

    Args:
        datasets: the sets, each with a name of its own.
        base: the folder that relative paths start from.
        seed: the seed of the order and of what is drawn.
        count: tokens of a prompt; a UsageError from it puts the row in quarantine.
        folder: where the prompts are kept while they are used; None: the system's folder for temporary files.

    Raises:
        UsageError: a source cannot be read to its end, no prompt of it is left, two sets share a name, or a key of a set asks
            what cannot be done.
        Rejected: more than a fifth of a source's rows cannot be asked.
        StorageError: the disk has no room for the prompts.
    """
    settings = Settings(base, seed, folder)
    sets: dict[str, LoadedSet] = {}
    known: dict[tuple[str, ...], Benchmarks] = {}
    for dataset in datasets:
        if dataset.name in sets:
            raise UsageError(f"two sets are named {dataset.name}: give each [[datasets]] a name of its own")
        files = dataset.decontaminate
        if files and files not in known:
            known[files] = Benchmarks(_benchmarks(files, settings))
        sets[dataset.name] = _load(dataset, settings, Sieve.of(dataset, settings, count, known.get(files)))
    return Loaded(sets)


def _load(dataset: Dataset, settings: Settings, sieve: Sieve) -> LoadedSet:
    found = gather(dataset, settings)
    check(dataset.source, found.rows, found.bad, found.reasons)
    ids = np.frombuffer(found.ids, np.uint64)
    duplicates = _sift(found, sieve)
    check(dataset.source, found.rows, found.bad, found.reasons)
    order = sieve.ordered(found, settings.seed)
    chosen = np.frombuffer(sieve.rows, np.uintc)[order]
    removed = {"filter": found.filtered, **sieve.removed}
    loaded = LoadedSet(
        name=dataset.name,
        prompts=Picked(found.prompts, chosen),
        ids=Ids(ids[chosen]),
        tokens=array("I", np.frombuffer(sieve.tokens, np.uintc)[order].tobytes()),
        rows=found.rows,
        duplicates=duplicates,
        quarantined=found.bad,
        images=found.images,
        removed={key: rows for key, rows in removed.items() if rows},
        contaminated=sieve.contaminated,
        guess=found.guess,
        turns=array("I", np.frombuffer(sieve.turns, np.uintc)[order].tobytes()),
    )
    if not chosen.size:
        raise UsageError(f"{dataset.source}: no prompt is left of its {loaded.rows} rows ({_where(loaded)}): {_REMEDY}")
    return loaded


def _sift(found: Gathered, sieve: Sieve) -> int:
    """Put each prompt through the sieve once; gives how many rows repeat another one."""
    once = unique(np.frombuffer(found.ids, np.uint64), lambda row: _rank(found.prompts[row]))
    for row in once:
        sieve.take(int(row), found)
    return len(found.ids) - len(once)


def _where(loaded: LoadedSet) -> str:
    """Where the rows of a set went that are no prompts."""
    parts = {"quarantined": len(loaded.quarantined), "with images": loaded.images, **loaded.removed}
    return ", ".join(f"{key} {rows}" for key, rows in parts.items() if rows)


def _rank(prompt: Prompt) -> tuple[int, tuple[str, ...]]:
    """Of rows with the same first question the longest talk stays, whatever the order of the rows."""
    return len(prompt.turns), prompt.turns


def _benchmarks(files: Iterable[str], settings: Settings) -> Iterator[tuple[str, Prompt]]:
    for name in files:
        found: Gathered = gather(Dataset(name="benchmark", source=name, turns="replay"), settings)
        if not len(found.prompts):
            first = found.reasons.commonest()[1].reason if len(found.bad) else "all its rows hold images"
            raise UsageError(f"decontaminate: {name} holds no prompt ({first}): name a file of prompts")
        for prompt in found.prompts:
            yield name, prompt
