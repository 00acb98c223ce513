"""Answers made elsewhere join a run: each to the work that it answers, for nothing, as an attempt of its own.

Money and quotas count them like all answers; nothing is asked. A row that does not fit is written down with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from eyas.answers import TAG, Answer, BadAnswer, Form, answers_of, question_of
from eyas.config import RunConfig
from eyas.engine.accepted import NO_PROMPT, TOO_SHORT, beginning, completion_of, objection, same
from eyas.engine.inputs import Tokenizer
from eyas.engine.places import Places, Spot
from eyas.engine.retry import Case, Policy, decide, policy_of
from eyas.engine.settle import count_tokens, settled_event
from eyas.errors import UsageError
from eyas.events import AnyEvent, Intent, Labelled, TurnAdded
from eyas.journal import Journal, Payload
from eyas.prompts import BadRow, Row, rows
from eyas.prompts.read import TEXT_PREFIX
from eyas.prompts.spool import Spool
from eyas.records import Run
from eyas.standing import ANSWERED
from eyas.tokens import label
from eyas.types import Completion, Label, Prices, Prompt, Record, Work

FREE = Prices(0, 0)
BATCH = 500
"""Answers between two waits for the disk."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is imported: a source as `prompts.rows` takes it, the dataset it belongs to, who made it, its form (None: guessed)."""

    source: str
    dataset: str
    provider: str = "imported"
    form: Form | None = None
    base: Path = Path()


@dataclass(slots=True)
class Brought:
    """What became of the rows of an import; `bad` are answers and rows in quarantine, read from disk.

    Attributes:
        rows: rows read; each may hold several answers.
        taken: answers that joined, by label, and their tokens.
        already: answers to works that have one.
        forgotten: answers to prompts that the user had removed for good.
        files: the files that were read, by name.
        kept, limit: tokens of the dataset now, and its quota.
        owed: works of the dataset that are still owed.
    """

    bad: Spool[BadRow]
    rows: int = 0
    taken: Counter[Label] = field(default_factory=Counter[Label])
    tokens: Counter[Label] = field(default_factory=Counter[Label])
    already: int = 0
    forgotten: int = 0
    files: set[str] = field(default_factory=set[str])
    kept: int = 0
    limit: int | None = None
    owed: int = 0


