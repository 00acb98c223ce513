"""Which prompt of a dataset an answer made elsewhere replies to: by its messages, or by the ids of its prompt."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from eyas.answers import Answer
from eyas.engine.turns import follow
from eyas.errors import UsageError
from eyas.families import Loaded
from eyas.prompts import prompt_id
from eyas.records import Run
from eyas.state import DatasetState, followed
from eyas.state.turns import after
from eyas.tokens.prompt import forms
from eyas.types import Completion, Message, Prompt, Work


class Spot(NamedTuple):
    """A prompt as it is asked, and the works that an answer to it may be: one a sample, the likeliest first."""

    prompt: Prompt
    works: tuple[Work, ...]


@dataclass(slots=True)
class Places:
    """The prompts of one dataset, found by what rows tell of theirs.

    Prompts are rendered only once an answer comes that has ids and nothing else: all of them, once. Later turns join as the
    answers before them do.
    """

    run: Run
    name: str
    family: Loaded
    thinking: bool
    made: set[Work] = field(default_factory=set[Work])
    _later: dict[Work, Prompt] = field(default_factory=dict[Work, Prompt])
    _said: dict[str, list[Work]] = field(default_factory=dict[str, list[Work]])
    _rendered: dict[int, list[Work]] | None = None

    def __post_init__(self) -> None:
        for each in self._dataset.turns:
            for sample in range(self._dataset.samples):
                work = Work(self.name, each, 0, sample)
                if followed(self.run.state, work):
                    self._walk(work, self.run.prompt(self.name, each))

    @property
    def turns(self) -> bool:
        """Whether an answer may open the way to a later turn."""
        return bool(self._dataset.turns)

    def forgotten(self, answer: Answer) -> bool:
        """Whether the user had its prompt removed for good: its text must be written nowhere."""
        known = {answer.prompt.id if answer.prompt else "", answer.name.partition("/")[2].partition("/")[0]}
        return not known.isdisjoint(self._dataset.forgotten)

    def find(self, answer: Answer) -> tuple[Spot, Answer] | None:
        """Where an answer belongs, and the answer with its beginning put right; None where it is not known."""
        hinted = self._hinted(answer.name)
        if hinted is not None and answer.prompt_ids is not None:
            prompt = self._prompt(hinted)
            for ids in self._renders(prompt):
                if answer.prompt_ids[: len(ids)] == tuple(ids):
                    return Spot(prompt, self._samples(hinted, hinted)), answer.begun_at(len(ids))
        work = self._by_messages(answer, hinted) or self._by_ids(answer, hinted)
        return None if work is None else (Spot(self._prompt(work), self._samples(work, hinted)), answer)

    def go_on(self, work: Work, asked: Prompt, answer: Completion) -> None:
        """An answer stands now: the turn after it can be answered, if there is one."""
        later, known = after(work), self._dataset
        if work.turn >= known.turns.get(work.prompt_id, 0) or not followed(self.run.state, work):
            return
        begun = self.run.prompt(self.name, work.prompt_id)
        self._add(later, follow(asked, self.family.history(answer), begun.turns[work.turn :]), noted=False)

    @property
    def _dataset(self) -> DatasetState:
        return self.run.state.datasets[self.name]

    def _walk(self, work: Work, asked: Prompt) -> None:
        """Note the later turns that the answers of the run have opened."""
        state = self.run.state
        while work.turn < self._dataset.turns.get(work.prompt_id, 0) and followed(state, work):
            answer, later = state.attempt(state.work(work).answer or 0), after(work)
            known = state.works.get(later)
            if known is not None and known.answer is not None:
                asked = self.run.question(later)
                self._add(later, asked, noted=True)
            elif (noted := self.run.noted(later)) is not None:
                self._add(later, noted, noted=True)
                return
            else:
                self.go_on(work, asked, self.run.completion(answer))
                return
            work = later

    def _add(self, work: Work, prompt: Prompt, *, noted: bool) -> None:
        self._later[work] = prompt
        if not noted:
            self.made.add(work)
        self._said.setdefault(_plain_id(prompt), []).append(work)
        if self._rendered is not None:
            self._enter(self._rendered, work)

    def _prompt(self, work: Work) -> Prompt:
        return self._later[work] if work.turn else self.run.prompt(self.name, work.prompt_id)

    def _samples(self, work: Work, hinted: Work | None) -> tuple[Work, ...]:
        """The works of one prompt; samples share a later turn only where they said the same before it."""
        if work.turn:
            alike = self._said[_plain_id(self._later[work])]
            return tuple(sorted(alike, key=lambda each: (each != hinted, each)))
        every = (msgspec.structs.replace(work, sample=sample) for sample in range(self._dataset.samples))
        return tuple(sorted(every, key=lambda each: (each != hinted, each.sample)))

    def _hinted(self, name: str) -> Work | None:
        """The work that a row of eyas names, in this dataset whatever its own was called."""
        parts = name.split("/")
        if len(parts) != 4 or parts[1] not in self._dataset.prompts:
            return None
        turn, sample = parts[2][1:], parts[3][1:]
        if not (turn.isdecimal() and sample.isdecimal()):
            return None
        work = Work(self.name, parts[1], int(turn), int(sample))
        return work if not work.turn or work in self._later else None

    def _by_messages(self, answer: Answer, hinted: Work | None) -> Work | None:
        asked = answer.prompt
        if asked is None and answer.prompt_text:
            text = answer.prompt_text
            asked = Prompt("", "", ({"role": "user", "content": text},))
            asked = msgspec.structs.replace(asked, id=prompt_id(asked.messages, ()))
        if asked is None:
            return None
        if asked.id in self._dataset.prompts:
            return Work(self.name, asked.id)
        return _best(self._said.get(_plain_id(asked), []), hinted)

    def _by_ids(self, answer: Answer, hinted: Work | None) -> Work | None:
        keys = [_digest(answer.prompt_ids)] if answer.prompt_ids else []
        keys += [_digest(answer.prompt_text)] if answer.prompt_text else []
        if not keys:
            return None
        if self._rendered is None:
            rendered: dict[int, list[Work]] = {}
            for each in self._dataset.prompts:
                self._enter(rendered, Work(self.name, each))
            for work in self._later:
                self._enter(rendered, work)
            self._rendered = rendered
        return next((_best(self._rendered[key], hinted) for key in keys if key in self._rendered), None)

    def _enter(self, rendered: dict[int, list[Work]], work: Work) -> None:
        for ids in self._renders(self._prompt(work)):
            for key in (_digest(tuple(ids)), _digest(self.family.vocab.decode(ids))):
                rendered.setdefault(key, []).append(work)

    def _renders(self, prompt: Prompt) -> Iterator[list[int]]:
        """Ids of a prompt in every form in which servers give its history to the template."""
        for _, messages in forms(prompt.messages):
            try:
                yield self.family.prompt_ids(messages, prompt.tools, self.thinking)
            except UsageError:
                return


def _best(works: Sequence[Work], hinted: Work | None) -> Work | None:
    """The hinted one of these works if it is among them, else the first."""
    return hinted if hinted in works else min(works, default=None)


def _digest(value: tuple[int, ...] | str) -> int:
    data = value.encode(errors="surrogatepass") if isinstance(value, str) else np.array(value, np.int64).tobytes()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


def _plain_id(prompt: Prompt) -> str:
    """The id of a conversation without the reasoning of past answers that call no tool: no template keeps it."""
    return prompt_id([_plain(message) for message in prompt.messages], prompt.tools)


def _plain(message: Message) -> Message:
    if message.get("role") != "assistant" or message.get("tool_calls"):
        return message
    return {"role": "assistant", "content": message.get("content")}
