"""`eyas.export`: the answers of run directories as a training set; the command `eyas export` calls it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from eyas import config as configs
from eyas.config import RunConfig
from eyas.engine.forget import note_export
from eyas.engine.inputs import load_tokenizer
from eyas.errors import UsageError
from eyas.export import LABELS, Manifest, Options
from eyas.export import export as write_set
from eyas.export.pool import Hire, crew
from eyas.exporters.lines import Compress
from eyas.families import Loaded

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One run directory, or several."""


def export(
    rundirs: Paths,
    out: str | os.PathLike[str],
    *,
    format: str = "rows",  # noqa: A002  # its name in the command and in the manifest
    labels: Literal["strict", "loose"] = "strict",
    max_length: int | None = None,
    min_loss_tokens: int = 1,
    on_length: Literal["keep", "drop"] | None = None,
    eval_share: float = 0.0,
    draft_vocab: Sequence[int] = (),
    rows_per_shard: int = 100_000,
    compress: Compress = "none",
    workers: int | None = 1,
    on: str | None = None,
) -> Manifest:
    """Write the answers of one or several run directories as training rows. Runs may still be going on.

    Args:
        rundirs: the directories; the order does not matter.
        out: folder for the shards, the card and manifest.json; a former export in it is replaced.
        format: "rows", or another of docs/formats.md.
        labels: "strict" exports rows whose ids agree with all that the API counted; "loose" adds those that are off by a
            word or were not counted.
        max_length: cut rows to so many ids from the right, 2 or more.
        min_loss_tokens: leave out rows with fewer supervised tokens.
        on_length: answers that ended at max_tokens: "keep" or "drop"; None: as RUN.toml says.
        eval_share: share of the prompts kept apart in `eval-` shards, below 1.
        draft_vocab: also write draft vocabularies of these sizes.
        rows_per_shard: about so many.
        compress: "none", "gz" or "zst", of shards that are text.
        workers: processes; None: as many as there are cores. A script that asks for more than one needs
            `if __name__ == "__main__":`. The bytes do not depend on it.
        on: "ray" or "ray:ADDRESS": have the rows made by a Ray cluster, which reads the run directories at the same paths.

    Returns:
        What manifest.json says: counts, labels, the yield table, the files with their sha256.

    Raises:
        UsageError: options or runs that do not go together, or an output folder that is not ours.
        StorageError: a run could not be read, or the rows not be written.
    """
    folders = folders_of(rundirs)
    found = [configs.frozen(folder) for folder in folders]
    options = Options(
        out=Path(out),
        format=format,
        labels=labels,
        max_length=max_length,
        min_loss_tokens=min_loss_tokens,
        compress=compress,
        rows_per_shard=rows_per_shard,
        on_length=on_length or on_length_of(found),
        eval_share=eval_share,
        draft_vocab=tuple(sorted(set(draft_vocab))),
        workers=workers,
    )
    check(options)
    manifest = write_set(folders, loader(found[0]), options, crew if on is None else _hired(on))
    for folder in folders:
        note_export(folder, options.out)
    return manifest


def _hired(on: str) -> Hire:
    from eyas.cluster.export import hire_on  # noqa: PLC0415  # loads what only an export over Ray needs
    from eyas.cluster.on_ray import address_of  # noqa: PLC0415

    return hire_on(address_of(on))


def folders_of(paths: Paths) -> tuple[Path, ...]:
    """Run directories, one or several.

    Raises:
        UsageError: none was given.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    folders = tuple(map(Path, several))
    if not folders:
        raise UsageError("no run directory was given: name at least one, [run] dir of a RUN.toml")
    return folders


def check(options: Options) -> None:
    """Look at what a caller in Python may give wrong.

    Raises:
        UsageError: a policy that there is not, or a number that is too small.
    """
    if options.labels not in LABELS:
        raise UsageError(f"labels = {options.labels!r}: give {' or '.join(map(repr, LABELS))}")
    if options.on_length not in ("keep", "drop"):
        raise UsageError(f"on_length = {options.on_length!r}: give 'keep' or 'drop', or None for what RUN.toml says")
    least = {"max_length": 2, "min_loss_tokens": 1, "rows_per_shard": 1}
    for name, fewest in least.items():
        number = getattr(options, name)
        if number is not None and number < fewest:
            raise UsageError(f"{name} = {number}: give {fewest} or more")


def loader(config: RunConfig) -> Callable[[], Loaded]:
    """What loads the family of a run in any process."""
    return partial(_load, config)


def _load(config: RunConfig) -> Loaded:
    return load_tokenizer(config).loaded


def on_length_of(found: Iterable[RunConfig]) -> Literal["keep", "drop"]:
    """What the runs say of answers that ended at max_tokens.

    Raises:
        UsageError: they say different things.
    """
    said: set[Literal["keep", "drop"]] = {"drop" if c.budget.on_length == "drop" else "keep" for c in found}
    if len(said) > 1:
        raise UsageError(
            "the runs differ in [budget] on_length: say --on-length keep or --on-length drop (in Python: on_length=)"
        )
    return said.pop()
