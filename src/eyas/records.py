"""A run directory opened for reading: its state, prompts, answers and attempts, also while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from eyas.errors import EyasError, UsageError
from eyas.events import Intent, PromptAdded, Settled
from eyas.journal import Store
from eyas.state import Attempt, State
from eyas.types import Completion, Prompt, Record, Usage, Work


class Run:
    """The journal of one run, folded, with the way to its texts."""

    def __init__(self, folder: Path) -> None:
        """Open a run directory.

        Raises:
            UsageError: there is none.
            StorageError: it cannot be read.
        """
        self.folder = folder
        self.store = Store(folder)
        self.state = State()
        self._last = 0
        self._prompts: dict[tuple[str, str], int] = {}
        self._bodies: dict[int, int] = {}
        self._answers: dict[int, int] = {}
        try:
            self.refresh()
        except EyasError:
            self.store.close()
            raise

    def refresh(self) -> None:
        """Take in what was written since."""
        for seq, event in self.store.events(self._last):
            self._last = seq
            self.state.apply(event)
            if isinstance(event, Settled):
                self._answers[event.attempt] = seq
            elif isinstance(event, Intent):
                self._bodies[event.attempt] = seq
            elif isinstance(event, PromptAdded):
                self._prompts[event.dataset, event.prompt_id] = seq

    def prompt(self, dataset: str, prompt_id: str) -> Prompt:
        """A prompt as it was asked.

        Raises:
            UsageError: the run has no such prompt.
        """
        seq = self._prompts.get((dataset, prompt_id))
        if seq is None:
            raise UsageError(
                f"the run has no prompt {dataset}/{prompt_id}: see the ids in an export or in `eyas status`"
            )
        return msgspec.json.decode(self.store.payload(seq), type=Prompt)

    def body(self, attempt: Attempt) -> bytes:
        """The exact request body of an attempt."""
        return self.store.payload(self._bodies[attempt.id])

    def completion(self, attempt: Attempt) -> Completion:
        """The answer of an answered attempt, with counts that became known later."""
        answer = msgspec.json.decode(self.store.payload(self._answers[attempt.id]), type=Completion)
        return completed(answer, attempt)

    def record(self, work: Work) -> Record | None:
        """The paid answer of a work; None if it has none yet."""
        known = self.state.works.get(work)
        if known is None or known.answer is None:
            return None
        attempt = self.state.attempt(known.answer)
        prompt = self.prompt(work.dataset, work.prompt_id)
        return Record(work, prompt, self.completion(attempt), attempt.tag, attempt.cost, attempt.id)

    def records(self) -> Iterator[Record]:
        """Every paid answer, sorted by work."""
        for work in sorted(work for work, known in self.state.works.items() if known.answer is not None):
            record = self.record(work)
            if record is not None:
                yield record

    def records_without_label(self) -> list[Record]:
        """Paid answers that no label was given to before their process ended."""
        answers = ((work, known.answer) for work, known in self.state.works.items())
        missing = sorted(work for work, answer in answers if answer is not None and answer not in self.state.labels)
        return [record for work in missing if (record := self.record(work)) is not None]

    def attempts(self, work: Work) -> list[Attempt]:
        """All attempts at a work, oldest first."""
        return [attempt for attempt in self.state.attempts.values() if attempt.work == work]

    def find(self, key: str) -> Work:
        """The work that a key or the start of one names: DATASET/PROMPTID16[/tTURN[/sSAMPLE]].

        Raises:
            UsageError: none, or more than one.
        """
        asked = {work for work in self.state.works if work.key == key or work.key.startswith(f"{key}/")}
        named = {Work(*known) for known in self._prompts if "/".join(known) == key}
        found = sorted(asked or named)
        if len(found) != 1:
            what = "no work" if not found else f"{len(found)} works, {found[0].key} and {found[1].key} among them,"
            raise UsageError(
                f"{key!r} names {what} in this run: give an id as it stands in the rows, DATASET/PROMPTID16/t0/s0"
            )
        return found[0]

    def close(self) -> None:
        """Close the journal."""
        self.store.close()


def completed(answer: Completion, attempt: Attempt) -> Completion:
    """An answer with the provider and the counts that its attempt learned later."""
    if answer.usage is None and attempt.counts is not None:
        prompt, completion, reasoning = attempt.counts
        answer = msgspec.structs.replace(answer, usage=Usage(prompt, completion, reasoning, cost=attempt.cost))
    if not answer.provider and attempt.provider:
        answer = msgspec.structs.replace(answer, provider=attempt.provider)
    return answer
