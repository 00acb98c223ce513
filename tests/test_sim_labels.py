"""What the scenario `labels` adds to the market: other counts, lists of logprobs, cuts at words, arguments written anew."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import tiktoken
from msgspec.structs import replace

from eyas.families import Loaded
from eyas.sim import Action, Provider, Scenario, World, load
from eyas.sim.books import Entry
from eyas.sim.cutting import Texts, pieces
from eyas.sim.scenarios.labels import HONEST, LABELS, WRONG
from tests.answers import ASKED, TOOLS

KEY = {"authorization": "Bearer sk-test"}
QUIET = replace(LABELS, faults=load("clean").faults, drift=0.0, tool_share=1.0, length_median=120.0, comments=0.0)
PROVIDERS = {provider.name: provider for provider in HONEST + WRONG}
Body = dict[str, Any]
Answered = Callable[..., tuple[list[Body], Entry]]


@pytest.fixture
def answered(kimi: Loaded) -> Answered:
    """Ask one provider; the bodies or chunks that came, and the simulator's books of it."""

    def ask(provider: Provider, scenario: Scenario = QUIET, seed: int = 1, **body: Any) -> tuple[list[Body], Entry]:
        world = World(replace(scenario, providers=(provider,)), seed, kimi.vocab, lambda: 0.0, kimi.count_prompt)
        full = {"model": scenario.model, "messages": ASKED[2], "stream": True, "max_tokens": 4000} | body
        reply = world.handle("POST", "/api/v1/chat/completions", KEY, json.dumps(full).encode())
        raw = b"".join(step for _, step in reply.steps if not isinstance(step, Action))
        reply.delivered()
        lines = [line[6:] for line in raw.split(b"\n\n") if line.startswith(b"data: {")]
        return [json.loads(line) for line in lines or [raw]], next(iter(world.books.entries.values()))

    return ask


def listed(chunks: list[Body]) -> list[bytes]:
    """The bytes of all listed tokens."""
    found = [choice.get("logprobs") or {} for chunk in chunks for choice in chunk["choices"]]
    return [bytes(entry["bytes"]) for logprobs in found for entry in logprobs.get("content", ())]


@pytest.mark.parametrize("provider", HONEST + WRONG, ids=lambda provider: provider.name)
def test_prompts_are_counted_as_the_provider_says(answered: Answered, kimi: Loaded, provider: Provider) -> None:
    """The template's count, and on top of it a hidden turn, or another template's newlines and its own system turn."""
    for asked in ASKED:
        chunks, entry = answered(provider, messages=asked, tools=list(TOOLS))
        rendered = kimi.count_prompt(asked, TOOLS, thinking=True) - provider.think_sampled
        said = next(chunk["usage"] for chunk in chunks if "usage" in chunk)
        more = said["prompt_tokens"] - rendered
        assert said["completion_tokens"] >= len(entry.ids()) - (not provider.stop_counted)
        if provider.other_template:
            assert more == len(asked) + 1 + (0 if asked[0]["role"] == "system" else 12)
        elif provider.other_tokenizer:
            assert more > 0
        else:
            assert more == provider.hidden_prompt


def test_another_tokenizer_counts_what_it_would_make_of_the_text(answered: Answered, kimi: Loaded) -> None:
    """The count is that of a real encoder that knows only the vocabulary's first merges."""
    ranks = {kimi.vocab.token_bytes(number): number for number in range(16_384)}
    smaller = tiktoken.Encoding("smaller", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={})
    chunks, entry = answered(PROVIDERS["Tokenizer"], tools=list(TOOLS))
    count = sum(
        1 if channel == "special" else len(smaller._encode_single_piece(kimi.vocab.token_bytes(number)))
        for channel, ids in ((part.channel, part.ids) for part in entry.parts)
        for number in ids
    )
    said = next(chunk["usage"] for chunk in chunks if "usage" in chunk)
    assert said["completion_tokens"] == count > len(entry.ids())


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", ["Listed", "Listed Burst", "Listed Anywhere", "Listed Content", "Listed Stripped"])
def test_lists_hold_the_tokens_that_they_promise(answered: Answered, kimi: Loaded, name: str, stream: bool) -> None:
    """Every token, special ones by their spelling; all but those; or the content's; of cut and of whole answers."""
    for limit in (4000, 70, 3):
        chunks, entry = answered(PROVIDERS[name], stream=stream, max_tokens=limit, tools=list(TOOLS), logprobs=True)
        wanted = [
            kimi.vocab.token_bytes(number)
            for part in entry.parts
            for number in part.ids
            if {"all": True, "text": part.channel != "special"}.get(PROVIDERS[name].logprobs, part.channel == "content")
        ]
        assert listed(chunks) == wanted