@dataclass(slots=True)
class Importer:
    """Takes answers one by one. `write` appends to the journal; without it nothing is kept (a dry run)."""

    run: Run
    wish: Wish
    config: RunConfig
    tokens: Tokenizer
    wall: Callable[[], float]
    write: Callable[[AnyEvent, Payload], Awaitable[None]] | None = None
    found: Brought = field(default_factory=lambda: Brought(Spool(BadRow)))
    _known: set[Work] = field(default_factory=set[Work])
    _first: int = 0

    async def bring(self, source: Iterable[Row | BadRow]) -> Brought:
        """Take in all rows; awaiting means that what joined is durable.

        Raises:
            UsageError: the source breaks off, or the family lacks the dataset's mode.
            StorageError: the journal cannot be written.
        """
        self._first = self.run.state.last_attempt
        places = Places(self.run, self.wish.dataset, self.tokens.loaded, self._thinking)
        waiting: Spool[Answer] = Spool(Answer)
        last: Awaitable[None] | None = None
        for row in source:
            for answer in self._read(row):
                last = self._take(places, answer, waiting if places.turns else None) or last
            if last is not None and self.found.rows % BATCH == 0:
                await last
        while len(waiting):
            # A later turn may have stood before the answer that it follows.
            left, again, before = waiting, Spool(Answer), self.run.state.last_attempt
            for answer in left:
                last = self._take(places, answer, again) or last
            if self.run.state.last_attempt == before:
                for answer in again:
                    self._take(places, answer, None)
                break
            waiting = again
        if last is not None:
            await last
        return self._counted()

    @property
    def _thinking(self) -> bool:
        return self.config.thinking(self.wish.dataset)

    @property
    def _policy(self) -> Policy:
        # An answer that exists is kept at whatever length: to ask it anew costs, and this one does not.
        return replace(policy_of(self.config), on_length="keep")

    def _read(self, row: Row | BadRow) -> list[Answer]:
        self.found.rows += 1
        self.found.files.add(row.file)
        if isinstance(row, BadRow):
            self.found.bad.add(row)
            return []
        try:
            return answers_of(row, self.wish.form)
        except BadAnswer as error:
            self._quarantine(row.file, row.line, str(error), question_of(row))
            return []

    def _take(self, places: Places, answer: Answer, waiting: Spool[Answer] | None) -> Awaitable[None] | None:
        """Let an answer join; what waits for another answer is put into `waiting`."""
        family = self.tokens.loaded
        if places.forgotten(answer):
            self.found.forgotten += 1
            return None
        reason, answer = objection(answer, family)
        found = None if reason else places.find(answer)
        if found is None and not reason and waiting is not None:
            waiting.add(answer)
            return None
        if found is None:
            self._refuse(answer, reason or NO_PROMPT.format(self.wish.dataset))
            return None
        spot, answer = found
        completion = completion_of(answer, family, self._thinking, self.wish.provider)
        work = self._free(spot, completion)
        if work is None:
            self.found.already += 1
            return None
        return self._join(places, work, spot.prompt, completion, answer)

    def _join(
        self, places: Places, work: Work, prompt: Prompt, completion: Completion, answer: Answer
    ) -> Awaitable[None] | None:
        state, family = self.run.state, self.tokens.loaded
        number, at, tag = state.last_attempt + 1, self.wall(), TAG + Path(answer.file).name
        ids = completion.token_ids
        tokens = len(ids) if ids is not None else count_tokens(family, completion, self._thinking)
        decision = decide(completion, Case(0, 0, FREE, tokens), self._policy)
        if decision.verdict not in ANSWERED:
            self._refuse(answer, TOO_SHORT.format(tokens, self._policy.keep_from))
            return None
        if work in places.made:
            places.made.discard(work)
            counted = len(completion.prompt_ids or family.prompt_ids(prompt.messages, prompt.tools, self._thinking))
            self._emit(TurnAdded(at=at, work=work, tokens=counted), prompt)
        tries = state.work(work).numbers + 1
        self._emit(Intent(at=at, attempt=number, work=work, number=tries, tag=tag, prices=FREE, reserved=0), b"")
        settled = settled_event(number, completion, decision, at)
        self._emit(msgspec.structs.replace(settled, tokens=tokens, cost=0), completion)
        if not state.attempt(number).answered:
            self.found.already += 1
            return None
        record = Record(work, prompt, completion, tag, 0, number)
        given = label(record, family, {}, self._thinking)
        self.found.taken[given] += 1
        self.found.tokens[given] += tokens
        places.go_on(work, prompt, completion)
        return self._emit(Labelled(at=at, attempt=number, label=given))

    def _emit(self, event: AnyEvent, payload: Payload = None) -> Awaitable[None] | None:
        self.run.state.apply(event)
        return None if self.write is None else self.write(event, payload)

    def _free(self, spot: Spot, completion: Completion) -> Work | None:
        """The work that an answer is taken for: the first that is still owed. None where it is there already."""
        state = self.run.state
        free: list[Work] = []
        for work in spot.works:
            known = state.works.get(work)
            if known is None or known.answer is None or known.owed:
                free.append(work)
            if known is None or known.answer is None or known.answer > self._first or work in self._known:
                continue
            if len(spot.works) > 1 and same(self.run.completion(state.attempt(known.answer)), completion):
                self._known.add(work)  # each answer of the run stands for one row that says the same
                return None
        return free[0] if free else None

    def _refuse(self, answer: Answer, reason: str) -> None:
        self._quarantine(answer.file, answer.line, reason, beginning(answer))

    def _quarantine(self, file: str, line: int, reason: str, text: str) -> None:
        self.found.bad.add(BadRow(file, line, reason, text[:TEXT_PREFIX]))

    def _counted(self) -> Brought:
        dataset, found = self.run.state.datasets[self.wish.dataset], self.found
        found.kept, found.limit = dataset.quota.kept, dataset.quota.limit
        found.owed = dataset.works - sum(dataset.ended.values())
        return found


async def bring(
    folder: Path, wish: Wish, config: RunConfig, tokens: Tokenizer, wall: Callable[[], float], *, dry: bool = False
) -> Brought:
    """Import a source into a run directory; the caller holds its lock, unless it is a dry run, which changes nothing.

    Raises:
        UsageError: the run has no such dataset, or the source cannot be read to its end; what came before that has joined.
        StorageError: the journal cannot be read or written.
    """
    with closing(Run(folder)) as run:
        if wish.dataset not in run.state.datasets or not run.state.datasets[wish.dataset].prompts:
            known = ", ".join(name for name, each in run.state.datasets.items() if each.prompts)
            raise UsageError(
                f"--dataset: the run {folder} has no prompts of a dataset {wish.dataset!r}: "
                + (f"choose among {known}" if known else "start it with `eyas import RUN.toml …`")
            )
        source = rows(wish.source, wish.base)
        if dry:
            return await Importer(run, wish, config, tokens, wall).bring(source)
        with closing(Journal(folder)) as journal:
            found = await Importer(run, wish, config, tokens, wall, journal.write).bring(source)
            await journal.flush()
            return found
