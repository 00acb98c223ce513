"""What a stand-in's model samples: a prompt and a seed decide every id (pure)."""

from __future__ import annotations

import hashlib
import json
import random
import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from eyas.errors import UsageError
from eyas.families.base import Channel, Loaded
from eyas.families.base import Part as FamilyPart
from eyas.sim.phrases import WORDS
from eyas.sim.scenarios import Scenario
from eyas.sim.text import Channel as Seen
from eyas.sim.text import Part, Sampler, Shape, cut_at
from eyas.sim.written import drawn
from eyas.types import Completion, Finish, ToolCall

_ENDLESS = 2**31
_DECLARED = (
    ('"parameters"', re.compile(r'"name"\s*:\s*"([\w.-]+)"')),
    ("namespace functions", re.compile(r"^type ([\w.-]+) = \(", re.MULTILINE)),
)
"""What a prompt that declares tools says, and where it names them: as JSON, or as types (Kimi K2.5, gpt-oss)."""
_QUESTION = ({"role": "user", "content": "?"},)
_SEEN: dict[Channel | None, Seen] = {
    Channel.REASONING: "reasoning",
    Channel.CONTENT: "content",
    Channel.TOOL_ID: "name",
    Channel.ARGUMENTS: "arguments",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What was sampled.

    Attributes:
        parts: in the order sampled; `special` ones are markers, and text that no parser delivers.
        calls: the tool calls, if all of them were sampled.
        drifted: some tokens are a split that the tokenizer would not choose.
    """

    parts: tuple[Part, ...]
    finish: Literal["stop", "tool_calls", "length"]
    calls: tuple[ToolCall, ...] = ()
    drifted: bool = False

    @property
    def ids(self) -> array[int]:
        """Every sampled id, the stop token included."""
        whole = array("i")
        for part in self.parts:
            whole.extend(part.ids)
        return whole

    @property
    def size(self) -> int:
        """How many ids there are."""
        return sum(len(part.ids) for part in self.parts)

    @property
    def stopped(self) -> bool:
        """Whether the last id is the stop token."""
        return self.finish != "length"


class Modes:
    """Tells from the end of a prompt whether it asks the model to think, as a model sees it."""

    def __init__(self, loaded: Loaded) -> None:
        self._ends: dict[bool, list[int]] = {}
        for thinking in (True, False):
            with suppress(UsageError):
                self._ends[thinking] = list(loaded.prompt_ids(_QUESTION, (), thinking))
        both = list(self._ends.values())
        if len(both) == 2:
            same = next((i for i, (a, b) in enumerate(zip(*both, strict=False)) if a != b), min(map(len, both)))
            self._ends = {thinking: ids[same:] for thinking, ids in self._ends.items()}

    def of(self, prompt: Sequence[int]) -> bool:
        """Whether the model is to think after this prompt."""
        if len(self._ends) < 2 or self._ends[True] == self._ends[False]:
            return self.default
        longest = max(self._ends, key=lambda thinking: len(self._ends[thinking]))
        end = self._ends[longest]
        return longest if list(prompt[-len(end) :]) == end else not longest

    def has(self, thinking: bool) -> bool:
        """Whether the model has such a mode."""
        return thinking in self._ends

    @property
    def default(self) -> bool:
        """The mode of a request that names none: thinking, where it differs from not thinking."""
        return self.has(True) and self._ends[True] != self._ends.get(False)


class Author:
    """Samples answers. The same prompt, mode and seeds give the same ids; a limit only cuts them."""

    def __init__(self, loaded: Loaded, scenario: Scenario, seed: int) -> None:
        """The scenario says how long answers are, how much of them is reasoning, how often they drift and call tools."""
        self._loaded = loaded
        self._scenario = scenario
        self._seed = seed
        self._sampler = Sampler(loaded.vocab)

    def answer(self, prompt: Sequence[int], thinking: bool, limit: int, seed: int | None = None) -> Answer:
        """The answer to a prompt, cut after `limit` ids."""
        digest = hashlib.sha256(array("i", prompt).tobytes()).hexdigest()
        rng, law = random.Random(f"{self._seed}|{seed}|{digest}|{thinking}"), self._scenario
        tokens = drawn(law, rng)
        thought = round(tokens * law.thinking_share) if thinking else None
        drift, called = rng.random() < law.drift, rng.random() < law.tool_share
        calls = self._calls(prompt, rng) if called else ()
        shape = Shape(thought, max(1, tokens - (thought or 0)), _ENDLESS, drift=drift)
        drawn_parts = {part.channel: part.ids for part in self._sampler.sample(shape, rng).parts}
        said = {name: drawn_parts.get(name, array("i")) for name in ("reasoning", "content")}
        parts = list(self._parts(said, calls, thinking, drift))
        kept = cut_at(parts, limit)
        if kept is not parts:
            return Answer(tuple(kept), "length", (), drift)
        return Answer(tuple(parts), "tool_calls" if calls else "stop", calls, drift)

    def _parts(
        self, said: dict[str, array[int]], calls: tuple[ToolCall, ...], thinking: bool, drift: bool
    ) -> Iterator[Part]:
        """The answer in the family's own form; sampled ids where they drift, else what the tokenizer makes of the text."""
        decode = self._loaded.vocab.decode
        texts = {name: decode(ids) for name, ids in said.items()}
        finish = Finish.TOOL_CALLS if calls else Finish.STOP
        completion = Completion(texts["reasoning"], texts["content"], calls, finish)
        form = self._loaded.parts(completion, thinking)
        if not form:
            form = self._loaded.parts(Completion("", texts["content"], (), Finish.STOP), thinking)
        for part in form:
            seen = _SEEN.get(part.channel, "special")
            if part.token is not None:
                yield Part("special", array("i", [part.token]))
            elif drift and part.text == texts.get(seen):
                yield Part(seen, said[seen])
            else:
                yield Part(seen, array("i", self._loaded.vocab.encode(part.text)))

    def _calls(self, prompt: Sequence[int], rng: random.Random) -> tuple[ToolCall, ...]:
        """A call of one of the tools that the prompt declares; their names are found in its text."""
        text = self._loaded.vocab.decode(prompt)
        names = sorted({name for mark, pattern in _DECLARED if mark in text for name in pattern.findall(text)})
        if not names:
            return ()
        name = rng.choice(names)
        arguments = json.dumps({"query": " ".join(rng.sample(WORDS, 3)), "limit": rng.randrange(1, 20)})
        call = ToolCall(f"functions.{name}:0", name, arguments)
        finished = Completion("", "", (call,), Finish.TOOL_CALLS)
        return (call,) if _writes_calls(self._loaded.parts(finished, thinking=False)) else ()


def _writes_calls(parts: Sequence[FamilyPart]) -> bool:
    return any(part.channel in (Channel.ARGUMENTS, Channel.TOOL_ID) for part in parts)
