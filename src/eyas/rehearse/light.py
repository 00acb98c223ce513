"""What stands in for text in a rehearsal: answers known by their counts, a journal that keeps nothing.

The engine decides by counts, costs and times alone, so it decides as it would with text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import msgspec

from eyas.backends.stream import Stream
from eyas.engine.attempt import Flight, Here
from eyas.engine.reading import Reading
from eyas.engine.settle import Books
from eyas.events import AnyEvent
from eyas.families import Said
from eyas.families.base import Part, Shift
from eyas.journal import Payload
from eyas.sim import World as Market
from eyas.sim.light import count_prompt, spell, spelled
from eyas.transport import Request
from eyas.types import Completion, DraftText, Message, Outcome
from eyas.vocab import Vocab

_TOKEN = Part("", token=0)


class Counts:
    """The tokenizer of texts that stand for tokens (see `sim.light`), in the place of a family's."""

    name = "counts"
    stop = 0
    stops = (0,)
    caveats: tuple[str, ...] = ()

    @property
    def vocab(self) -> Vocab:
        """There is none, and nobody asks for it."""
        raise LookupError("a rehearsal has counts, and no vocabulary")

    def prompt_ids(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], thinking: bool) -> list[int]:
        """As many ids as the prompt stands for."""
        return [0] * count_prompt(messages, tools, thinking)

    def count_prompt(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], thinking: bool) -> int:
        """How many ids `prompt_ids` gives."""
        return count_prompt(messages, tools, thinking)

    def said(self, ids: Sequence[int], thinking: bool) -> Said:
        """Nothing: answers come as texts here."""
        del ids, thinking
        return Said()

    def refuses(self, messages: Sequence[Message], thinking: bool) -> str:
        """Nothing is refused."""
        del messages, thinking
        return ""

    def history(self, completion: Completion) -> Message:
        """A past answer as a turn of the history, its reasoning left out."""
        usage = completion.usage
        tokens = spelled(completion.reasoning) + spelled(completion.content)
        shown = tokens if usage is None else usage.completion_tokens - (usage.reasoning_tokens or 0)
        return {"role": "assistant", "content": spell("", max(1, shown))}

    def shifts(self, thinking: bool) -> tuple[Shift, ...]:
        """Counts are what they are."""
        del thinking
        return ()

    def parts(self, completion: Completion, thinking: bool) -> tuple[Part, ...]:
        """One part a token."""
        del thinking
        return (_TOKEN,) * (spelled(completion.reasoning) + spelled(completion.content))

    def leaks(self, text: str) -> bool:
        """There is no text."""
        del text
        return False


class Progress:
    """How far an answer has come, by the market's own count."""

    __slots__ = ("_reading", "_sent")

    def __init__(self, reading: Reading, sent: Callable[[str], int]) -> None:
        self._reading, self._sent = reading, sent

    @property
    def tokens(self) -> int:
        """Tokens that came."""
        return self._sent(cast("Stream", self._reading.stream).generation_id)

    @property
    def started(self) -> bool:
        """Whether any came."""
        return self._reading.stream.started

    def draft(self) -> DraftText | None:
        """Nothing is kept of an answer in flight."""
        return None


class CountingReader(Here):
    """Reads answers of which nothing but the length comes: the market says it."""

    def __init__(self, books: Books, market: Market) -> None:
        setting, world = books.setting, books.world
        super().__init__(world.transport, setting.backend, setting.deadlines, world.clock)
        self._sent = market.sent

    async def read(self, flight: Flight, request: Request) -> Outcome:
        """See `engine.attempt.Reader`."""
        return _spelled(flight, await super().read(flight, request))

    async def finish(self, flight: Flight, why: str) -> Outcome:
        """See `engine.attempt.Reader`."""
        return _spelled(flight, await super().finish(flight, why))

    def progress(self, reading: Reading) -> Progress:
        """How far an answer has come."""
        return Progress(reading, self._sent)


def _spelled(flight: Flight, outcome: Outcome) -> Outcome:
    """The outcome with a text that stands for the tokens that came."""
    if not isinstance(outcome, Completion):
        return outcome
    text = spell("", flight.progress.tokens)
    if outcome.reasoning:
        return msgspec.structs.replace(outcome, reasoning=text, content="")
    return msgspec.structs.replace(outcome, content=text)


class NoLog:
    """A journal that is durable at once and keeps nothing."""

    def __init__(self) -> None:
        self._durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._durable.set_result(None)

    def write(self, event: AnyEvent, payload: Payload = None) -> Awaitable[None]:
        """Nothing is written."""
        del event, payload
        return self._durable

    def draft(self, attempt: int, part: int, text: DraftText) -> Awaitable[None]:
        """Nothing is written."""
        del attempt, part, text
        return self._durable

    def flush(self) -> Awaitable[None]:
        """All is durable."""
        return self._durable