def test_folded_lists_hold_the_text_in_fewer_entries(answered: Answered, kimi: Loaded) -> None:
    """Characters of several tokens are one entry, and sometimes two words are; nothing of the text is missing."""
    fewer = 0
    for seed in range(20):
        chunks, entry = answered(PROVIDERS["Folded"], seed=seed, logprobs=True)
        tokens = [kimi.vocab.token_bytes(number) for number in entry.ids()]
        assert b"".join(listed(chunks)) == b"".join(tokens)
        assert all(data.decode() for data in listed(chunks))
        fewer += len(listed(chunks)) < len(tokens)
    assert fewer > 10


def test_nothing_is_listed_unless_it_is_asked_for(answered: Answered) -> None:
    """Without `logprobs` in the body, and at providers that have none, no chunk holds a list."""
    for name, body in (("Listed", {}), ("Listed", {"logprobs": False}), ("Token", {"logprobs": True})):
        for stream in (True, False):
            chunks, _ = answered(PROVIDERS[name], stream=stream, **body)
            assert not any(choice.get("logprobs") for chunk in chunks for choice in chunk["choices"])


def test_words_are_whole_tokens_in_one_piece(kimi: Loaded) -> None:
    """Nothing is lost, no token is split, and a word that was sampled in parts is one piece."""
    ids = [*kimi.vocab.encode("The user, who asks 🦅 "), *(kimi.vocab.encode("road") + kimi.vocab.encode("kin"))]
    found = list(pieces(ids, "word", Texts(kimi.vocab), None))  # pyright: ignore[reportArgumentType]
    assert "".join(text for text, _ in found) == "The user, who asks 🦅 roadkin"
    assert sum(tokens for _, tokens in found) == len(ids)
    assert ("roadkin", 2) in found
    assert [text for text, _ in found][:5] == ["The", " user", ",", " who", " asks"]


@pytest.mark.parametrize(("name", "form"), [
    ("Compact", {"separators": (",", ":"), "ensure_ascii": False}),
    ("Spaced", {"ensure_ascii": False}),
    ("Escaped", {}),
])  # fmt: skip
def test_arguments_are_written_anew(answered: Answered, kimi: Loaded, name: str, form: Body) -> None:
    """The same values in the provider's own form, streamed or whole, whichever form the model sampled."""
    sampled_forms = set[bool]()
    for seed in range(12):
        for stream in (True, False):
            chunks, entry = answered(PROVIDERS[name], seed=seed, stream=stream, tools=list(TOOLS))
            sampled = [kimi.vocab.decode(part.ids) for part in entry.parts if part.channel == "arguments"]
            shown = [""] * len(sampled)
            for choice in (choice for chunk in chunks for choice in chunk["choices"]):
                for call in choice["delta" if stream else "message"].get("tool_calls", ()):
                    shown[call["index"]] += call["function"].get("arguments", "")
            assert shown == [json.dumps(json.loads(text), **form) for text in sampled]
            sampled_forms |= {'": ' in text for text in sampled}
    assert sampled_forms == {True, False}


def test_the_labels_scenario_is_even(answered: Answered) -> None:
    """One price and few slots, so that every provider gets a share; names and tags are unique."""
    assert len({provider.prompt for provider in LABELS.providers}) == 1
    assert len({provider.completion for provider in LABELS.providers}) == 1
    assert len({provider.tag for provider in LABELS.providers}) == len(PROVIDERS) == len(LABELS.providers)
    assert LABELS.slots
