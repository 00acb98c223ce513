"""Thousands of answers in seconds whose sampled ids are known: simulated providers, read by the real reader of streams.

market = Market(kimi, KINDS, seed=1)
for case in market.answers(2000, drift=0.05):
    rebuild(case.record, ...) against case.ids
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from eyas.backends.stream import Stream
from eyas.families import Loaded
from eyas.sim import Action, Faults, Provider, Scenario, World
from eyas.sim.books import Entry
from eyas.sim.scenarios import labels
from eyas.types import Completion, Message, Prompt, Record, Sequence, Usage, Work

WEATHER: dict[str, Any] = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a city", "parameters": {"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["celsius", "fahrenheit"]}}}}}  # fmt: skip
SEARCH: dict[str, Any] = {"type": "function", "function": {
    "name": "search", "description": "Search the web", "parameters": {"type": "object", "properties": {
        "query": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
        "safe": {"type": "boolean"}}}}}  # fmt: skip
TOOLS = (WEATHER, SEARCH)
ASKED: tuple[tuple[Message, ...], ...] = (
    ({"role": "user", "content": "Explain why the sky is blue, in two sentences."},),
    ({"role": "user", "content": "Schreibe eine kurze Funktion, die Primzahlen bis n liefert."},),
    (
        {"role": "system", "content": "You are a careful assistant. Answer briefly."},
        {"role": "user", "content": "What's the difference between a list and a tuple in Python?"},
    ),
    (
        {"role": "user", "content": "Hi! Can you plan a weekend in Florence for two?"},
        {"role": "assistant", "content": "Gladly. Do you prefer museums or food?"},
        {"role": "user", "content": "Food, and one museum at most.\n\nWe arrive on Friday evening."},
    ),
    ({"role": "user", "content": "用中文解释一下什么是哈希表。"},),
    ({"role": "user", "content": "A train leaves at 9:40 and takes 2 h 35 min. When does it arrive? 🚆"},),
)
"""What is asked: one turn and several, with a system turn and without, in several scripts."""

CLEAN = Scenario(length_median=110.0, length_sigma=0.5, length_max=500, slots=0, tool_share=0.8, compact_share=0.4)
_CUTS = ("cut_close", "cut_reset", "error_chunk")
_KEY = {"authorization": "Bearer sk-test"}


@dataclass(frozen=True)
class Kind:
    """A provider, and how it is asked."""

    provider: Provider
    stream: bool = True
    no_usage: float = 0.0
    body: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.provider.name


def _kind(provider: Provider, name: str = "", *, stream: bool = True, no_usage: float = 0.0) -> Kind:
    """A provider, under another name if it is asked in another way; one that lists logprobs is asked for them."""
    tag = f"{name.lower().replace(' ', '-')}/int4" if name else provider.tag
    body = {} if provider.logprobs == "none" else {"logprobs": True}
    return Kind(replace(provider, name=name or provider.name, tag=tag), stream, no_usage, body)


_BY_NAME = {provider.name: provider for provider in labels.HONEST}

KINDS = (
    *map(_kind, labels.HONEST),
    _kind(_BY_NAME["Token"], "Silent", no_usage=0.5),
    _kind(_BY_NAME["Token"], "Whole", stream=False),
    _kind(_BY_NAME["Stripped"], "Whole Stripped", stream=False),
    _kind(_BY_NAME["Compact"], "Whole Compact", stream=False),
    _kind(_BY_NAME["Listed"], "Whole Listed", stream=False),
)
"""Every honest way to count, cut, strip, list logprobs and write arguments anew, streamed and not."""

WRONG = tuple(map(_kind, labels.WRONG))
"""Another prompt, template or tokenizer than the model's."""


@dataclass(frozen=True)
class Case:
    """An answer as a run keeps it, and the truth about it.

    Attributes:
        ids: all that was sampled, special ids included; of an answer that broke off, also what never arrived.
        drifted: some of them are another split than the tokenizer's.
        sent: how many of them had arrived when the answer ended or broke off.
    """

    record: Record
    ids: tuple[int, ...]
    drifted: bool
    kind: Kind
    sent: int

    @property
    def provider(self) -> Provider:
        """Who answered."""
        return self.kind.provider

    @property
    def whole(self) -> bool:
        """Whether nothing of it is missing: not cut, and ended by the model."""
        return self.record.completion.cut is None and self.record.completion.finish in ("stop", "tool_calls")

    def exact(self, sequence: Sequence) -> bool:
        """Whether its ids are the sampled ones: all of them, or of a partial answer the first."""
        ids = sequence.completion_ids
        return ids == (self.ids if self.whole else self.ids[: len(ids)])

    def holds(self, sequence: Sequence) -> bool:
        """Whether the supervised ids stand in the sampled ones in order."""
        place, mask = iter(self.ids), sequence.loss_mask[len(sequence.prompt_ids) :]
        return all(number in place for number, sure in zip(sequence.completion_ids, mask, strict=True) if sure)


