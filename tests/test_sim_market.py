"""The simulated market's parts by themselves: sampled answers, counts, routing, and the bytes of chunks."""

import json
import random
from array import array
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eyas.families.base import Loaded
from eyas.sim import Provider
from eyas.sim.billing import Counts, count
from eyas.sim.chunks import Chunks, usage_json
from eyas.sim.cutting import Texts
from eyas.sim.providers import Route, allowed, ranked
from eyas.sim.scenarios.kimi import PROVIDERS
from eyas.sim.text import Answer, Part, Sampler, Shape
from eyas.vocab import Vocab

RECORDED = Path(__file__).parent / "data" / "recorded"
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}  # fmt: skip


def texts(parts: tuple[Part, ...], vocab: Vocab) -> list[tuple[str, list[int]]]:
    """Text and ids of every part that has a text."""
    return [(vocab.decode(part.ids.tolist()), part.ids.tolist()) for part in parts if part.channel != "special"]


def canonical(answer: Answer, vocab: Vocab) -> bool:
    """Whether the tokenizer would choose the ids of every part."""
    return all(vocab.encode(text) == ids for text, ids in texts(answer.parts, vocab))


def test_answers_are_canonical_unless_they_drift(kimi: Loaded) -> None:
    """Any sentence may follow any other, cut or whole, and a drifted answer really is another split of the same text."""
    sampler, rng = Sampler(kimi.vocab), random.Random(5)
    for number in range(150):
        limit = 10**6 if number % 3 else rng.randint(1, 300)
        tools = (TOOL,) if number % 4 == 0 else ()
        answer = sampler.sample(Shape(rng.randint(1, 400), rng.randint(0, 300), limit, number % 2 == 0, tools), rng)
        assert answer.size <= limit
        assert answer.canonical == canonical(answer, kimi.vocab)
        assert not (answer.drifted and answer.canonical)
        if limit == 10**6:
            assert answer.drifted == (number % 2 == 0)
            assert answer.canonical != answer.drifted


def test_raw_form_is_reasoning_end_content_tools_stop(kimi: Loaded) -> None:
    """The ids are the family's raw form, and a limit takes the stop token away."""
    sampler = Sampler(kimi.vocab)
    answer = sampler.sample(Shape(20, 10, 10**6, calls=(TOOL,), first_call=3), random.Random(1))
    text = kimi.vocab.decode(answer.ids.tolist())
    assert "</think>" in text
    assert "<|tool_call_begin|>functions.weather:3<|tool_call_argument_begin|>{" in text
    assert text.endswith("<|tool_call_end|><|tool_calls_section_end|><|im_end|>")
    assert answer.finish == "tool_calls"
    cut = sampler.sample(Shape(20, 10, 5), random.Random(1))
    assert (cut.finish, cut.ids.tolist()) == ("length", answer.ids.tolist()[:5])


def test_counts_follow_each_convention() -> None:
    """The four switches of a provider's count, against the arithmetic of the recorded answers."""

    def answer(reasoning: int, content: int) -> Answer:
        parts = (Part("reasoning", array("i", range(reasoning))), Part("special", array("i", [163607])),
                 Part("content", array("i", range(content))), Part("special", array("i", [163586])))  # fmt: skip
        return Answer(parts, "stop", canonical=True, drifted=False)

    chutes, inceptron, modelrun, moonshot = (
        next(p for p in PROVIDERS if p.name == name) for name in ("Chutes", "Inceptron", "ModelRun", "Moonshot AI")
    )
    assert count(inceptron, answer(165, 36), 21, 203).completion == 202
    assert count(inceptron, answer(165, 36), 21, 203).reasoning == 166
    assert count(inceptron, answer(165, 36), 21, 203).cost == 453_640
    assert count(chutes, answer(46, 18), 69, 66) == count(chutes, answer(46, 18), 69, 66)
    assert (count(chutes, answer(46, 18), 69, 66).completion, count(chutes, answer(46, 18), 69, 66).reasoning) == (
        66,
        47,
    )
    assert count(modelrun, answer(158, 14), 21, 174).completion == 173
    assert count(modelrun, answer(158, 14), 21, 174).reasoning != 158
    first = count(moonshot, answer(44, 1), 21, 47)
    assert (first.prompt, first.completion, first.reasoning, first.cost) == (20, 48, 42, 156_000)


