"""Family `template`: prompts as the chat template says, plain answers, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eyas.config import parse
from eyas.engine.inputs import load_tokenizer
from eyas.errors import UsageError
from eyas.families.base import Shift
from eyas.families.template import LoadedTemplate, TemplateFamily
from eyas.types import Completion, Finish, Message, ToolCall
from tests.bpe import deepseek_folder, small_json

pytest.importorskip("tokenizers", reason="NO TOKENIZERS: pip install 'eyas[tokenizers]'")

CHAT = """\
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {%- generation %}
{{- '<|start|>' + message.role + '\n' + message.content + '<|end|>' + '\n' }}
        {%- endgeneration %}
        {%- continue %}
    {%- endif %}
{{- '<|start|>' + message.role + '\n' + message.content + '<|end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|start|>assistant\n' }}
    {%- if enable_thinking %}
{{- '<think>\n' }}
    {%- endif %}
{%- endif %}
"""
"""ChatML by other names, whose prompt opens the reasoning; it uses the blocks and loop controls of `transformers`."""
USER: Message = {"role": "user", "content": "hi"}
Load = Callable[..., LoadedTemplate]


@pytest.fixture
def loaded(tmp_path: Path) -> Load:
    """Load a byte tokenizer with this template, these added tokens and these files beside it."""

    def load(
        template: str | None = CHAT, marks: tuple[str, ...] = ("<think>", "</think>"), **files: Any
    ) -> LoadedTemplate:
        added = ["<s>", "<|start|>", "<|end|>", "<|eot|>", *marks]
        config = {"bos_token": {"content": "<s>"}, "eos_token": "<|end|>", **files.get("config", {})}
        contents = {
            "tokenizer.json": json.dumps(small_json([], [], added)),
            "tokenizer_config.json": json.dumps(config),
            "generation_config.json": json.dumps({"eos_token_id": files.get("eos")}),
            "chat_template.jinja": template,
        }
        for name, content in contents.items():
            if content is not None:
                (tmp_path / name).write_text(content)
        return TemplateFamily().load(tmp_path)

    return load


def ids(family: LoadedTemplate, *pieces: str) -> list[int]:
    """Ids of pieces, those that name a special as its id."""
    special = family.vocab.specials
    return [i for piece in pieces for i in ([special[piece]] if piece in special else family.vocab.encode(piece))]


def text(family: LoadedTemplate, completion: Completion, *, thinking: bool = True) -> str:
    """An answer's parts as text."""
    return "".join(part.text for part in family.parts(completion, thinking))


def test_a_prompt_is_what_the_template_writes(loaded: Load) -> None:
    """Markers become ids, the generation prompt stands at the end, and the mode reaches the template."""
    family = loaded()
    past: Message = {"role": "assistant", "content": "yo"}
    turns = ("<|start|>", "user\nhi", "<|end|>", "\n", "<|start|>", "assistant\nyo", "<|end|>", "\n")
    prompt = ids(family, *turns, *turns[:4], "<|start|>", "assistant\n")
    assert family.prompt_ids([USER, past, USER], [], thinking=False) == prompt
    assert family.prompt_ids([USER, past, USER], [], thinking=True) == [*prompt, *ids(family, "<think>", "\n")]
    assert family.count_prompt([USER, past, USER], [], thinking=True) == len(prompt) + 2


def test_a_real_tokenizer_with_a_template_of_its_own(tmp_path: Path) -> None:
    """DeepSeek V4's tokenizer and a Jinja file: markers of `special: false` become ids, the BOS comes from the template."""
    user, assistant = "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>"
    path = tmp_path / "chat.jinja"
    path.write_text("{{ bos_token }}" + user + "{{ messages[-1].content }}" + assistant + "<think>", encoding="utf-8")
    family = TemplateFamily(path).load(deepseek_folder())
    assert family.prompt_ids([USER], [], thinking=True) == [0, 128_803, *family.vocab.encode("hi"), 128_804, 128_821]
    assert family.stop == 1
    assert text(family, Completion(reasoning="R", content="C", finish=Finish.STOP)).startswith("R</think>C<")


