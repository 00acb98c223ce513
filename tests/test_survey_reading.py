"""An answer as a person reads it: every token with its text, its mask and its channel, long ones cut and told so."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.export import Options
from eyas.export.judge import judge
from eyas.families import Loaded
from eyas.report.document import Sample
from eyas.survey.choose import MOST_TOKENS, Kind, Shelf, tokens_each
from eyas.survey.reading import BETWEEN, LAST_CHARACTERS, channels, mask_runs, sample, shown, texts
from eyas.tokens import rebuild
from eyas.types import Finish, Record, ToolCall

Make = Callable[..., Record]


def read(record: Record, family: Loaded, most: int = 1500) -> Sample:
    """The sample of a record."""
    sequence = rebuild(record, family, {}, True)
    _, fact = judge(record, sequence, Options(Path()))
    return sample(record, sequence, fact, family, thinking=True, most=most)


def test_tokens_join_to_what_was_said(kimi: Loaded, answer: Make) -> None:
    """Texts of the tokens are the answer in its channels; ends that a provider may have stripped have mask 0."""
    found = read(answer([" The", " user", " wants", " an"], [" ok", "."]), kimi)
    assert found.tokens == [" The", " user", " wants", " an", "</think>", " ok", ".", "<|im_end|>"]
    assert found.channels == [("reasoning", 4), ("marker", 1), ("content", 2), ("marker", 1)]
    assert found.mask == [0, 1, 2, 1, 1, 2, 1]
    assert (found.reasoning_tokens, found.completion_tokens, found.supervised_tokens) == (4, 8, 4)
    assert (found.finish, found.label, found.left_out) == ("stop", "stripped", 0)


def test_calls_have_a_channel_of_their_own(kimi: Loaded, answer: Make) -> None:
    """Ids and arguments of tool calls are `call`, what stands around them is `marker`."""
    call = ToolCall("functions.add:0", "add", '{"a": 1}')
    record = answer([" The"], [" ok"], finish=Finish.TOOL_CALLS, tool_calls=(call,), streamed=False)
    found = read(record, kimi)
    names = list(chain.from_iterable([name] * count for name, count in found.channels))
    said = "".join(text for text, name in zip(found.tokens, names, strict=True) if name == "call")
    assert said == call.id + call.arguments
    assert {name for name, _ in found.channels} == {"reasoning", "content", "call", "marker"}


def test_parts_of_a_character_are_written_as_their_bytes(kimi: Loaded) -> None:
    r"""A token that is no whole character shows as \xNN; together they are the character."""
    ids = kimi.vocab.encode("𓂀")
    found = texts(ids, kimi.vocab)
    assert len(ids) > 1
    assert "".join(found) == "".join(f"\\x{byte:02x}" for byte in "𓂀".encode())
    assert texts([10**7], kimi.vocab) == ["<id 10000000>"]


def test_a_long_answer_keeps_its_first_tokens(kimi: Loaded, answer: Make) -> None:
    """Tokens, mask and channels end together, and what follows is counted."""
    found = read(answer([" The"] * 50, [" ok"] * 50), kimi, most=60)
    assert len(found.tokens) == sum(found.mask) == sum(count for _, count in found.channels) == 60
    assert found.left_out == found.completion_tokens - 60


def test_an_answer_that_is_left_out_trains_on_nothing(kimi: Loaded, answer: Make) -> None:
    """A label that is not strict has no supervised tokens, and says why."""
    found = read(answer([" The"], [" ok"], counted=30), kimi)
    assert (found.label, found.supervised_tokens) == ("mismatch", 0)
    assert "+30" in found.detail


@given(st.lists(st.integers(0, 1), max_size=40))
def test_mask_runs_unfold_to_the_mask(mask: list[int]) -> None:
    """Runs by turns of 1 and 0, the first of 1, are the mask again."""
    runs = mask_runs(mask)
    assert list(chain.from_iterable([1 - place % 2] * count for place, count in enumerate(runs))) == mask
    assert all(runs[1:])


@given(st.data())
def test_channels_cover_all_ids(kimi: Loaded, recorded: dict[str, Record], data: st.DataObject) -> None:
    """Whatever ids an engine gives, each has one channel."""
    record = data.draw(st.sampled_from(sorted(recorded)).map(recorded.__getitem__))
    ids = data.draw(st.lists(st.integers(0, kimi.vocab.size), max_size=50))
    runs = channels(ids, kimi.parts(record.completion, True), kimi.vocab)
    assert sum(count for _, count in runs) == len(ids)
    assert all(count for _, count in runs)
    assert all(one[0] != two[0] for one, two in pairwise(runs))


def test_recorded_answers_read_back(kimi: Loaded, recorded: dict[str, Record]) -> None:
    """The reasoning tokens of real answers are their reasoning, the content tokens their content."""
    for record in recorded.values():
        found = read(record, kimi, most=10**6)
        names = list(chain.from_iterable([name] * count for name, count in found.channels))
        for channel in ("reasoning", "content"):
            ids = rebuild(record, kimi, {}, True).completion_ids
            said = kimi.vocab.decode([i for i, name in zip(ids, names, strict=True) if name == channel])
            assert said == getattr(record.completion, channel)


def test_long_prompts_are_cut_and_say_so() -> None:
    """The end of a conversation stays, and what is left out is counted."""
    talk: list[dict[str, Any]] = [{"role": "user", "content": f"{n}"} for n in range(30)]
    talk.append({"role": "user", "content": [{"type": "text", "text": "x" * (LAST_CHARACTERS + 7)}]})
    found = shown(talk)
    assert found[2] == {"role": BETWEEN, "content": "", "left_out": 21}
    assert [each["content"] for each in found[:2]] == ["0", "1"]
    assert (len(found[-1]["content"]), found[-1]["left_out"]) == (LAST_CHARACTERS, 7)


def test_calls_of_a_prompt_are_shown_whatever_their_form() -> None:
    """Tool calls come with name and arguments; what is none of that harms nothing."""
    message = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}, 3]}
    found = shown([message])[0]
    assert found["content"] == ""
    assert found["tool_calls"][0] == {"function": {"name": "f", "arguments": "{}"}}
    assert found["tool_calls"][1] == {"function": {"name": "", "arguments": ""}}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10**6)), max_size=60, unique_by=lambda x: x[1]))
def test_the_rarest_kind_is_shown_first_and_the_order_of_reading_says_nothing(given_: list[tuple[str, int]]) -> None:
    """Answers come round by round, one of each kind, whatever order they were read in."""
    forth, back = Shelf(4), Shelf(4)
    for shelf, order in ((forth, given_), (back, given_[::-1])):
        for name, place in order:
            shelf.add(Kind(name, "", "", ""), place, place)
    kinds = {name: [place for each, place in given_ if each == name] for name, _ in given_}
    found = forth.order()
    assert found == back.order()
    names = [next(name for name, places in kinds.items() if place in places) for place in found]
    assert names[: len(kinds)] == sorted(kinds, key=lambda name: (len(kinds[name]), name))
    for places in kinds.values():
        assert [place for place in found if place in places] == sorted(places)[:4]


@pytest.mark.parametrize(("kinds", "tokens"), [(1, MOST_TOKENS), (100, 1062), (100_000, 300)])
def test_many_kinds_are_shown_shorter(kinds: int, tokens: int) -> None:
    """One of each kind fits into the budget, down to a length that can still be read."""
    assert tokens_each(kinds, 1_000_000) == tokens


def test_a_sample_is_json(kimi: Loaded, answer: Make) -> None:
    """What a page or `--json` prints of it can be read back."""
    found = read(answer([" The"], [" ok"]), kimi)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Sample) == found
