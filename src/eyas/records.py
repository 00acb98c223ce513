"""A run directory opened for reading: its state, prompts, answers and attempts, also while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from eyas.errors import EyasError, UsageError
from eyas.events import AnyEvent
from eyas.journal import Index, Store
from eyas.journal.checkpoint import load, unwatched
from eyas.state import Attempt, State, wanted
from eyas.state.turns import before
from eyas.types import Completion, Prompt, Record, Usage, Verdict, Work


class Ref(msgspec.Struct, frozen=True):
    """Where a paid answer stands, with all that is known of it beside its text: small, and made to be sent to a process.

    Attributes:
        run: index of its run directory in the list that a `Reader` was given.
        work: what it answers.
        prompt, answer: numbers of the journal's events whose payloads are the two texts; the prompt of a later turn holds
            its history.
        attempt: the attempt that brought it.
        tag: the endpoint asked.
        cost: nano-dollars, None while unknown.
        counts: (prompt, completion, reasoning) tokens as known by now.
        provider: who answered, empty if not said.
        generation_id: of the API, empty if it gave none.
        verdict: DONE or PARTIAL.
        thinking: the mode it was asked in.
    """

    run: int
    work: Work
    prompt: int
    answer: int
    attempt: int
    tag: str
    cost: int | None
    counts: tuple[int, int, int | None] | None
    provider: str
    generation_id: str
    verdict: Verdict
    thinking: bool


class Reader:
    """Reads answers by their refs; opens each run directory once, for reading, when it is first needed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._stores: dict[int, Store] = {}

    def payloads(self, ref: Ref) -> tuple[bytes, bytes]:
        """The prompt and the answer as they lie in the journal.

        Raises:
            StorageError: one is missing or damaged.
        """
        store = self._stores.get(ref.run)
        if store is None:
            store = self._stores[ref.run] = Store(self._folders[ref.run])
        return store.payload(ref.prompt), store.payload(ref.answer)

    def read(self, refs: Iterable[Ref]) -> Iterator[Record]:
        """The records, in the order of the refs.

        Raises:
            StorageError: a text is missing or damaged.
        """
        for ref in refs:
            prompt, answer = self.payloads(ref)
            completion = completed(_decode_answer(answer), ref)
            yield Record(ref.work, _decode_prompt(prompt), completion, ref.tag, ref.cost, ref.attempt)

    def close(self) -> None:
        """Close what was opened."""
        for store in self._stores.values():
            store.close()
        self._stores.clear()


