"""Several run directories as one: which answer stands for each work. The result does not depend on their order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from eyas import config as configs
from eyas.config import RunConfig
from eyas.errors import UsageError
from eyas.export.spent import unanswered
from eyas.exporters.policy import KEYS
from eyas.exporters.yields import Unanswered
from eyas.families import FAMILIES, guess
from eyas.records import Reader, Ref, Run
from eyas.types import Verdict

_TOKENIZER_FILES = ("tiktoken.model", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


class Target(msgspec.Struct, frozen=True):
    """What all runs of one set have in common; files are named by their sha256, as their folders say nothing.

    Attributes:
        model, family: as RUN.toml names them, the family guessed where it does not.
        tokenizer: a hub id, or the sha256 of a local folder's files.
        chat_template: the sha256 of one that RUN.toml gives, else empty.
    """

    model: str
    family: str
    tokenizer: str
    chat_template: str


class Merged(NamedTuple):
    """One answer for each work, sorted by work; what brought none; how many answers another one stands for; `Manifest.policy`."""

    target: Target
    folders: tuple[Path, ...]
    refs: list[Ref]
    unanswered: list[Unanswered]
    duplicates: int
    policy: dict[str, tuple[Any, ...]]


def merge(folders: Iterable[Path]) -> Merged:
    """Read the state of every run directory; one given twice counts once. Runs may still be going on.

    Raises:
        UsageError: no run directory, or runs of different models, families or tokenizers.
        StorageError: a journal cannot be read.
    """
    paths = tuple(dict.fromkeys(folder.resolve() for folder in folders))
    known = [(path, configs.frozen(path)) for path in paths]
    target = common(known)
    with ExitStack() as stack:
        runs = [stack.enter_context(closing(Run(path))) for path in paths]
        chosen, duplicates = standing(runs)
        lost = unanswered([run.state for run in runs], {ref.work: (ref.run, ref.attempt) for ref in chosen})
    policy = _policy([config for _, config in known])
    return Merged(target, paths, chosen, lost, duplicates, policy)


def standing(runs: Sequence[Run]) -> tuple[list[Ref], int]:
    """One answer for each work of some runs, sorted by work; and how many answers another one stands for."""
    with closing(Reader([run.folder for run in runs])) as reader:
        found = [ref for place, run in enumerate(runs) for ref in run.refs(_mode(run), place)]
        found.sort(key=lambda ref: (ref.work, _rank(ref)))
        groups = [list(group) for _, group in groupby(found, key=lambda ref: ref.work)]
        chosen = [_choose(group, reader) for group in groups]
    return chosen, len(found) - len(chosen)


def common(configs_of: Sequence[tuple[Path, RunConfig]]) -> Target:
    """What all runs have in common; raises UsageError where there is none, or they differ."""
    if not configs_of:
        raise UsageError("no run directory was given: name at least one, [run] dir of a RUN.toml")
    first, config = configs_of[0]
    target = _target(config)
    for path, other in configs_of[1:]:
        for name in Target.__struct_fields__:
            ours, theirs = getattr(target, name), getattr(_target(other), name)
            if ours != theirs:
                raise UsageError(
                    f"{first} and {path} cannot be one set: {name} is {ours} in one and {theirs} in the other; "
                    "export them apart"
                )
    return target


def _policy(configs_of: Sequence[RunConfig]) -> dict[str, tuple[Any, ...]]:
    """What the runs ask of the API, key by key: each value once, in an order that the runs' own does not change."""
    return {key: tuple(sorted({getattr(config.providers, key) for config in configs_of}, key=str)) for key in KEYS}


def _target(config: RunConfig) -> Target:
    name = config.target.family or guess(config.target.model) or ""
    spec = config.target.tokenizer or (FAMILIES[name].tokenizer if name in FAMILIES else "")
    given = config.target.chat_template
    folder = config.base / spec
    return Target(
        config.target.model,
        name,
        _sum(folder, _TOKENIZER_FILES) if spec and folder.is_dir() else spec,
        _sum(config.base, (given,)) if given else "",
    )


def _sum(folder: Path, names: Iterable[str]) -> str:
    """One sha256 over those of the files that are there."""
    digest = hashlib.sha256()
    for name in names:
        path = folder / name
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{digest.hexdigest()}"


def _mode(run: Run) -> Callable[[str], bool]:
    """The mode of each dataset: as the journal has it, else as the config does."""
    config = configs.frozen(run.folder)

    def thinking(name: str) -> bool:
        known = run.state.datasets.get(name)
        return config.thinking(name) if known is None or known.thinking is None else known.thinking

    return thinking


def _rank(ref: Ref) -> tuple[object, ...]:
    """Whole answers first, then the smallest generation id; then whatever tells two answers apart, but for their run."""
    counts = tuple(-1 if count is None else count for count in ref.counts or ())
    cost = -1 if ref.cost is None else ref.cost
    return (ref.verdict is not Verdict.DONE, ref.generation_id, ref.provider, ref.tag, counts, cost, ref.thinking)


def _choose(group: list[Ref], reader: Reader) -> Ref:
    """The first of answers to one work that are sorted by rank; where ranks are equal, by their texts."""
    equal = [ref for ref in group if _rank(ref) == _rank(group[0])]
    return equal[0] if len(equal) == 1 else min(equal, key=reader.payloads)
