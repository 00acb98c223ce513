"""The export from end to end: merge, learn, pack chunk by chunk, write in order, the manifest last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from eyas import exporters
from eyas.errors import StorageError, UsageError
from eyas.export.chunks import batches, learned
from eyas.export.frequency import Ints, add
from eyas.export.merge import Merged, merge
from eyas.export.options import Manifest, Options
from eyas.export.pool import Crew, Hire, crew
from eyas.export.work import Job, Setup, Worker
from eyas.exporters import Format, card, draft_vocab
from eyas.exporters.lines import SUFFIX
from eyas.exporters.shards import CARD, CARD_MARK, DRAFT_VOCAB, Shard, Shards, may_write_card, prepare, seal
from eyas.exporters.tally import Tally
from eyas.exporters.yields import Funnel
from eyas.families import Loaded
from eyas.tokens import Habits

_MOST_WORKERS = 256


class _What(NamedTuple):
    """What is written: the format, the options, and the ids of the tokenizer (0 unless a draft vocabulary is wanted)."""

    form: Format
    options: Options
    size: int


class _Written(NamedTuple):
    """What the chunks came to."""

    tally: Tally
    funnel: Funnel
    counts: dict[str, Ints]
    shards: tuple[Shard, ...]
    eval_shards: tuple[Shard, ...]


def export(folders: Iterable[Path], load: Callable[[], Loaded], options: Options, hire: Hire = crew) -> Manifest:
    """Write the training set of the answers of some runs, which may still be going on: it holds what has ended.

    With more than one worker a script that calls it needs `if __name__ == "__main__":`, since its processes are spawned.

    Args:
        folders: the run directories, in any order.
        load: loads the family of their model; called once in each process, so it must be picklable.
        options: what to export, and where. A former export there is written anew.
        hire: who does the chunks; processes of this machine, where nothing else is said.

    Raises:
        UsageError: options that do not go together, runs of different targets, or an output folder that is not ours.
        StorageError: a run could not be read, or the rows not be written.
    """
    form = _form(options)
    merged = merge(folders)
    chunks = list(batches(merged.refs, options.works_per_chunk))
    setup = Setup(merged.folders, load, options)
    with hire(setup, options.workers, len(chunks)) as hands:
        what = _What(form, options, _vocab_size(hands, options))
        habits = learned(hands, merged.refs, options.works_per_chunk)
        try:
            prepare(options.out)
            written = _write(hands, (Job(refs, habits) for refs in chunks), Funnel(merged.unanswered), what)
            extras = _draft_vocab(written, what)
            manifest = _manifest(merged, habits, written, extras, what)
            data = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
            _write_card(options.out, data)
            seal(options.out, data)
        except OSError as error:
            raise StorageError(f"the export could not be written ({error}): make room and export again.") from error
    return manifest


def _form(options: Options) -> Format:
    form = exporters.by_name(options.format)
    if options.compress != "none" and not form.text:
        raise UsageError(f"{form.name} is packed by itself: leave --compress {options.compress} away.")
    if not 0 <= options.eval_share < 1:
        raise UsageError(f"--eval-share {options.eval_share} is no share: give 0 or more, and less than 1.")
    if options.workers is not None and not 1 <= options.workers <= _MOST_WORKERS:
        raise UsageError(f"--workers {options.workers}: give 1 to {_MOST_WORKERS}.")
    return form


def _write(hands: Crew, jobs: Iterable[Job], funnel: Funnel, what: _What) -> _Written:
    form, options, size = what
    tally, counts = Tally(), dict[str, Ints]()
    packed = SUFFIX[options.compress]
    train = Shards(options.out, "rows", form, options.rows_per_shard, packed)
    test = Shards(options.out, "eval", form, options.rows_per_shard, packed)
    try:
        for chunk in hands.map(Worker.pack, jobs):
            train.add(chunk.train.data, chunk.train.rows)
            test.add(chunk.test.data, chunk.test.rows)
            for fact in chunk.facts:
                tally.add(fact)
                funnel.add(fact)
            add(counts, chunk.counts, size)
        return _Written(tally, funnel, counts, train.finish(), test.finish())
    finally:
        train.abandon()
        test.abandon()


def _vocab_size(hands: Crew, options: Options) -> int:
    """Ids of the tokenizer; 0 where no draft vocabulary is asked for."""
    if not options.draft_vocab:
        return 0
    size = next(iter(hands.map(Worker.size, [None])))
    if max(options.draft_vocab) > size:
        raise UsageError(
            f"--draft-vocab {max(options.draft_vocab)} is more than the {size} ids that the tokenizer has: give fewer."
        )
    return size


def _draft_vocab(written: _Written, what: _What) -> dict[str, Any]:
    """Write the draft vocabularies; what the manifest keeps of them."""
    if not what.size:
        return {}
    folder = what.options.out / DRAFT_VOCAB
    folder.mkdir()
    return draft_vocab.write(folder, written.counts, what.options.draft_vocab, what.size)


def _write_card(folder: Path, manifest: bytes) -> None:
    if not may_write_card(folder):
        return
    text = card.text(msgspec.json.decode(manifest))
    (folder / CARD).write_text(f"{text.rstrip()}\n\n{CARD_MARK}\n", encoding="utf-8")


def _manifest(
    merged: Merged, habits: dict[str, Habits], written: _Written, vocab: dict[str, Any], what: _What
) -> Manifest:
    form, options, _ = what
    return Manifest(
        schema=1,
        eyas="export",
        format=form.name,
        labels=options.labels,
        model=merged.target.model,
        family=merged.target.family,
        tokenizer=merged.target.tokenizer,
        runs=len(merged.folders),
        duplicates=merged.duplicates,
        datasets=written.tally.datasets(),
        providers=written.tally.providers(),
        sources=written.tally.sources(),
        habits=habits,
        yields=written.funnel.yields(),
        cannot=form.cannot,
        shards=written.shards,
        eval_shards=written.eval_shards,
        draft_vocab=vocab,
        warnings=written.tally.warnings(),
        policy=merged.policy,
    )
