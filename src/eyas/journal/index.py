"""Which event of a journal holds which text: the way from an attempt or a prompt to its payload."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

from eyas.events import AnyEvent, Forgotten, Intent, PromptAdded, Settled, TurnAdded, TurnRefused
from eyas.types import Work


class Said(NamedTuple):
    """Of a dataset: prompts that are none any more, ids and their events in step, and others."""

    dataset: str
    gone: list[str]
    ids: list[str]
    seqs: list[int]
    others: dict[str, int]


@dataclass(slots=True)
class Index:
    """Numbers of events, from 1; 0 stands for none. The texts of prompts are put in order only when one is asked for.

    Attributes:
        bodies: of the request of each attempt, by its number.
        answers: of its outcome.
        asked: of the prompt that an attempt at a later turn asked.
        later: what a checkpoint said of the texts of prompts, in its order.
        turns: of what was noted last of a later turn.
    """

    bodies: array[int] = field(default_factory=lambda: array("Q"))
    answers: array[int] = field(default_factory=lambda: array("Q"))
    asked: dict[int, int] = field(default_factory=dict[int, int])
    turns: dict[Work, int] = field(default_factory=dict[Work, int])
    later: list[Said] = field(default_factory=list[Said])
    _prompts: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    @property
    def prompts(self) -> dict[str, dict[str, int]]:
        """The events of the texts of prompts, by dataset and id."""
        for name, gone, ids, seqs, others in self.later:
            texts = self._prompts.setdefault(name, {})
            for prompt_id in gone:
                texts.pop(prompt_id, None)
            texts.update(zip(ids, seqs, strict=True))
            texts.update(others)
        self.later.clear()
        return self._prompts

    def note(self, seq: int, event: AnyEvent) -> None:
        """Take in the event of that number."""
        if isinstance(event, Settled):
            self.reach(event.attempt)
            self.answers[event.attempt] = seq
        elif isinstance(event, Intent):
            self.reach(event.attempt)
            self.bodies[event.attempt] = seq
            if event.work.turn:
                self.asked[event.attempt] = self.turns.get(event.work, 0)
        elif isinstance(event, PromptAdded):
            self.prompts.setdefault(event.dataset, {})[event.prompt_id] = seq
        elif isinstance(event, TurnAdded | TurnRefused):
            self.turns[event.work] = seq
        elif isinstance(event, Forgotten):
            for name, prompt_id in event.prompts:
                self.prompts.get(name, {}).pop(prompt_id, None)

    def prompt(self, dataset: str, prompt_id: str) -> int:
        """The event that holds the text of a prompt, 0 if there is none."""
        return self.prompts.get(dataset, {}).get(prompt_id, 0)

    def reach(self, attempt: int) -> None:
        """Make room for the attempts up to that number."""
        missing = attempt + 1 - len(self.bodies)
        if missing > 0:
            more = bytes(8 * max(missing, len(self.bodies) // 8))
            self.bodies.frombytes(more)
            self.answers.frombytes(more)
