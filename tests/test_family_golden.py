"""Id lists made elsewhere, with the models' own tokenizers: our vocabularies, prompts and answers against them.

SpecForge renders whole conversations by templates of its own, with a system turn "You are a helpful assistant." So its
lists hold what a template makes of a finished conversation, the reasoning of past answers dropped; each test says which part
of a list our prompt and our answer must be.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eyas.families import Loaded
from eyas.types import Completion, Finish
from tests.vocabularies import bound, vocabulary

GOLDEN = Path(__file__).parent / "data" / "golden"
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
TALKS: dict[str, list[dict[str, Any]]] = json.loads((GOLDEN / "conversations.json").read_text(encoding="utf-8"))
FAMILY = {
    "kimi-k2-instruct": ("kimi-k2", False),
    "kimi-k2-thinking": ("kimi-k2-thinking", True),
    "deepseek-v3": ("deepseek-v3", False),
    "qwen3-instruct": ("qwen3", False),
    "qwen3-thinking": ("qwen3", True),
}
LISTS = sorted(path.stem for path in GOLDEN.glob("*_*.json"))


def _golden(name: str) -> list[int]:
    return json.loads((GOLDEN / f"{name}.json").read_text())["input_ids"]


def _answer(family: Loaded, completion: Completion, *, thinking: bool) -> list[int]:
    parts = family.parts(completion, thinking)
    return [number for p in parts for number in (family.vocab.encode(p.text) if p.token is None else [p.token])]


@pytest.mark.parametrize("name", LISTS)
def test_golden_ids_are_decoded_and_encoded_to_themselves(name: str, request: pytest.FixtureRequest) -> None:
    """The vocabularies are the models' own, specials included."""
    vocab, ids = vocabulary(name, request), _golden(name)
    assert vocab.encode_special(vocab.decode(ids)) == ids


@pytest.mark.parametrize("name", [name for name in LISTS if name.split("_")[0] in FAMILY])
def test_prompt_and_answer_are_the_golden_conversation(name: str, request: pytest.FixtureRequest) -> None:
    r"""Our prompt up to the last answer and that answer as sampled make up the whole list.

    Behind an answer Qwen's template has a newline, which no model samples. Of K2-Thinking SpecForge leaves out the reasoning
    of the last answer, so it is left out here; its list of Qwen3 has it, with newlines around it that a server leaves in the
    texts. Its `instruct` lists of Qwen3 are instant mode.
    """
    model, talk = name.split("_")
    kind, thinking = FAMILY[model]
    family, messages = bound(kind, request), TALKS[talk]
    last = messages[-1]
    reasoning = last.get("reasoning_content", "") if kind == "qwen3" else ""
    content = last["content"]
    if kind == "qwen3" and thinking:
        reasoning, content = f"\n{reasoning}\n", f"\n\n{content}"
    prompt = family.prompt_ids([SYSTEM, *messages[:-1]], [], thinking)
    answer = _answer(family, Completion(reasoning, content, finish=Finish.STOP), thinking=thinking)
    end = family.vocab.encode("\n") if kind == "qwen3" else []
    assert [*prompt, *answer, *end] == _golden(name)


def test_deepseek_v32_is_rendered_there_as_v3(request: pytest.FixtureRequest) -> None:
    """SpecForge's V3.2 has no `</think>` in front of an answer, as V3.2's own encoder has it, and no system turn."""
    family, messages = bound("deepseek-v3", request), TALKS["standard"]
    prompt = family.prompt_ids(messages[:-1], [], thinking=False)
    answer = _answer(family, Completion("", messages[-1]["content"], finish=Finish.STOP), thinking=False)
    assert [*prompt, *answer] == _golden("deepseek-v32_standard")
    ours = bound("deepseek-v3.2", request).prompt_ids(messages[:-1], [], thinking=False)
    closed = family.vocab.specials["</think>"]
    assert [number for number in ours if number != closed] == prompt
    assert ours.count(closed) == 2


def test_gpt_oss(request: pytest.FixtureRequest) -> None:
    """The list has effort low, ours medium; but for that its prompt is ours, and its first answer up to the stop is ours.

    It ends answers with `<|end|>`, as history does.
    """
    family, messages = bound("gpt-oss", request), TALKS["gpt-oss"]
    vocab, ids = family.vocab, _golden("gpt-oss_gpt-oss")
    prompt = vocab.decode(family.prompt_ids(messages[:1], [], thinking=True)).replace(
        "Reasoning: medium", "Reasoning: low"
    )
    done = Completion(messages[1]["reasoning_content"], messages[1]["content"], finish=Finish.STOP)
    answer = _answer(family, done, thinking=True)
    assert answer.pop() == vocab.specials["<|return|>"]
    start = vocab.encode_special(prompt)
    assert ids[: len(start) + len(answer) + 1] == [*start, *answer, vocab.specials["<|end|>"]]
