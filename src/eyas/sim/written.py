"""Who makes a world's answers: sampled texts, played token by token; or, see light.py, nothing but their lengths (pure)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Protocol

from eyas.sim.ask import Chat
from eyas.sim.cutting import Texts
from eyas.sim.flight import Flight, stream, whole
from eyas.sim.reply import Step
from eyas.sim.scenarios import Scenario
from eyas.sim.text import Answer, Sampler, Shape, Vocabulary, lengths


def drawn(scenario: Scenario, rng: random.Random) -> int:
    """Tokens of an answer by a scenario's law."""
    tokens = lengths(scenario.length_median, scenario.length_sigma, scenario.length_max, rng)
    return max(scenario.length_min, tokens)


class Author(Protocol):
    """Makes answers and plays them."""

    def length(self, scenario: Scenario, chat: Chat, rng: random.Random) -> int:
        """Tokens of the answer to a request, before max_tokens."""
        ...

    def sample(self, shape: Shape, rng: random.Random) -> Answer:
        """An answer of that shape, cut at its limit."""
        ...

    def steps(self, flight: Flight) -> Iterator[Step]:
        """The timed steps of an answer; the entry's `sent` follows what was played."""
        ...

    def sent(self, flight: Flight) -> int:
        """Tokens that have reached the client by now."""
        ...


class Written:
    """Answers of text, as a model would sample them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._texts = Texts(vocabulary)
        self._sampler = Sampler(vocabulary)

    def length(self, scenario: Scenario, chat: Chat, rng: random.Random) -> int:
        """By the scenario's law."""
        del chat
        return drawn(scenario, rng)

    def sample(self, shape: Shape, rng: random.Random) -> Answer:
        """See `Author`."""
        return self._sampler.sample(shape, rng)

    def steps(self, flight: Flight) -> Iterator[Step]:
        """See `Author`."""
        return stream(flight, self._texts) if flight.entry.stream else whole(flight, self._texts)

    def sent(self, flight: Flight) -> int:
        """See `Author`."""
        return flight.entry.sent