@pytest.mark.parametrize(
    ("completion", "thinking", "raw"),
    [
        (Completion(reasoning="R\n", content="\n\nC", finish=Finish.STOP), True, "R\n</think>\n\nC<|end|>"),
        (Completion(content="C", finish=Finish.STOP), True, "</think>C<|end|>"),
        (Completion(content="C", finish=Finish.STOP), False, "C<|end|>"),
        (Completion(reasoning="R", finish=Finish.LENGTH), True, "R"),
        (Completion(reasoning="R", content="C", finish=Finish.LENGTH), True, "R</think>C"),
        (Completion(reasoning="R", content="C", finish=Finish.STOP), False, ""),
        (Completion(content="C", tool_calls=(ToolCall("1", "f", "{}"),), finish=Finish.TOOL_CALLS), True, ""),
    ],
)
def test_an_answer_is_text_and_its_markers(loaded: Load, completion: Completion, thinking: bool, raw: str) -> None:
    """R, the closing marker, C, the stop token; an answer whose form is not known has no parts."""
    family = loaded()
    assert text(family, completion, thinking=thinking) == raw
    for part in family.parts(completion, thinking):
        assert (part.token is None) == (part.text not in family.vocab.specials)


@pytest.mark.parametrize(
    ("message", "tools", "says"),
    [
        (USER, [{"type": "function"}], "the prompt has tools"),
        ({"role": "tool", "content": "4"}, [], "the prompt has tools"),
        ({"role": "assistant", "content": "", "tool_calls": [{}]}, [], "the prompt has tools"),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, [], "no plain text"),
        ({"role": "assistant", "content": None}, [], "no plain text"),
        ({"content": "hi"}, [], "cannot say these messages"),
    ],
)
def test_prompts_that_cannot_be_answered_plainly_are_refused(
    loaded: Load, message: Message, tools: list[Any], says: str
) -> None:
    """Tools, parts of messages and what breaks the template are refused with a remedy."""
    strict = "{% for m in messages %}{% if not m.role %}{{ raise_exception('no role') }}{% endif %}{% endfor %}<think>"
    with pytest.raises(UsageError, match=says):
        loaded(strict).prompt_ids([message], tools, thinking=True)


def test_thinking_needs_a_prompt_that_opens_it(loaded: Load) -> None:
    """A model that has think markers but samples the first itself is taken in instant mode only."""
    family = loaded("{{ messages[0].content }}")
    assert family.prompt_ids([USER], [], thinking=False) == family.vocab.encode("hi")
    with pytest.raises(UsageError, match="set thinking = false"):
        family.prompt_ids([USER], [], thinking=True)
    assert any("Thinking is refused" in caveat for caveat in family.caveats)
    plain = loaded("{{ messages[0].content }}<think>", marks=())
    assert text(plain, Completion(content="C", finish=Finish.STOP)) == "C<|end|>"
    assert text(plain, Completion(reasoning="R", content="C", finish=Finish.STOP)) == ""


def test_shifts_have_a_cause(loaded: Load) -> None:
    """The opening of the reasoning may be counted in the answer, a BOS not at all."""
    opened = Shift("the reasoning's opening counted in the completion", -2, 2)
    assert loaded().shifts(thinking=True) == (opened,)
    assert loaded("{{ bos_token }}" + CHAT).shifts(thinking=True) == (opened, Shift("BOS not counted", -1))
    assert loaded().shifts(thinking=False) == ()


@pytest.mark.parametrize(
    ("eos", "config", "stop"),
    [
        (None, {}, "<|end|>"),
        (259, {"eos_token": None}, "<|eot|>"),
        ([256, 258, 259], {"eos_token": "<s>"}, "<|end|>"),
        ([256, 259], {"eos_token": "<s>"}, "<s>"),
    ],
)
def test_the_stop_token_is_the_one_of_the_template(loaded: Load, eos: Any, config: dict[str, Any], stop: str) -> None:
    """Of several stop tokens the template's own, else the tokenizer's."""
    family = loaded(eos=eos, config=config)
    assert family.stop == family.vocab.specials[stop]


