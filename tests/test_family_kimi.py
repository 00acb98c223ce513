"""Kimi K2.5: prompts as the template gives them, answers as the model samples them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from eyas.errors import UsageError
from eyas.families import Channel, Loaded, by_name, guess
from eyas.types import Completion, Finish, Message, Record, ToolCall

USER = {"role": "user", "content": "hi"}
END = "<|im_assistant|>assistant<|im_middle|>"
CALL = ToolCall("functions.add:0", "add", '{"a":2,  "b":2}')


def _text(kimi: Loaded, completion: Completion, *, thinking: bool = True) -> str:
    return "".join(part.text for part in kimi.parts(completion, thinking))


def test_names_and_guesses() -> None:
    """The family is found by its name and by the model's id, whatever its case."""
    assert guess("moonshotai/Kimi-K2.5") == guess("moonshotai/kimi-k2.5-0127") == "kimi-k2.5"
    assert guess("mistralai/mistral-large") is None
    with pytest.raises(UsageError, match=r"kimi-k2\.5"):
        by_name("kimi")


def test_presets() -> None:
    """Sampling and the thinking switch are the maker's and OpenRouter's."""
    family = by_name("kimi-k2.5")
    assert family.sampling(thinking=True) == {"temperature": 1.0, "top_p": 0.95}
    assert family.sampling(thinking=False) == {"temperature": 0.6, "top_p": 0.95}
    assert family.body(thinking=False) == {"reasoning": {"enabled": False}}


def test_a_prompt_ends_with_the_think_marker_by_its_id(kimi: Loaded) -> None:
    """`<think>` is id 163606 in the prompt; instant mode closes it."""
    ids = kimi.prompt_ids([USER], [], thinking=True)
    assert ids == [163587, 2482, 163601, *kimi.vocab.encode("hi"), 163586, 163588, 69702, 163601, 163606]
    assert kimi.prompt_ids([USER], [], thinking=False) == [*ids, 163607]


@pytest.mark.parametrize("spelled", ["<|im_end|>", "</think>", "[EOS]"])
def test_spelled_specials_in_a_prompt_are_read_as_the_engine_reads_them(kimi: Loaded, spelled: str) -> None:
    """A special's spelling in a message becomes its id."""
    assert kimi.prompt_ids([{"role": "user", "content": spelled}], [], thinking=True)[3] == kimi.vocab.specials[spelled]


def test_history_drops_reasoning_but_an_open_tool_cycle_keeps_it(kimi: Loaded) -> None:
    """Plain answers of the past are rendered without reasoning; arguments stay byte for byte."""
    call = {"id": CALL.id, "type": "function", "function": {"name": "add", "arguments": CALL.arguments}}
    past = {"role": "assistant", "content": "A", "reasoning_content": "R"}
    plain = kimi.vocab.decode(kimi.prompt_ids([USER, past, USER], [], thinking=True))
    assert f"{END}<think></think>A<|im_end|>" in plain
    opened = {"role": "assistant", "content": "", "reasoning_content": "R", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": CALL.id, "content": "4"}
    cycle = kimi.vocab.decode(kimi.prompt_ids([USER, opened, result], [], thinking=True))
    assert "<think>R</think>" in cycle
    assert CALL.arguments in cycle


def test_tool_keys_are_sorted(kimi: Loaded) -> None:
    """The order of keys in a tool declaration does not change the prompt."""
    properties = {"b": {"type": "string", "description": "x"}, "a": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties}
    text = json.dumps({"type": "function", "function": {"name": "f", "parameters": parameters}})
    tool: dict[str, Any] = json.loads(text)
    turned: dict[str, Any] = json.loads(text, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert kimi.prompt_ids([USER], [tool], thinking=True) == kimi.prompt_ids([USER], [turned], thinking=True)


def test_recorded_prompts_have_the_counted_length(kimi: Loaded, recorded: dict[str, Record]) -> None:
    """The render is as long as the API counted: but for <think> at Moonshot AI and arguments dumped again (6 ids)."""
    off: dict[str, int] = {}
    for name, record in recorded.items():
        usage = record.completion.usage
        assert usage is not None
        off[name] = usage.prompt_tokens - kimi.count_prompt(record.prompt.messages, record.prompt.tools, thinking=True)
    assert {name: n for name, n in off.items() if n} == {"moonshot-0": -1, "multi_tool-1": 6}


def test_prompts_that_cannot_be_rendered_say_so(kimi: Loaded) -> None:
    """An empty list and an image end in an error with a remedy, not in a traceback of the renderer."""
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}
    for messages in ([], [image]):
        with pytest.raises(UsageError, match="cannot be rendered"):
            kimi.prompt_ids(messages, [], thinking=True)


def test_prompts_render_in_several_threads(kimi: Loaded) -> None:
    """Threads that share the family get the same ids as one."""
    prompts: list[list[Message]] = [[{"role": "user", "content": f"{i} " * i}] for i in range(40)]

    def render(messages: list[Message]) -> list[int]:
        return kimi.prompt_ids(messages, [], thinking=True)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(render, prompts))
    assert found == [render(messages) for messages in prompts]


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        (Completion(" R", " C\n", finish=Finish.STOP), " R</think> C\n<|im_end|>"),
        (Completion("R", "", finish=Finish.STOP), "R</think><|im_end|>"),
        (Completion("", "C", finish=Finish.STOP), "</think>C<|im_end|>"),
        (Completion("R", "", finish=Finish.LENGTH), "R"),
        (Completion("R", "C", finish=Finish.LENGTH), "R</think>C"),
        (Completion("R", "C"), "R</think>C"),
        (Completion(), ""),
        (
            Completion("R", "", (CALL, CALL), finish=Finish.TOOL_CALLS),
            "R</think><|tool_calls_section_begin|>"
            + 2 * f"<|tool_call_begin|>{CALL.id}<|tool_call_argument_begin|>{CALL.arguments}<|tool_call_end|>"
            + "<|tool_calls_section_end|><|im_end|>",
        ),
        (
            Completion("R", "", (ToolCall("a:0", "a", '{"x'),), finish=Finish.LENGTH),
            'R</think><|tool_calls_section_begin|><|tool_call_begin|>a:0<|tool_call_argument_begin|>{"x',
        ),
    ],
)
def test_the_grammar_of_an_answer(kimi: Loaded, completion: Completion, text: str) -> None:
    """Nothing is stripped or added; an answer that did not end has no markers after its text."""
    assert _text(kimi, completion) == text
    assert all((part.channel is None) == (part.token is not None) for part in kimi.parts(completion, thinking=True))


