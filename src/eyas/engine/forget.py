"""Prompts removed for good: a tombstone of ids, and every text of theirs erased from the run directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from eyas.errors import StorageError
from eyas.events import AnyEvent, Forgotten, Intent, PromptAdded, Settled, TurnAdded, TurnRefused
from eyas.journal import Journal, Store
from eyas.prompts import write_quarantine
from eyas.prompts.kept import NAME as KEPT
from eyas.prompts.read import BadRow
from eyas.records import Run
from eyas.types import Prompt, Source

QUARANTINE = "quarantine.jsonl"
IMPORT_QUARANTINE = "import-quarantine.jsonl"
EXPORTS = "exports.jsonl"
"""Where exports were written to: one JSON object a line with `out`, a folder, absolute. Nothing needs the file."""
_ENOUGH = 60
"""Characters that tell a text; the quarantine holds the first few hundred bytes of a row."""

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is to be removed: prompts by (dataset, id), with the texts and lines that name them.

    `again`: how many of them were forgotten before; they are erased once more, should that have been broken off.
    """

    names: tuple[Name, ...]
    again: int
    answers: int
    cost: int
    texts: frozenset[str] = field(repr=False)
    sources: tuple[Source, ...] = ()


class Erased(NamedTuple):
    """What was done beside the journal: lines taken out of the quarantine, and exports that may hold a prompt still."""

    quarantined: int
    exports: tuple[Path, ...]


def find(folder: Path, keys: Iterable[str]) -> Doomed:
    """The prompts that keys name: DATASET/PROMPTID, or the id of any answer to it.

    Raises:
        UsageError: the run never had such a prompt.
        StorageError: the journal cannot be read.
    """
    with closing(Run(folder)) as run:
        names = tuple(dict.fromkeys(_name(run, key) for key in keys))
        before = [name for name in names if name[1] in _forgotten(run, name[0])]
        prompts = [run.prompt(*name) for name in names if name not in before]
        works = [known for work, known in run.state.works.items() if (work.dataset, work.prompt_id) in set(names)]
        cost = sum(a.cost or 0 for a in run.state.attempts.values() if (a.work.dataset, a.work.prompt_id) in set(names))
    return Doomed(
        names=names,
        again=len(before),
        answers=sum(known.answer is not None for known in works),
        cost=cost,
        texts=frozenset(text for prompt in prompts for text in _texts(prompt)),
        sources=tuple(prompt.source for prompt in prompts if prompt.source is not None),
    )


async def forget(folder: Path, doomed: Doomed, wall: Callable[[], float]) -> Erased:
    """Remove prompts of a run whose lock the caller holds.

    The ids are durable before a text goes: broken off at any point, the same command again does the rest.

    Raises:
        StorageError: the journal cannot be written, or another process reads it all the while.
    """
    quarantined = sum(_clean(folder / name, doomed) for name in (QUARANTINE, IMPORT_QUARANTINE))
    for kept in (KEPT, f"{KEPT}.tmp"):
        (folder / kept).unlink(missing_ok=True)
    with closing(Store(folder)) as store:
        seqs, attempts = _traces(store.events(), set(doomed.names))
    with closing(Journal(folder)) as journal:
        await journal.write(Forgotten(at=wall(), prompts=doomed.names))
        erased = journal.erase(seqs, attempts)
    if not erased:
        raise StorageError(
            f"{journal.path}: the prompts are forgotten, but a process that reads the run keeps their old bytes in the file: "
            "wait for it, then run the same command again"
        )
    return Erased(quarantined, tuple(_exports(folder / EXPORTS)))


def _name(run: Run, key: str) -> Name:
    dataset, _, rest = key.partition("/")
    prompt_id = rest.partition("/")[0]
    if prompt_id not in _forgotten(run, dataset):
        run.prompt(dataset, prompt_id)  # says so where the run has none
    return dataset, prompt_id


def _forgotten(run: Run, dataset: str) -> set[str]:
    known = run.state.datasets.get(dataset)
    return known.forgotten if known is not None else set()


def _traces(events: Iterable[tuple[int, AnyEvent]], names: set[Name]) -> tuple[list[int], set[int]]:
    """Events that have a text of those prompts, and their attempts; a prompt that came and went has several."""
    seqs: list[int] = []
    attempts: set[int] = set()
    for seq, event in events:
        match event:
            case PromptAdded(dataset=dataset, prompt_id=prompt_id) if (dataset, prompt_id) in names:
                seqs.append(seq)
            case TurnAdded(work=work) | TurnRefused(work=work) if (work.dataset, work.prompt_id) in names:
                seqs.append(seq)
            case Intent(work=work) if (work.dataset, work.prompt_id) in names:
                seqs.append(seq)
                attempts.add(event.attempt)
            case Settled(attempt=attempt) if attempt in attempts:
                seqs.append(seq)
            case _:
                pass
    return seqs, attempts


def _clean(path: Path, doomed: Doomed) -> int:
    """Take the lines out of the quarantine that hold such a text; how many."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return 0
    rows: list[BadRow] = []
    for line in lines:
        with suppress(msgspec.DecodeError):
            rows.append(msgspec.json.decode(line, type=BadRow))
    kept = [row for row in rows if not _holds(row, doomed)]
    if len(kept) < len(lines):
        write_quarantine(path, kept)
    return len(lines) - len(kept)


def _holds(row: BadRow, doomed: Doomed) -> bool:
    places = {(source.file, source.line) for source in doomed.sources}
    return (row.file, row.line) in places or any(text[:_ENOUGH] in row.text for text in doomed.texts)


def _texts(prompt: Prompt) -> Iterator[str]:
    """Every text of a prompt, as it is and as JSON spells it."""
    for message in (*prompt.messages, *({"content": turn} for turn in prompt.turns)):
        if message.get("role") != "system":  # many prompts share it, and RUN.toml may hold it
            for text in filter(None, map(str.strip, _strings(message.get("content")))):
                yield from (text, msgspec.json.encode(text).decode()[1:-1])


def _strings(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in cast("list[Any]", content):
            if isinstance(part, Mapping):
                yield from _strings(cast("Mapping[str, Any]", part).get("text"))


def note_export(folder: Path, out: Path) -> None:
    """Note in a run directory where an export of it went, so that `forget` can name it; without room it goes unsaid."""
    line = msgspec.json.encode({"out": str(out.resolve())}) + b"\n"
    with suppress(OSError), open(folder / EXPORTS, "ab", opener=_private) as notes:  # Path has no opener
        notes.write(line)


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner may read, like all others of a run."""
    return os.open(path, flags, 0o600)


def _exports(path: Path) -> Iterator[Path]:
    """Exports of the run that were noted and are still there."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return
    seen: set[Path] = set()
    for line in lines:
        try:
            out = Path(msgspec.json.decode(line, type=_Export).out)
        except msgspec.DecodeError:
            continue
        if out not in seen and (out / "manifest.json").exists():
            seen.add(out)
            yield out


class _Export(msgspec.Struct, frozen=True):
    out: str