@pytest.mark.parametrize("path", sorted(RECORDED.glob("kimi-*_streaming-*.json")), ids=lambda path: path.stem)
def test_chunks_are_those_of_recorded_streams(path: Path) -> None:
    """Every chunk of a real stream, rebuilt from its fields, is the same bytes: key order, numbers, escapes."""
    lines = json.loads(path.read_text())["body"].split("\n\n")
    for line in (line for line in lines if line.startswith("data: {")):
        event = json.loads(line[6:])
        chunks, choice = (
            Chunks({key: event[key] for key in ("id", "created", "model", "provider")}),
            event["choices"][0],
        )
        delta, texts = choice["delta"], Texts(None)  # pyright: ignore[reportArgumentType]
        calls = delta.get("tool_calls")
        if choice["finish_reason"]:
            counts = counts_of(event["usage"]) if "usage" in event else None
            said = chunks.finish(choice["finish_reason"], usage_json(counts) if counts else None)
        elif calls and "id" in calls[0]:
            said = chunks.call(calls[0]["index"], calls[0]["id"])
        elif calls:
            said = chunks.arguments(calls[0]["index"], texts.escape(calls[0]["function"]["arguments"]))
        else:
            said = (chunks.reasoning if delta.get("reasoning") else chunks.content)(
                texts.escape(delta.get("reasoning") or delta["content"]))  # fmt: skip
        assert said.decode() == line.replace('"cached_tokens":64', '"cached_tokens":0') + "\n\n"  # no prompt cache here


def counts_of(said: dict[str, Any]) -> Counts:
    """The counts of a recorded usage block."""
    costs = [round(Decimal(str(said["cost_details"][f"upstream_inference_{part}_cost"])) * 10**9)
             for part in ("prompt", "completions")]  # fmt: skip
    reasoning = said["completion_tokens_details"]["reasoning_tokens"]
    return Counts(said["prompt_tokens"], said["completion_tokens"], reasoning, *costs)


@pytest.mark.parametrize(
    ("block", "tags"),
    [
        ({"only": ["chutes", "baseten/fp4"]}, {"chutes/int4", "baseten/fp4"}),
        ({"only": ["chutes/int4"], "ignore": ["chutes"]}, set()),
        ({"quantizations": ["int4"], "max_price": {"completion": "2.2"}}, {"chutes/int4", "inceptron/int4"}),
        ({"quantizations": ["unknown"]}, {"fireworks", "venice"}),
        ({"order": ["venice", "moonshotai"], "allow_fallbacks": False}, {"venice", "moonshotai/int4"}),
    ],
)
def test_routing_filters(block: dict[str, Any], tags: set[str]) -> None:
    """Base slugs, full tags, quantizations and prices per million filter the market."""
    assert {provider.tag for provider in allowed(Route(**block), PROVIDERS)} == tags


def test_routing_order() -> None:
    """`order` comes first, `sort` then; the cheapest of all is one that native weights rule out."""
    rng = random.Random(1)
    by_price = ranked(Route(sort="price"), PROVIDERS, rng)
    assert by_price[0].quantization == "nvfp4"
    assert ranked(Route(order=["venice"], sort="price"), PROVIDERS, rng)[:2] == [PROVIDERS[7], by_price[0]]
    assert ranked(Route(sort={"by": "throughput"}), PROVIDERS, rng)[0].name == "Fireworks"
    first = {ranked(Route(), PROVIDERS, rng)[0].name for _ in range(200)}
    assert "BaseTen" not in first
    assert len(first) > 4


def test_price_finer_than_the_books_is_refused() -> None:
    """A price below a nano-dollar a token would make the books inexact."""
    with pytest.raises(ValueError, match="finer"):
        _ = Provider(name="X", tag="x", quantization=None, prompt="0.0000000001", completion="0.000001").prompt_nano
