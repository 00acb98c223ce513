"""What a strict export would make of the answers: its own pass over them, without a shard being written."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from eyas.export import Options
from eyas.export.chunks import batches, learned
from eyas.export.frequency import Counts, Ints, add, count
from eyas.export.merge import Merged, merge
from eyas.export.pool import Crew, crew
from eyas.export.work import Job, Setup, Worker, place_of
from eyas.exporters import Row, draft_vocab
from eyas.exporters.tally import Fact, Tally
from eyas.exporters.yields import Funnel, Yields
from eyas.families import Loaded
from eyas.records import Ref
from eyas.report.document import Coverage, Lengths, Sample
from eyas.survey.choose import Kind, Shelf, tokens_each
from eyas.survey.lengths import Measured
from eyas.survey.reading import MARKER, REASONING, UNENDED, channels, sample, total
from eyas.tokens import Habits
from eyas.types import Label

BUDGET = 1_000_000
"""Bytes of all samples in a page, about."""
READ_AT_ONCE = 4
MOST_OF_A_KIND = 60


@dataclass(slots=True)
class OfTag:
    """What a strict export makes of the answers of one endpoint: tokens that it trains on, and labels."""

    supervised: int = 0
    labels: dict[str, int] = field(default_factory=dict[str, int])


class Judged(NamedTuple):
    """The answers, judged."""

    yields: Yields
    duplicates: int
    tags: dict[str, OfTag]
    lengths: dict[str, Lengths]
    finishes: dict[str, dict[str, int]]
    labels: dict[str, dict[str, int]]
    coverage: Coverage | None
    samples: list[Sample]
    warnings: tuple[str, ...]


class Seen(msgspec.Struct, frozen=True):
    """What is counted of one answer beside its fact: tokens of its prompt, of its reasoning, of content and calls."""

    fact: Fact
    finish: str
    prompt: int
    reasoning: int
    answer: int


class Looked(NamedTuple):
    """A chunk: what is counted of each answer, in the order of the job, and how often ids are supervised."""

    seen: tuple[Seen, ...]
    counts: Counts


def judge(folders: Iterable[Path], load: Callable[[], Loaded], options: Options, *, text: bool = True) -> Judged:
    """Judge the answers of some runs as `export` does with these options, of which `out` and `format` say nothing here.

    Args:
        folders: the run directories.
        load: loads the family of their model, see `export`.
        options: what would be exported.
        text: whether samples are wanted.

    Raises:
        UsageError: no run directory, or runs of different targets.
        StorageError: a run could not be read.
    """
    merged = merge(folders)
    chunks = list(batches(merged.refs, options.works_per_chunk))
    with crew(Setup(merged.folders, load, options), options.workers, len(chunks)) as hands:
        habits = learned(hands, merged.refs, options.works_per_chunk)
        sums = _Sums(merged)
        size = next(iter(hands.map(Worker.size, [None]))) if chunks else 0
        for chunk, looked in zip(chunks, hands.map(look, (Job(refs, habits) for refs in chunks)), strict=True):
            sums.add(chunk, looked, size)
        samples = _samples(hands, merged.refs, habits, sums.shelf) if text else []
    return sums.judged(samples, size)


def look(worker: Worker, job: Job) -> Looked:
    """Judge a chunk; runs in any process."""
    family, seen, rows = worker.family, list[Seen](), list[Row]()
    for ref, (record, sequence, fact) in zip(job.refs, worker.judged(job), strict=True):
        completion, ids = record.completion, sequence.completion_ids
        runs = channels(ids, family.parts(completion, ref.thinking), family.vocab)
        reasoning = total(runs, REASONING)
        answer = len(ids) - reasoning - total(runs, MARKER)
        seen.append(Seen(fact, completion.finish or UNENDED, len(sequence.prompt_ids), reasoning, answer))
        if not fact.reason:
            rows.append(Row(record, sequence, ""))
    return Looked(tuple(seen), count(rows))


def read(worker: Worker, job: Job, most: int) -> list[Sample]:
    """The answers of a chunk as a person reads them, the first `most` tokens of each; runs in any process."""
    return [
        sample(record, sequence, fact, worker.family, thinking=ref.thinking, most=most)
        for ref, (record, sequence, fact) in zip(job.refs, worker.judged(job), strict=True)
    ]


def _samples(hands: Crew, refs: Sequence[Ref], habits: dict[str, Habits], shelf: Shelf) -> list[Sample]:
    """Answers to read, until the budget is used."""
    wanted = [refs[number] for number in shelf.order()]
    task = partial(read, most=tokens_each(shelf.kinds, BUDGET))
    jobs = (Job(each, habits) for each in batches(wanted, READ_AT_ONCE))
    return list(_within(each for found in hands.map(task, jobs) for each in found))


def _within(samples: Iterable[Sample]) -> Iterator[Sample]:
    left = BUDGET
    for each in samples:
        left -= weight(each)
        if left < 0:
            return
        yield each


def weight(sample_: Sample) -> int:
    """Bytes that a sample takes in a page, where `<`, `>` and `&` are escaped."""
    data = msgspec.json.encode(sample_)
    return len(data) + 5 * sum(map(data.count, (b"<", b">", b"&")))


class _Sums:
    """Sums up chunks, in their order."""

    def __init__(self, merged: Merged) -> None:
        self.shelf = Shelf(MOST_OF_A_KIND)
        self._duplicates = merged.duplicates
        self._tally, self._funnel, self._measured = Tally(), Funnel(merged.unanswered), Measured()
        self._counts: dict[str, Ints] = {}
        self._supervised: Counter[str] = Counter()
        self._by_tag: defaultdict[str, Counter[Label]] = defaultdict(Counter)
        self._labels: defaultdict[str, Counter[Label]] = defaultdict(Counter)
        self._finishes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._number = 0

    def add(self, refs: Iterable[Ref], looked: Looked, size: int) -> None:
        """Take in a chunk."""
        for ref, seen in zip(refs, looked.seen, strict=True):
            fact = seen.fact
            self._tally.add(fact)
            self._funnel.add(fact)
            self._measured.add(fact.dataset, seen.prompt, seen.reasoning, seen.answer)
            self._supervised[ref.tag] += 0 if fact.reason else fact.supervised
            self._by_tag[ref.tag][fact.label] += 1
            self._labels[fact.dataset][fact.label] += 1
            self._finishes[fact.dataset][seen.finish] += 1
            kind = Kind(fact.dataset, fact.provider, fact.label.value, seen.finish)
            self.shelf.add(kind, place_of(ref.work.key), self._number)
            self._number += 1
        add(self._counts, looked.counts, size)

    def judged(self, samples: list[Sample], size: int) -> Judged:
        """What it came to; `size` are the ids of the vocabulary."""
        return Judged(
            yields=self._funnel.yields(),
            duplicates=self._duplicates,
            tags={tag: OfTag(self._supervised[tag], _ordered(counts)) for tag, counts in self._by_tag.items()},
            lengths=self._measured.lengths(),
            finishes={name: dict(sorted(counts.items())) for name, counts in sorted(self._finishes.items())},
            labels={name: _ordered(counts) for name, counts in sorted(self._labels.items())},
            coverage=_coverage(draft_vocab.told(self._counts, size)) if self._counts else None,
            samples=samples,
            warnings=self._tally.warnings(),
        )


def _ordered(counts: Counter[Label]) -> dict[str, int]:
    """Labels from the surest to the unusable."""
    return {label.value: counts[label] for label in Label if counts[label]}


def _coverage(told: dict[str, Any]) -> Coverage:
    shares = cast("dict[str, Any]", told["coverage"])
    whole = cast("dict[str, float]", shares["all"])
    datasets = cast("dict[str, dict[str, float]]", shares["datasets"])
    return Coverage(
        sizes=list(map(int, whole)),
        total=list(whole.values()),
        datasets={name: list(each.values()) for name, each in datasets.items()},
        distinct=told["distinct"],
        vocab_size=told["vocab_size"],
    )
