"""One chunk of works: read, rebuild, judge, pack. Runs in any process; the same job gives the same bytes."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from eyas import exporters
from eyas.export.frequency import Counts, count
from eyas.export.judge import exclusion, judge
from eyas.export.options import Options
from eyas.export.texts import Texts
from eyas.exporters import Row, lines
from eyas.exporters.tally import Fact
from eyas.families import Loaded
from eyas.records import Reader, Ref
from eyas.tokens import Evidence, Habits, evidence, habit_key, learn, rebuild
from eyas.types import Record, Sequence, Work

__all__ = ["Job", "Packed", "Setup", "Worker", "exclusion", "learn_habits", "sample", "side"]

LEARNED = 500
"""Habits are learned from so many answers of each provider and mode; more say nothing new, and are encoded twice."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker needs once: where the runs are, how the family is loaded (picklable), and what is exported."""

    folders: tuple[Path, ...]
    load: Callable[[], Loaded]
    options: Options


class Job(msgspec.Struct, frozen=True):
    """A chunk to export under what was learned."""

    refs: tuple[Ref, ...]
    habits: dict[str, Habits]


class Side(msgspec.Struct, frozen=True):
    """The packed rows of a chunk that go one way."""

    data: bytes
    rows: int


@dataclass(frozen=True, slots=True)
class Packed:
    """A chunk, done: rows to train and to evaluate on, what is counted, and id counts if they are asked for."""

    train: Side
    test: Side
    facts: tuple[Fact, ...]
    counts: Counts


class Worker:
    """Does jobs; keeps the runs open and the tokenizer loaded between them."""

    def __init__(self, setup: Setup) -> None:
        self._options, self._load = setup.options, setup.load
        self._form = exporters.by_name(setup.options.format)
        self._reader = Reader(setup.folders)

    @cached_property
    def family(self) -> Loaded:
        """The family, loaded when it is first needed."""
        return self._load()

    @cached_property
    def _texts(self) -> Texts:
        return Texts(self.family.vocab)

    def size(self, _: None = None) -> int:
        """How many ids the vocabulary has."""
        return self.family.vocab.size

    def learn(self, refs: tuple[Ref, ...]) -> list[Evidence]:
        """What some answers say about their providers."""
        records = zip(refs, self._reader.read(refs), strict=True)
        found = (evidence(record, self.family, ref.thinking) for ref, record in records)
        return [item for item in found if item is not None]

    def judged(self, job: Job) -> Iterator[tuple[Record, Sequence, Fact]]:
        """The answers of a chunk: each with its sequence within --max-length and what is counted of it."""
        for ref, record in zip(job.refs, self._reader.read(job.refs), strict=True):
            sequence = rebuild(record, self.family, job.habits, ref.thinking)
            yield record, *judge(record, sequence, self._options)

    def pack(self, job: Job) -> Packed:
        """The rows of a chunk, packed; compressed if they are text."""
        options, form, facts = self._options, self._form, list[Fact]()
        sides: tuple[list[Row], list[Row]] = ([], [])
        for record, judged, found in self.judged(job):
            fact = found
            if not fact.reason:
                row = Row(record, judged, self._texts.of(judged.prompt_ids + judged.completion_ids))
                if refused := form.refuses(row):
                    fact = msgspec.structs.replace(fact, step="kept", reason=refused)
                else:
                    sides[side(record.work, options.eval_share)].append(row)
            facts.append(fact)
        train, test = map(self._packed, sides)
        counts = count(sides[0] + sides[1]) if options.draft_vocab else {}
        return Packed(train, test, tuple(facts), counts)

    def close(self) -> None:
        """Close the runs."""
        self._reader.close()

    def _packed(self, rows: list[Row]) -> Side:
        if not rows:
            return Side(b"", 0)
        data = self._form.pack(rows)
        return Side(lines.compressed(data, self._options.compress) if self._form.text else data, len(rows))


def side(work: Work, share: float) -> int:
    """1 if all answers to the prompt of a work are kept for evaluation, else 0.

    The dataset has no say: a prompt that stands in two of them is on one side.
    """
    return int(place_of(work.prompt_id) < share * 2**64)


def sample(refs: Iterable[Ref]) -> list[Ref]:
    """The answers that habits are learned from: of each provider and mode those whose works have the smallest hashes."""
    groups: defaultdict[tuple[str, str, bool], list[tuple[int, Ref]]] = defaultdict(list)
    for ref in refs:
        # Where nobody said who answered, the endpoint that was asked says nearly as much.
        key = (ref.provider, "" if ref.provider else ref.tag, ref.thinking)
        groups[key].append((place_of(ref.work.key), ref))
    chosen = (sorted(group, key=lambda each: (each[0], each[1].work))[:LEARNED] for group in groups.values())
    return sorted((ref for group in chosen for _, ref in group), key=lambda ref: ref.work)


def learn_habits(
    records: Callable[[], Iterator[Record]], family: Loaded, thinking: Callable[[str], bool]
) -> dict[str, Habits]:
    """The providers' habits, learned from answers of a run as export does: at most 500 of each provider and mode."""
    groups: defaultdict[tuple[str, str], list[tuple[int, Work]]] = defaultdict(list)
    for record in records():
        provider = habit_key(record.completion.provider, thinking=thinking(record.work.dataset))
        groups[provider, "" if record.completion.provider else record.tag].append(
            (place_of(record.work.key), record.work)
        )
    chosen = {work for group in groups.values() for _, work in sorted(group)[:LEARNED]}
    asked = (record for record in records() if record.work in chosen)
    found = (evidence(record, family, thinking(record.work.dataset)) for record in asked)
    return learn(item for item in found if item is not None)


def place_of(text: str) -> int:
    """A number below 2**64 that a text always has, spread evenly."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
