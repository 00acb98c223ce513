"""Works that a lost worker had, as they are to be asked now: each conversation where it stands by what was taken in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eyas.engine.admit import Candidate
from eyas.engine.compare import prompts_of
from eyas.engine.inputs import Inputs
from eyas.engine.settle import Books
from eyas.engine.turns import Turns
from eyas.state import askable
from eyas.state.turns import begun
from eyas.types import Work


@dataclass(frozen=True, slots=True)
class Regain:
    """Makes candidates anew, from the sources and the run's journal."""

    books: Books
    turns: Turns
    inputs: Inputs

    def works(self, conversations: Iterable[Work]) -> list[Candidate]:
        """The works of these conversations (each by its work of turn 0) that are owed and whose turn has come."""
        wanted = {begun(work) for work in conversations}
        prompts = prompts_of(self.inputs, {(work.dataset, work.prompt_id) for work in wanted})
        found: list[Candidate] = []
        for work in sorted(wanted):
            prompt = prompts.get((work.dataset, work.prompt_id))
            if prompt is None:
                continue
            owed = next(filter(self._owed, (_turn(work, turn) for turn in range(1 + len(prompt.turns)))), None)
            tokens = self.inputs.counts[work.dataset, work.prompt_id]
            candidate = None if owed is None else self.turns.again(owed, prompt, tokens)
            if candidate is not None:
                found.append(candidate)
        return found

    def _owed(self, work: Work) -> bool:
        known = self.books.state.works.get(work)
        return (known is None or known.owed) and askable(self.books.state, work)


def _turn(work: Work, turn: int) -> Work:
    return Work(work.dataset, work.prompt_id, turn, work.sample)
