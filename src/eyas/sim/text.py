"""Simulated answers: token ids as a model would sample them, canonical unless they are meant to drift (pure, seeded)."""

from __future__ import annotations

import json
import math
import random
from array import array
from typing import Any, Literal, Protocol, TypeAlias, cast

import msgspec

from eyas.sim.phrases import BLOCKS, SAYINGS, THOUGHTS, WORDS

Channel = Literal["reasoning", "content", "name", "arguments", "special"]
"""Where the tokens of a part appear; `special` tokens appear nowhere."""


PLAIN_SHARE = 0.8
"""The share of answers without a character that is split over tokens (emoji, rare scripts)."""


class Vocabulary(Protocol):
    """What the simulator needs of a tokenizer; of special tokens their spelling only."""

    def encode(self, text: str, /) -> list[int]:
        """Canonical ids of a text, special tokens spelled out as ordinary text."""
        ...

    def token_bytes(self, token: int, /) -> bytes:
        """The bytes of one token."""
        ...

    def id_of(self, data: bytes, /) -> int | None:
        """The token with exactly these bytes, if there is one."""
        ...


class RawForm(msgspec.Struct, frozen=True):
    """Special ids of the family's raw form; the defaults are those of Kimi K2.5."""

    think_end: int = 163607
    stop: int = 163586
    section_begin: int = 163595
    section_end: int = 163596
    call_begin: int = 163597
    argument_begin: int = 163598
    call_end: int = 163599


class Part(msgspec.Struct, frozen=True):
    """A run of sampled tokens in one channel."""

    channel: Channel
    ids: array[int]


class Answer(msgspec.Struct, frozen=True):
    """What a model sampled.

    Attributes:
        parts: in the order sampled; together they are the raw form.
        finish: stop, tool_calls or length.
        canonical: every part is what the tokenizer would choose for its text.
        drifted: some tokens were replaced on purpose by another split of their bytes.
    """

    parts: tuple[Part, ...]
    finish: Literal["stop", "tool_calls", "length"]
    canonical: bool
    drifted: bool

    @property
    def ids(self) -> array[int]:
        """The raw form: every sampled id, special tokens included."""
        whole = array("i")
        for part in self.parts:
            whole.extend(part.ids)
        return whole

    @property
    def size(self) -> int:
        """How many ids there are."""
        return sum(len(part.ids) for part in self.parts)

    def upto(self, tokens: int) -> tuple[Part, ...]:
        """The parts of the first so many ids."""
        return tuple(cut_at(list(self.parts), tokens))

    def count(self, channel: Channel) -> int:
        """Tokens in one channel."""
        return sum(len(part.ids) for part in self.parts if part.channel == channel)


class Shape(msgspec.Struct, frozen=True):
    """What is asked of one answer: tokens of reasoning (None: instant) and content, the limit, drift, tools to call.

    `compact`: arguments without spaces.
    """

    reasoning: int | None
    content: int
    limit: int
    drift: bool = False
    calls: tuple[dict[str, Any], ...] = ()
    first_call: int = 0
    compact: bool = False


Pool: TypeAlias = "dict[str, list[array[int]]]"
"""Pre-tokenised sentences by how they start and end: `space` or `line` start, plain, `.` or `n` (newlines) end."""


