"""Records → training sequences → one trainer format in shards; the manifest is written last.

Two passes over the answers: the first learns how each provider counts and cuts, the second rebuilds the ids under what
was learned. Both see all answers in the order of their works, so the bytes do not depend on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from eyas import exporters
from eyas.errors import StorageError, UsageError
from eyas.exporters.shards import Shard, Shards, prepare, seal
from eyas.exporters.tally import DatasetCount, Tally
from eyas.families import Loaded
from eyas.tokens import SPELLED, Habits, evidence, learn, rebuild
from eyas.types import STRICT, Finish, Label, Record, Sequence, Work

LABELS = {"strict": STRICT, "loose": STRICT | {Label.NEAR, Label.UNCOUNTED}}
"""What each policy exports."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to export, and where.

    Attributes:
        out: the folder; made if need be, a former export in it is replaced.
        model: the target's model id, for the manifest.
        format: name of an exporter.
        labels: "strict" exports what agrees with the API's counts, "loose" adds NEAR and UNCOUNTED.
        max_length: rows are cut to so many ids from the right, as the trainers do; None: never.
        min_loss_tokens: rows with fewer supervised tokens are left out.
        compress: of the shards.
        rows_per_shard: rows in a shard; SpecForge takes one file, so the default holds a usual run in one.
        on_length: whether answers that ended at max_tokens are kept (without a stop token) or dropped.
    """

    out: Path
    model: str = ""
    format: str = "rows"
    labels: Literal["strict", "loose"] = "strict"
    max_length: int | None = None
    min_loss_tokens: int = 1
    compress: Literal["none", "gz", "zst"] = "none"
    rows_per_shard: int = 100_000
    on_length: Literal["keep", "drop"] = "keep"


class Manifest(msgspec.Struct, frozen=True):
    """What `manifest.json` says; `eyas` names its kind."""

    schema: int
    eyas: str
    format: str
    labels: str
    model: str
    family: str
    datasets: dict[str, DatasetCount]
    habits: dict[str, Habits]
    shards: tuple[Shard, ...]
    warnings: tuple[str, ...]


def export(
    records: Callable[[], Iterator[Record]], family: Loaded, thinking: Callable[[str], bool], options: Options
) -> Manifest:
    """Write the training set of some answers.

    Args:
        records: gives all answers anew at each call, sorted by work and one for each work.
        family: the family of the model, with its tokenizer.
        thinking: whether a dataset, by name, was asked in thinking mode.
        options: what to export, and where.

    Raises:
        UsageError: an unknown format, an output folder that is not ours, or answers that are out of order or double.
        StorageError: the rows could not be written.
    """
    exporter = exporters.by_name(options.format)
    habits = learn_habits(records, family, thinking)
    prepare(options.out)
    tally = Tally()
    rows = _rows(
        records(), lambda record: rebuild(record, family, habits, thinking(record.work.dataset)), tally, options
    )
    try:
        shards = Shards(options.out, options.compress, options.rows_per_shard)
        for record, sequence in rows:
            text = family.vocab.decode(sequence.prompt_ids + sequence.completion_ids)
            shards.add(exporter(record, sequence, text))
        manifest = Manifest(
            schema=1,
            eyas="export",
            format=options.format,
            labels=options.labels,
            model=options.model,
            family=family.name,
            datasets=tally.datasets(),
            habits=habits,
            shards=shards.finish(),
            warnings=tally.warnings(),
        )
        seal(options.out, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    except OSError as error:
        raise StorageError(f"the export could not be written ({error}): make room and export again.") from error
    return manifest


def learn_habits(
    records: Callable[[], Iterator[Record]], family: Loaded, thinking: Callable[[str], bool]
) -> dict[str, Habits]:
    """The providers' habits, learned from all answers of a run."""
    found = (evidence(record, family, thinking(record.work.dataset)) for record in _ordered(records()))
    return learn(item for item in found if item is not None)


def _rows(
    records: Iterator[Record], sequence_of: Callable[[Record], Sequence], tally: Tally, options: Options
) -> Iterator[tuple[Record, Sequence]]:
    """The answers that are exported, with their tokens; all are counted."""
    for record in _ordered(records):
        sequence = sequence_of(record)
        if options.max_length is not None and len(sequence.loss_mask) > options.max_length:
            sequence = _cut(sequence, options.max_length)
            tally.note(f"answers were cut to {options.max_length} ids")
        if sequence.reason == SPELLED:
            tally.note(f"answers: {SPELLED}")
        excluded = exclusion(record, sequence, options)
        tally.add(record, sequence, excluded)
        if not excluded:
            yield record, sequence


def exclusion(record: Record, sequence: Sequence, options: Options) -> str:
    """Why an answer is not exported, or an empty string. Trainers fail on rows in which no two neighbours count."""
    if sequence.label not in LABELS[options.labels]:
        return f"label {sequence.label}"
    if options.on_length == "drop" and record.completion.finish is Finish.LENGTH:
        return "ended at max_tokens"
    mask = bytes(sequence.loss_mask)
    if b"\1" not in mask:
        return "no supervised token"
    if b"\1\1" not in mask:
        return "no two adjacent supervised tokens"
    if mask.count(1) < options.min_loss_tokens:
        return f"fewer than {options.min_loss_tokens} supervised tokens"
    return ""


def _cut(sequence: Sequence, length: int) -> Sequence:
    """The first ids of a sequence."""
    return msgspec.structs.replace(
        sequence,
        prompt_ids=sequence.prompt_ids[:length],
        completion_ids=sequence.completion_ids[: max(0, length - len(sequence.prompt_ids))],
        loss_mask=sequence.loss_mask[:length],
    )


def _ordered(records: Iterator[Record]) -> Iterator[Record]:
    """The records as they come, as long as their works ascend."""
    last: Work | None = None
    for record in records:
        if last is not None and record.work <= last:
            what = "there are two answers" if record.work == last else "answers are out of order"
            raise UsageError(f"{what} at {record.work.key}: export takes them sorted, one for each work.")
        last = record.work
        yield record