class Run:
    """The journal of one run, folded, with the way to its texts."""

    def __init__(self, folder: Path, store: Store | None = None) -> None:
        """Open a run directory; `store` reads its journal where that is open already.

        Raises:
            UsageError: there is none.
            StorageError: it cannot be read.
        """
        self.folder = folder
        self.store = store or Store(folder)
        self.kept = load(self.store)
        self.state = self.kept.state if self.kept else State()
        self.index = self.kept.index if self.kept else Index()
        self._last = self.kept.seq if self.kept else 0
        try:
            self.refresh()
        except EyasError:
            self.store.close()
            raise

    def refresh(self, fold: Callable[[AnyEvent], None] | None = None) -> None:
        """Take in what was written since; `fold` applies an event to the state, where somebody wants to see what it changes."""
        fold = fold or self.state.apply
        with unwatched():
            for seq, event in self.store.events(self._last):
                self._last = seq
                fold(event)
                self.index.note(seq, event)

    def prompt(self, dataset: str, prompt_id: str) -> Prompt:
        """A prompt as its conversation begins.

        Raises:
            UsageError: the run has no such prompt.
        """
        seq = self.index.prompt(dataset, prompt_id)
        if not seq:
            raise UsageError(
                f"the run has no prompt {dataset}/{prompt_id}: see the ids in an export or in `eyas status`"
            )
        return _decode_prompt(self.store.payload(seq))

    def asked(self, attempt: Attempt) -> Prompt:
        """The prompt of an attempt as it was sent: that of a later turn holds the answers that came before it."""
        return _decode_prompt(self.store.payload(self._asked_seq(attempt)))

    def noted(self, work: Work) -> Prompt | None:
        """The prompt of a later turn as it was noted behind the answer that stands before it; None if it was not."""
        answer, seq = self.state.works[before(work)].answer, self.index.turns.get(work, 0)
        return _decode_prompt(self.store.payload(seq)) if answer and seq > self.index.answers[answer] else None

    def question(self, work: Work) -> Prompt:
        """What the answer of a work replies to; of a work without one, what was noted last of it.

        Raises:
            UsageError: the run has no such prompt.
        """
        known = self.state.works.get(work)
        if known is not None and known.answer is not None:
            return self.asked(self.state.attempt(known.answer))
        seq = self.index.turns.get(work)
        return self.prompt(work.dataset, work.prompt_id) if seq is None else _decode_prompt(self.store.payload(seq))

    def body(self, attempt: Attempt) -> bytes:
        """The exact request body of an attempt."""
        return self.store.payload(self.index.bodies[attempt.id])

    def completion(self, attempt: Attempt) -> Completion:
        """The answer of an answered attempt, with counts that became known later."""
        answer = msgspec.json.decode(self.store.payload(self.index.answers[attempt.id]), type=Completion)
        return completed(answer, attempt)

    def record(self, work: Work) -> Record | None:
        """The paid answer of a work; None if it has none yet."""
        known = self.state.works.get(work)
        if known is None or known.answer is None:
            return None
        attempt = self.state.attempt(known.answer)
        return Record(work, self.asked(attempt), self.completion(attempt), attempt.tag, attempt.cost, attempt.id)

    def records(self) -> Iterator[Record]:
        """Every paid answer, sorted by work."""
        for work in sorted(work for work, known in self.state.works.items() if known.answer is not None):
            record = self.record(work)
            if record is not None:
                yield record

    def refs(self, thinking: Callable[[str], bool], run: int = 0) -> Iterator[Ref]:
        """Every paid answer, in no order.

        Args:
            thinking: whether a dataset, by name, is asked in thinking mode.
            run: the index of this run, for a `Reader` of several.
        """
        modes = {name: thinking(name) for name in {work.dataset for work in self.state.works}}
        for work, known in self.state.works.items():
            if known.answer is None:
                continue
            attempt = self.state.attempt(known.answer)
            yield Ref(
                run=run,
                work=work,
                prompt=self._asked_seq(attempt),
                answer=self.index.answers[attempt.id],
                attempt=attempt.id,
                tag=attempt.tag,
                cost=attempt.cost,
                counts=attempt.counts,
                provider=attempt.provider,
                generation_id=attempt.generation_id,
                verdict=attempt.settled.verdict if attempt.settled else Verdict.DONE,
                thinking=modes[work.dataset],
            )

    def records_without_label(self) -> list[Record]:
        """Paid answers that no label was given to before their process ended."""
        state = self.state
        attempts = (state.attempts[number] for number in set(state.attempts) - state.labels.keys())
        missing = sorted(each.work for each in attempts if each.answered and state.works[each.work].answer == each.id)
        return [record for work in missing if (record := self.record(work)) is not None]

    def attempts(self, work: Work) -> list[Attempt]:
        """All attempts at a work, oldest first."""
        return self.state.attempts_at(work)

    def find(self, key: str) -> Work:
        """The work that a key or the start of one names: DATASET/PROMPTID16[/tTURN[/sSAMPLE]].

        A start that ends within a name will do where nothing is named so, and nothing else begins so.

        Raises:
            UsageError: none, or more than one.
        """
        asked = {work for work in self.state.works if work.key == key or work.key.startswith(f"{key}/")}
        found = sorted(asked or self._wanted(key) or self._beginning(key))
        if not found:
            raise UsageError(
                f"{key!r} names no work in this run: give an id as it stands in the rows, DATASET/PROMPTID16/t0/s0, or the "
                f"start of one; `eyas show {self.folder}` lists some"
            )
        if len(found) > 1:
            named = ", ".join(work.key for work in found[:3]) + (", …" if len(found) > 3 else "")
            raise UsageError(
                f"{key!r} names {len(found)} works in this run, {named}: give one of them, or more of its id"
            )
        return found[0]

    def _beginning(self, start: str) -> set[Work]:
        """Works whose keys begin so; of prompts that are not begun the first one."""
        begun = {work for work in self.state.works if work.key.startswith(start)}
        names = ((name, each) for name, known in self.state.datasets.items() for each in known.prompts)
        firsts = {Work(name, each) for name, each in names if f"{name}/{each}".startswith(start)}
        primaries = {work.primary for work in begun}
        return begun | {work for work in firsts if work.primary not in primaries}

    def _wanted(self, key: str) -> set[Work]:
        """The work of that key that the run wants and has not begun; of a prompt's key its first one."""
        dataset, _, rest = key.partition("/")
        first = Work(dataset, rest.partition("/")[0])
        if not self.index.prompt(dataset, first.prompt_id):
            return set()
        works = {work.key: work for work in wanted(dataset, self.state.datasets[dataset], first.prompt_id)}
        works[first.primary] = first
        return {works[key]} if key in works else set()

    def _asked_seq(self, attempt: Attempt) -> int:
        """The event that holds the prompt of an attempt."""
        work = attempt.work
        return self.index.asked.get(attempt.id) or self.index.prompts[work.dataset][work.prompt_id]

    def close(self) -> None:
        """Close the journal."""
        self.store.close()


class _Known(Protocol):
    """What became known of an answer beside its text."""

    @property
    def counts(self) -> tuple[int, int, int | None] | None: ...
    @property
    def cost(self) -> int | None: ...
    @property
    def provider(self) -> str: ...


_decode_answer = msgspec.json.Decoder(Completion).decode
_decode_prompt = msgspec.json.Decoder(Prompt).decode


def completed(answer: Completion, known: _Known) -> Completion:
    """An answer with the provider and the counts that became known later."""
    if answer.usage is None and known.counts is not None:
        prompt, completion, reasoning = known.counts
        answer = msgspec.structs.replace(answer, usage=Usage(prompt, completion, reasoning, cost=known.cost))
    if not answer.provider and known.provider:
        answer = msgspec.structs.replace(answer, provider=known.provider)
    return answer
