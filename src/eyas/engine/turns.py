"""Conversations bought turn by turn: the next turn's prompt is made of the answer that has just become durable.

A prompt with k later turns of the user owes k + 1 works a sample. A later turn is asked only behind a whole answer; what it
asks is noted in the journal (TurnAdded) before its first request, so that records, exports and the next session read the
history as it was asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from eyas.engine.admit import Candidate
from eyas.engine.settle import Books
from eyas.errors import UsageError
from eyas.events import TurnAdded, TurnRefused
from eyas.state import Attempt, askable, followed
from eyas.state.turns import after, before
from eyas.types import Completion, Message, Outcome, Prompt, Verdict, Work

Count = Callable[[], int]


class Journaled(Protocol):
    """What the journal holds of the sessions before this one; `records.Run` is it."""

    def asked(self, attempt: Attempt) -> Prompt:
        """The prompt of an attempt as it was sent."""
        ...

    def completion(self, attempt: Attempt) -> Completion:
        """The answer of an answered attempt."""
        ...

    def noted(self, work: Work) -> Prompt | None:
        """The prompt of a later turn as it was noted behind the answer that stands before it; None if it was not."""
        ...


def follow(asked: Prompt, answer: Message, turns: Sequence[str]) -> Prompt:
    """The prompt of the next turn: what was asked, the answer to it, and the first of the user's turns that are left."""
    said: Message = {"role": "user", "content": turns[0]}
    return msgspec.structs.replace(asked, messages=(*asked.messages, answer, said), turns=tuple(turns[1:]))


def conversation(candidate: Candidate) -> str:
    """The `session_id` of a work's conversation, 32 hex digits; empty for a prompt that no turn follows.

    All turns of one sample have the same, and no other work has it: OpenRouter sends them to one endpoint, whose cache holds
    the history. Source: https://openrouter.ai/docs/guides/best-practices/prompt-caching
    """
    work, prompt, _ = candidate
    if not work.turn and not prompt.turns:
        return ""
    return hashlib.sha256(f"{work.primary}/s{work.sample}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Turns:
    """Makes the candidates of later turns."""

    books: Books
    known: Journaled

    def candidates(
        self, owed: Iterable[tuple[Work, Prompt]], counts: Mapping[tuple[str, str], int]
    ) -> Iterator[Candidate]:
        """The candidates of a session that opens; turns that cannot be asked are refused on the way.

        Args:
            owed: works whose turn has come, with the prompts that their conversations begin with.
            counts: tokens of these prompts.
        """
        for work, prompt in owed:
            if work.turn == 0:
                yield Candidate(work, prompt, counts[work.dataset, work.prompt_id])
            elif (candidate := self._opened(work, prompt)) is not None:
                yield candidate

    def again(self, work: Work, prompt: Prompt, tokens: int) -> Candidate | None:
        """The candidate of a work that was asked before, if its turn has come; `prompt` and `tokens` are the first turn's."""
        if work.turn == 0:
            return Candidate(work, prompt, tokens)
        if work.turn > len(prompt.turns) or not askable(self.books.state, work):
            return None
        return self._opened(work, prompt)

    async def next(self, candidate: Candidate, attempt: int, outcome: Outcome) -> None:
        """After an outcome is durable: the conversation's next turn enters the pool, if there is one and it can come."""
        work, prompt, _ = candidate
        state = self.books.state
        if not prompt.turns or not followed(state, work):
            return
        later = after(work)
        known = state.works.get(later)
        if known is not None and not known.owed and known.verdict is not Verdict.UNKNOWN:
            return
        standing = state.attempt(state.work(work).answer or 0)
        if standing.id == attempt and isinstance(outcome, Completion):
            asked, answer = prompt, outcome
        else:
            asked, answer = self.known.asked(standing), self.known.completion(standing)
        made = follow(asked, self._history(answer), prompt.turns)
        found = self._candidate(later, made, await self._counted(later, made))
        if found is None:
            return
        if known is None or known.owed:
            self.books.pool.go_on(found)
        else:
            self.books.held[later] = found

    def _opened(self, work: Work, begun: Prompt) -> Candidate | None:
        """A later turn at the start of a session, as it was noted or made anew."""
        state, noted = self.books.state, self.known.noted(work)
        if noted is not None and (tokens := state.prompt_tokens(work)):
            again = msgspec.structs.replace(noted, turns=begun.turns[work.turn :])
            return self._candidate(work, again, tokens, noted=True)
        standing = state.attempt(state.work(before(work)).answer or 0)
        answer = self._history(self.known.completion(standing))
        made = follow(self.known.asked(standing), answer, begun.turns[work.turn - 1 :])
        try:
            return self._candidate(work, made, self._count(work, made)())
        except UsageError as error:
            return self._candidate(work, made, str(error))

    def _history(self, answer: Completion) -> Message:
        return self.books.setting.tokens.history(answer)

    async def _counted(self, work: Work, prompt: Prompt) -> int | str:
        """How many tokens the prompt has, or why it cannot be rendered."""
        try:
            return await self.books.world.apart(self._count(work, prompt))
        except UsageError as error:
            return str(error)

    def _count(self, work: Work, prompt: Prompt) -> Count:
        setting = self.books.setting
        thinking = setting.config.thinking(work.dataset)
        return lambda: setting.tokens.count_prompt(prompt.messages, prompt.tools, thinking)

    def _candidate(self, work: Work, prompt: Prompt, counted: int | str, *, noted: bool = False) -> Candidate | None:
        """The candidate, noted in the journal; None for a turn that cannot be asked, which is refused."""
        books = self.books
        reason = counted if isinstance(counted, str) else self._too_long(work, prompt, counted)
        if isinstance(counted, int) and not reason:
            if not noted:
                books.emit(TurnAdded(at=books.world.wall(), work=work, tokens=counted), prompt)
            return Candidate(work, prompt, counted)
        if books.state.work(work).owed:
            books.emit(TurnRefused(at=books.world.wall(), work=work, detail=reason), prompt)
        return None

    def _too_long(self, work: Work, prompt: Prompt, tokens: int) -> str:
        """Why no endpoint takes a conversation that has grown so long, or an empty string."""
        setting = self.books.setting
        most = setting.config.max_tokens(work.dataset)
        if any(route.serves(tokens, most, tools=bool(prompt.tools)) for route in setting.served.routes):
            return ""
        return (
            f"the conversation has grown to {tokens} tokens, and no allowed endpoint takes that with max_tokens = {most}: "
            "lower max_tokens and owe it again with `eyas retry`, or leave it"
        )