def test_the_template_is_found(loaded: Load, tmp_path: Path) -> None:
    """A file of its own goes before the tokenizer's config; of several in the config `default` counts."""
    several = [{"name": "tools", "template": "no"}, {"name": "default", "template": "<think>"}]
    family = loaded(None, config={"chat_template": several})
    assert family.prompt_ids([USER], [], thinking=True) == ids(family, "<think>")
    assert loaded(config={"chat_template": "no"}).prompt_ids([USER], [], thinking=True)[-2:] == ids(
        family, "<think>", "\n"
    )
    (tmp_path / "mine.jinja").write_text("mine <think>")
    mine = TemplateFamily(tmp_path / "mine.jinja").load(tmp_path)
    assert mine.prompt_ids([USER], [], thinking=True) == ids(mine, "mine ", "<think>")


@pytest.mark.parametrize(
    ("template", "more", "says"),
    [
        (None, {}, "no chat template"),
        ("{% if %}", {}, "no valid Jinja template"),
        (CHAT, {"config": {"eos_token": "nothing"}}, "names no eos_token"),
        ("{{ messages.append(1) }}", {}, "cannot say these messages"),
    ],
)
def test_folders_that_do_not_do_say_why(loaded: Load, template: str | None, more: dict[str, Any], says: str) -> None:
    """What is missing or broken is named; a template cannot change what it is given."""
    with pytest.raises(UsageError, match=says):
        loaded(template, **more)


def test_templates_have_the_helpers_of_transformers(loaded: Load) -> None:
    """`tojson` escapes nothing and takes its options; the date is that of the day, and is a caveat."""
    said = '{{ {"b": "é<", "a": 1} | tojson(sort_keys=true) }} {{ strftime_now("%Y") }}<think>'
    family = loaded(said)
    year = datetime.now(UTC).strftime("%Y")
    assert family.vocab.decode(family.prompt_ids([USER], [], thinking=True)) == f'{{"a": 1, "b": "é<"}} {year}<think>'
    assert any("writes the date" in caveat for caveat in family.caveats)
    assert not any("writes the date" in caveat for caveat in loaded().caveats)


def test_leaks_and_presets(loaded: Load) -> None:
    """Markers in an answer's text are seen; the family recommends nothing and switches thinking."""
    family = loaded()
    assert family.leaks("a <|end|> b")
    assert not family.leaks("a < b")
    assert TemplateFamily().sampling(thinking=True) == {}
    assert TemplateFamily().body(thinking=False) == {"reasoning": {"enabled": False}}


def test_run_toml_leads_to_the_template(loaded: Load, tmp_path: Path) -> None:
    """`family = "template"` with a tokenizer and a file beside RUN.toml; each missing piece is named."""
    loaded()
    (tmp_path / "mine.jinja").write_text("mine <think>")

    def load(target: str) -> LoadedTemplate:
        head = '[run]\ndir = "r"\n[budget]\nusd = 1\n[[datasets]]\nname = "A"\nsource = "s"\n[target]\n'
        found = load_tokenizer(parse(head + target, tmp_path / "RUN.toml")).loaded
        assert isinstance(found, LoadedTemplate)
        return found

    own = 'model = "some/model"\nfamily = "template"\n'
    given = own + 'tokenizer = "."\nchat_template = "mine.jinja"'
    assert load(given).vocab.decode(load(given).prompt_ids([USER], [], thinking=True)) == "mine <think>"
    assert load(own + 'tokenizer = "."').count_prompt([USER], [], thinking=True) > 12
    for target, says in (
        ('model = "some/model"', '"template", which takes any model'),
        (own, "target] tokenizer: missing"),
        (own + 'tokenizer = "."\nchat_template = "gone.jinja"', "gone.jinja cannot be read"),
        ('model = "moonshotai/kimi-k2.5"\nchat_template = "mine.jinja"', 'is for family = "template"'),
    ):
        with pytest.raises(UsageError, match=says.replace("[", r"\[")):
            load(target)
