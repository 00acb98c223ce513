"""`eyas.open_run`: run directories opened for reading, also while they run."""

from __future__ import annotations

import heapq
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, Self

from eyas import config as configs
from eyas.api.columns import Columns, Found, columns
from eyas.api.exporting import Paths, check, folders_of, loader, on_length_of
from eyas.config import RunConfig
from eyas.errors import UsageError
from eyas.events import AnyEvent
from eyas.export import Options
from eyas.export.chunks import batches, learned
from eyas.export.merge import common, standing
from eyas.export.pool import Crew
from eyas.export.work import Job, Setup, Worker
from eyas.families import Loaded
from eyas.lock import is_locked
from eyas.records import Reader, Ref, Run
from eyas.report.summary import status
from eyas.report.watched import outlook
from eyas.survey.together import together
from eyas.types import Prompt, Record, Sequence


def open_run(paths: Paths) -> OpenRun:
    """Open a run directory for reading, or several as one: the shards of a run, or runs of the same target.

    Nothing is written, and no lock is taken: a run that goes on is not disturbed. Close it, or use it in `with`; else it is
    closed when nobody names it any more.

    Raises:
        UsageError: a path holds no run, or the runs are of different models, families or tokenizers.
        StorageError: a journal cannot be read.
    """
    return OpenRun(folders_of(paths))


class OpenRun:
    """Run directories, opened for reading. What it tells is as of when it was opened, or of the last `refresh`.

    Where several runs are open, each work has one answer: whole before partial, as in an export of all of them.
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self.folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))
        self._configs = tuple(configs.frozen(folder) for folder in self.folders)
        common(list(zip(self.folders, self._configs, strict=True)))
        with ExitStack() as stack:
            self._runs = tuple(stack.enter_context(closing(Run(folder))) for folder in self.folders)
            self._closing = weakref.finalize(self, stack.pop_all().close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<eyas.OpenRun of {', '.join(map(str, self.folders))}>"

    def close(self) -> None:
        """Close the journals; once more does nothing."""
        self._closing()

    @property
    def config(self) -> RunConfig:
        """What the run was made by; of several the first one's."""
        return self._configs[0]

    @property
    def running(self) -> bool:
        """Whether a process runs one of them now."""
        return any(map(is_locked, self.folders))

    def refresh(self) -> None:
        """Take in what was written since.

        Raises:
            StorageError: a journal cannot be read.
        """
        for run in self._runs:
            run.refresh()

    def status(self) -> dict[str, Any]:
        """The figures of `eyas status --json`; of several runs their sums, as `eyas report` gives them."""
        return together([_status(run, config) for run, config in zip(self._runs, self._configs, strict=True)])

    def prompts(self) -> Iterator[Prompt]:
        """The prompts as their conversations begin, sorted by dataset and id; those that were forgotten have no text left."""
        known = {
            (name, each): run
            for run in reversed(self._runs)
            for name, dataset in run.state.datasets.items()
            for each in dataset.prompts
        }
        for (name, each), run in sorted(known.items(), key=lambda item: item[0]):
            yield run.prompt(name, each)

    def records(self) -> Iterator[Record]:
        """Every paid answer with its prompt as it was asked, sorted by work."""
        with closing(Reader(self.folders)) as reader:
            yield from reader.read(self._refs())

    def sequences(
        self,
        labels: Literal["strict", "loose", "all"] = "strict",
        *,
        max_length: int | None = None,
        min_loss_tokens: int = 1,
        on_length: Literal["keep", "drop"] | None = None,
    ) -> Iterator[Sequence]:
        """Training sequences, rebuilt from all answers as an export does it: the same ids, masks and labels, in its order.

        Args:
            labels: "strict" and "loose" leave out what an export of that policy leaves out; "all" leaves out nothing.
            max_length, min_loss_tokens, on_length: as those of `export`.

        Raises:
            UsageError: an option that does not hold, or the tokenizer cannot be loaded.
            StorageError: a text cannot be read.
        """
        options = Options(
            out=Path(),
            labels="loose" if labels == "all" else labels,
            max_length=max_length,
            min_loss_tokens=min_loss_tokens,
            on_length=on_length or on_length_of(self._configs),
        )
        check(options)
        return (sequence for sequence, reason in self._judged(options) if labels == "all" or not reason)

    def table(self, of: Literal["answers", "attempts"] = "answers") -> Columns:
        """Figures as columns of numpy arrays; `pandas.DataFrame`, `polars.DataFrame` and `pyarrow.table` take them as they are.

        Args:
            of: "answers", sorted by work, or "attempts": every request, also those that failed, in their order.

        Returns:
            Columns by name, described in docs/api.md. `label` is the one that the run gave on its way; an export labels anew.

        Raises:
            UsageError: another word for `of`.
        """
        if of == "attempts":
            return columns(Found(run, each) for run in self._runs for each in run.state.attempts.look())
        if of != "answers":
            raise UsageError(f"table({of!r}): give 'answers' or 'attempts'")
        places = {(ref.run, ref.attempt): place for place, ref in enumerate(self._refs())}
        found = [
            (places[number, each.id], Found(run, each))
            for number, run in enumerate(self._runs)
            for each in run.state.attempts.look()
            if (number, each.id) in places
        ]
        return columns(each for _, each in sorted(found, key=lambda item: item[0]))

    def events(self) -> Iterator[AnyEvent]:
        """All that happened, in order of time: what the journal holds, and State is folded from (eyas/events.py)."""
        streams = [(event for _, event in run.store.events()) for run in self._runs]
        # A journal's order is the truth of its run, whatever its clock did meanwhile.
        return streams[0] if len(streams) == 1 else heapq.merge(*streams, key=attrgetter("at"))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, special ones included, by the target's tokenizer.

        Raises:
            UsageError: it cannot be loaded, or has no such id.
        """
        try:
            return self._family.vocab.decode(list(ids))
        except KeyError as error:
            raise UsageError(f"the tokenizer has no id {error}: give ids of this run's sequences") from None

    @cached_property
    def _family(self) -> Loaded:
        return loader(self.config)()

    def _refs(self) -> list[Ref]:
        return standing(self._runs)[0]

    def _judged(self, options: Options) -> Iterator[tuple[Sequence, str]]:
        """Sequences, and why each is not exported."""
        refs, size = self._refs(), options.works_per_chunk
        with closing(Worker(Setup(self.folders, lambda: self._family, options))) as worker:
            habits = learned(Crew(worker, None, 1), refs, size)
            for chunk in batches(refs, size):
                for _, sequence, fact in worker.judged(Job(chunk, habits)):
                    yield sequence, fact.reason


def _status(run: Run, config: RunConfig) -> dict[str, Any]:
    running = is_locked(run.folder)
    return status(run.state, running=running, predicted=outlook(run.state, config, time.time()) if running else None)