class Market:
    """Answers of these providers; the same seed and arguments give the same answers."""

    def __init__(
        self, family: Loaded, kinds: tuple[Kind, ...] = KINDS, seed: int = 0, *, thinking: bool = True
    ) -> None:
        self._family = family
        self._kinds = kinds
        self._seed = seed
        self._body = {"reasoning": {"enabled": thinking}}
        self._counted: dict[str, int] = {}

    def answers(
        self, n: int, drift: float = 0.05, tools: float = 0.1, length: float = 0.05, cut: float = 0.03
    ) -> list[Case]:
        """`n` answers, the providers in turn.

        Args:
            n: how many.
            drift: share in which some words are split otherwise than by the tokenizer.
            tools: share of prompts that declare tools.
            length: share that ends at max_tokens.
            cut: share that breaks off.
        """
        worlds = [self._world(each, drift, cut) for each in self._kinds]
        rng = random.Random(f"{self._seed}|{n}")
        cases = list[Case]()
        while len(cases) < n:
            place = len(cases) % len(self._kinds)
            declared = TOOLS if rng.random() < tools else ()
            limit = rng.randint(2, 90) if rng.random() < length else 4096
            prompt = Prompt(f"{len(cases):016x}", "TRUTH", rng.choice(ASKED), declared)
            case = self._ask(self._kinds[place], worlds[place], prompt, limit)
            if case is not None:
                cases.append(case)
        return cases

    def _world(self, each: Kind, drift: float, cut: float) -> World:
        faults = Faults(no_usage=each.no_usage, **dict.fromkeys(_CUTS, cut / len(_CUTS)))
        scenario = replace(CLEAN, providers=(each.provider,), drift=drift, faults=faults, comments=0.0)
        seed = zlib.crc32(f"{self._seed}|{each.name}".encode())
        return World(scenario, seed, self._family.vocab, lambda: 0.0, self._count)

    def _count(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], thinking: bool) -> int:
        key = json.dumps([messages, tools, thinking])
        if key not in self._counted:
            self._counted[key] = self._family.count_prompt(messages, tools, thinking)
        return self._counted[key]

    def _ask(self, each: Kind, world: World, prompt: Prompt, limit: int) -> Case | None:
        """One answer; None where not a token came, which is no answer."""
        body: dict[str, Any] = {"model": world.scenario.model, "messages": prompt.messages, "max_tokens": limit}
        body |= {"stream": each.stream, **({"tools": prompt.tools} if prompt.tools else {}), **each.body, **self._body}
        reply = world.handle("POST", "/api/v1/chat/completions", _KEY, msgspec.json.encode(body))
        reader, broken = Stream(), None
        for data in _played(reply.steps):
            if data is Action.RESET:
                broken = "reset"
            elif isinstance(data, bytes):
                reader.feed(data)
        reply.delivered()
        reader.end()
        outcome, entry = reader.outcome(broken), world.books.entries[reply.generation_id or ""]
        if not isinstance(outcome, Completion):
            return None
        if outcome.cut is not None and outcome.usage is None and int(prompt.id, 16) % 2:
            outcome = replace(outcome, usage=_looked_up(entry))
        record = Record(Work("TRUTH", prompt.id), prompt, outcome, each.provider.tag, entry.counts.cost, 1)
        sent = entry.total if outcome.cut is None else entry.sent
        return Case(record, tuple(entry.ids()), entry.drifted, each, sent)


def _played(steps: Iterator[tuple[float, bytes | Action]]) -> Iterator[bytes | Action]:
    """What comes, up to its end."""
    for _, step in steps:
        yield step
        if isinstance(step, Action):
            return


def _looked_up(entry: Entry) -> Usage:
    """The counts that the API tells later of an answer that broke off: the provider ran on."""
    counts = entry.counts
    return Usage(counts.prompt, counts.completion, counts.reasoning, cost=counts.cost)