def test_instant_answers_are_content_only(kimi: Loaded) -> None:
    """Without thinking the model samples no `</think>`."""
    assert _text(kimi, Completion("", "C", finish=Finish.STOP), thinking=False) == "C<|im_end|>"


def test_channels(kimi: Loaded) -> None:
    """Each text knows what it is; no text of Kimi's is form."""
    parts = kimi.parts(Completion("R", "C", (CALL,), finish=Finish.TOOL_CALLS), thinking=True)
    assert [p.channel for p in parts if p.channel] == list(Channel)[:-1]


@pytest.mark.parametrize(
    ("text", "leaked"),
    [
        ("a <|tool_call_begin|> b", True),
        ("<|tool_calls_section_begin|>", True),
        ("<|tool_call_section_begin|>", True),
        ("x</think>y", True),
        ("<|reserved_token_163600|>", True),
        ("if a < b: [PAD] is padding", False),
        ("<|unknown|>", False),
    ],
)
def test_leaks(kimi: Loaded, text: str, leaked: bool) -> None:
    """Markers in an answer's text are seen; prose about tokenizers is not one."""
    assert kimi.leaks(text) == leaked


@pytest.mark.parametrize(
    ("model", "config", "says"),
    [
        ("IQ== 0\n", "{}", "1 entries instead of 163,584"),
        (None, '{"added_tokens_decoder": {"163586": {"content": "<|im_end|>"}}}', r"\[BOS\] is not 163584; "),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(
    kimi_folder: Path, tmp_path: Path, model: str | None, config: str, says: str
) -> None:
    """Another vocabulary, or Kimi's with other names, is refused with what does not fit."""
    source = (kimi_folder / "tiktoken.model").read_bytes()
    (tmp_path / "tiktoken.model").write_bytes(source if model is None else model.encode())
    (tmp_path / "tokenizer_config.json").write_text(config)
    with pytest.raises(UsageError, match=says):
        by_name("kimi-k2.5").load(tmp_path)


def test_the_built_in_names_serve_a_folder_without_a_config(kimi_folder: Path, tmp_path: Path) -> None:
    """`tiktoken.model` alone is enough: the family knows the special ids."""
    (tmp_path / "tiktoken.model").write_bytes((kimi_folder / "tiktoken.model").read_bytes())
    assert by_name("kimi-k2.5").load(tmp_path).vocab.specials["</think>"] == 163607
