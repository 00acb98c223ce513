"""Answers without text, for rehearsals: of each only its length counts, and two or three steps play it (pure).

A text stands for as many tokens as the number at its end says: `B3/7f3a:57` is a prompt of 57 tokens. Counts, costs, speeds
and faults are those of written answers; how far an answer has come is known at any time and need not be played.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from eyas.sim.ask import Chat
from eyas.sim.chunks import Chunks
from eyas.sim.flight import AMID, BEFORE, Flight, stream_amid, stream_before, stream_end
from eyas.sim.reply import Step
from eyas.sim.scenarios import Scenario
from eyas.sim.text import Answer, Part, Shape, cut_at
from eyas.sim.written import drawn

LIFE = 60.0
"""Seconds after which a stream shows that it lives, well below the silence that a client bears."""
SOON = 0.05
"""Seconds that are not waited for by themselves."""
_SURELY = 0.8
"""How far of what is left a provider with batching is waited for at once: it may become faster meanwhile."""


def spell(name: str, tokens: int) -> str:
    """A text that stands for so many tokens, unlike those of other names."""
    return f"{name}:{tokens}"


def spelled(text: str) -> int:
    """The tokens that a text stands for; 0 for one that does not say."""
    count = text.rpartition(":")[2]
    return int(count) if count.isdecimal() else 0


def count_prompt(messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], thinking: bool) -> int:
    """Tokens of a prompt whose texts stand for tokens."""
    del tools, thinking
    return sum(spelled(str(message.get("content") or "")) for message in messages)


class LightVocabulary:
    """The tokenizer of texts that stand for tokens."""

    def encode(self, text: str, /) -> list[int]:
        """As many ids as the text stands for."""
        return [0] * spelled(text)

    def token_bytes(self, token: int, /) -> bytes:
        """The bytes of one token: all are alike."""
        del token
        return b"0"

    def id_of(self, data: bytes, /) -> int | None:
        """The token with exactly these bytes, if there is one."""
        return 0 if data == b"0" else None


Law = Callable[[Chat, random.Random], int | None]
"""Tokens of the answer to a request, before max_tokens; None where the scenario's law holds."""


def _by_scenario(chat: Chat, rng: random.Random) -> None:
    del chat, rng


class Light:
    """Makes answers that are nothing but long, and plays them in as few steps as can be. Streamed ones only."""

    def __init__(self, law: Law = _by_scenario) -> None:
        self._law = law

    def length(self, scenario: Scenario, chat: Chat, rng: random.Random) -> int:
        """Tokens of an answer by the law that was given, else by the scenario's."""
        found = self._law(chat, rng)
        return drawn(scenario, rng) if found is None else found

    def sample(self, shape: Shape, rng: random.Random) -> Answer:
        """An answer of that shape, cut at its limit; tools are not called."""
        del rng
        parts = list[Part]()
        if shape.reasoning is not None:
            parts += [Part("reasoning", _ids(shape.reasoning)), Part("special", _ids(1))]
        parts += [Part("content", _ids(shape.content)), Part("special", _ids(1))]
        kept = cut_at(parts, shape.limit)
        return Answer(tuple(kept), "stop" if kept is parts else "length", canonical=True, drifted=False)

    def steps(self, flight: Flight) -> Iterator[Step]:
        """The steps of a streamed answer: its first token, its end, and signs of life between them."""
        chunks, entry, answer = Chunks(flight.head), flight.entry, flight.answer
        if flight.fault in BEFORE:
            yield from stream_before(flight, chunks, 0.0 if flight.instant else flight.ttft)
            return
        yield (
            0.0 if flight.instant else flight.ttft,
            (chunks.reasoning(b"1") if answer.count("reasoning") else chunks.content(b"1")),
        )
        flight.size = answer.size
        flight.begun = flight.worked()
        stops = flight.fault in AMID
        rest = yield from _until(flight, flight.turn if stops else answer.size)
        if stops and flight.fault != "stall":
            entry.sent = flight.turn
            yield from stream_amid(flight, chunks, rest)
            return
        if stops:
            entry.sent = flight.turn
            yield rest + flight.scenario.stall_seconds, b""
            flight.begun = flight.worked() - flight.turn / flight.tps
            entry.sent = 0
            rest = yield from _until(flight, answer.size)
        entry.sent = answer.size
        yield from stream_end(flight, chunks, rest)

    def sent(self, flight: Flight) -> int:
        """Tokens that have reached the client by now."""
        if flight.entry.sent or flight.begun is None:
            return flight.entry.sent
        most = flight.turn if flight.fault in AMID else flight.size
        return min(most, int(_come(flight)))


def _ids(count: int) -> array[int]:
    return array("i", bytes(4 * count))


def _come(flight: Flight) -> float:
    if flight.instant or flight.begun is None:
        return float(flight.size)
    return (flight.worked() - flight.begun) * flight.tps


def _until(flight: Flight, tokens: int) -> Generator[Step, None, float]:
    """Signs of life until so many tokens have come; gives the seconds that are left then, which are few."""
    steady = not flight.provider.batching
    while (left := (tokens - _come(flight)) / (flight.tps * flight.pace())) > SOON:
        yield min(LIFE, left if steady or left < 10 * SOON else _SURELY * left), b""
    return max(0.0, left)