class Sampler:
    """Draws answers from pre-tokenised sentences; a million tokens a second, since nothing is encoded on the way."""

    def __init__(self, vocabulary: Vocabulary, form: RawForm | None = None) -> None:
        self.vocabulary = vocabulary
        self.form = form or RawForm()
        self._pools = {plain: self._pools_of(plain=plain) for plain in (True, False)}
        self._splits: dict[int, tuple[int, int] | None] = {}

    def _pools_of(self, *, plain: bool) -> tuple[Pool, Pool]:
        """Reasoning and content; in plain ones no character is split over tokens, as in most English answers."""
        kept = [tuple(t for t in texts if not plain or self._whole(t)) for texts in (THOUGHTS, SAYINGS, BLOCKS)]
        return self._pool(kept[0], ()), self._pool(kept[1], kept[2])

    def _whole(self, text: str) -> bool:
        """Whether every token of a text is whole characters."""
        try:
            return all(self.vocabulary.token_bytes(token).decode() for token in self.vocabulary.encode(f" {text}\n\n"))
        except UnicodeDecodeError:
            return False

    def _pool(self, sentences: tuple[str, ...], blocks: tuple[str, ...]) -> Pool:
        encode = self.vocabulary.encode
        pool: Pool = {"space": [], "space_n": [], "line": [], "line_n": []}
        for sentence in sentences:
            for start, text in (("space", " " + sentence), ("line", sentence)):
                pool[start].append(array("i", encode(text)))
                pool[start + "_n"] += [array("i", encode(text + end)) for end in ("\n", "\n\n", "\n\n")]
        pool["line_n"] += [array("i", encode(block)) for block in blocks for _ in range(3)]
        return pool

    def sample(self, shape: Shape, rng: random.Random) -> Answer:
        """One answer of that shape, cut at its limit."""
        form, parts = self.form, list[Part]()
        thoughts, sayings = self._pools[rng.random() < PLAIN_SHARE]
        if shape.reasoning is not None:
            parts.append(Part("reasoning", self._prose(thoughts, shape.reasoning, rng, start="space")))
            parts.append(Part("special", array("i", [form.think_end])))
        start = "space" if rng.random() < 0.7 else "line"
        parts.append(Part("content", self._prose(sayings, shape.content, rng, start=start)))
        if shape.calls:
            parts += self._tool_section(shape, rng)
        parts.append(Part("special", array("i", [form.stop])))
        drifted = shape.drift and self._drift(parts, rng)
        kept = cut_at(parts, shape.limit)
        if kept is parts:
            return Answer(tuple(parts), "tool_calls" if shape.calls else "stop", not drifted, drifted)
        canonical = all(part.channel == "special" or self._again(part) == part.ids for part in kept)
        return Answer(tuple(kept), "length", canonical, drifted and not canonical)

    def _prose(self, pool: Pool, tokens: int, rng: random.Random, start: str) -> array[int]:
        ids, draw = array("i"), rng.random
        while len(ids) < tokens:
            ends_line = draw() < 0.25
            sentences = pool[start + "_n" if ends_line else start]
            ids += sentences[int(draw() * len(sentences))]
            start = "line" if ends_line else "space"
        return ids

    def _tool_section(self, shape: Shape, rng: random.Random) -> list[Part]:
        form, encode = self.form, self.vocabulary.encode
        parts = [Part("special", array("i", [form.section_begin]))]
        for place, tool in enumerate(shape.calls, shape.first_call):
            function = cast("dict[str, Any]", tool.get("function") or {})
            separators = (",", ":") if shape.compact else (", ", ": ")
            values = _arguments(function.get("parameters"), rng)
            arguments = json.dumps(values, ensure_ascii=False, separators=separators)
            parts += [
                Part("special", array("i", [form.call_begin])),
                Part("name", array("i", encode(f"functions.{function.get('name', 'tool')}:{place}"))),
                Part("special", array("i", [form.argument_begin])),
                Part("arguments", array("i", encode(arguments))),
                Part("special", array("i", [form.call_end])),
            ]
        parts.append(Part("special", array("i", [form.section_end])))
        return parts

    def _drift(self, parts: list[Part], rng: random.Random) -> bool:
        drifted = False
        for place, part in enumerate(parts):
            if part.channel not in ("reasoning", "content") or not part.ids:
                continue
            ids, wanted = part.ids[:], 1 + len(part.ids) // 150
            tried = rng.sample(range(len(ids)), min(len(ids), 8 * wanted))
            for at in sorted([at for at in tried if self._split(ids[at])][:wanted], reverse=True):
                ids[at : at + 1] = array("i", self._split(ids[at]) or ())
                drifted = True
            parts[place] = Part(part.channel, ids)
        return drifted

    def _split(self, token: int) -> tuple[int, int] | None:
        """Two tokens whose bytes are this token's: a split that the tokenizer itself would never choose."""
        if token not in self._splits:
            data, found = self.vocabulary.token_bytes(token), None
            for cut in sorted(range(1, len(data)), key=lambda place: abs(2 * place - len(data))):
                left, right = self.vocabulary.id_of(data[:cut]), self.vocabulary.id_of(data[cut:])
                if left is not None and right is not None:
                    found = (left, right)
                    break
            self._splits[token] = found
        return self._splits[token]

    def _again(self, part: Part) -> array[int]:
        text = b"".join(map(self.vocabulary.token_bytes, part.ids)).decode(errors="replace")
        return array("i", self.vocabulary.encode(text))


def lengths(median: float, sigma: float, most: int, rng: random.Random) -> int:
    """Tokens of an answer: lognormal, at least one, at most `most`."""
    return max(1, min(most, round(median * math.exp(rng.gauss(0.0, sigma)))))


def cut_at(parts: list[Part], limit: int) -> list[Part]:
    """The parts up to `limit` tokens; the list itself if nothing has to go."""
    kept, left = list[Part](), limit
    for part in parts:
        if len(part.ids) > left:
            if left:
                kept.append(Part(part.channel, part.ids[:left]))
            return kept
        kept.append(part)
        left -= len(part.ids)
    return parts


def _arguments(schema: Any, rng: random.Random) -> dict[str, Any]:
    fields = cast("dict[str, Any]", schema if isinstance(schema, dict) else {}).get("properties")
    properties = cast("dict[str, Any]", fields if isinstance(fields, dict) else {})
    return {name: _value(field, rng) for name, field in properties.items()}


def _value(field: Any, rng: random.Random) -> Any:
    spec = cast("dict[str, Any]", field if isinstance(field, dict) else {})
    options, kind = spec.get("enum"), spec.get("type")
    if options:
        return rng.choice(options)
    if kind == "array":
        return [_value(spec.get("items"), rng) for _ in range(rng.randint(1, 3))]
    if kind == "object":
        return _arguments(spec, rng)
    plain = {"integer": rng.randrange(1000), "number": round(rng.uniform(-10, 10), 2), "boolean": rng.random() < 0.5}
    return plain.get(str(kind), rng.choice(WORDS))
