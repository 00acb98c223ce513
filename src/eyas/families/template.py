"""Any other model, by its own chat template: plain answers only.

The template is a Jinja file that RUN.toml names, or the one beside the tokenizer.

What a template does not say is not guessed: how a model writes tool calls, or where its reasoning stands unless the
prompt opens it. `LoadedTemplate.caveats` says what is left open for the model at hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from eyas.errors import UsageError
from eyas.families.base import Channel, Part, Shift
from eyas.families.history import past
from eyas.families.jinja import CONFIG, Template, read
from eyas.families.said import Said, after_reasoning, without_stop
from eyas.types import Completion, Finish, Message
from eyas.vocab import Vocab

TEMPLATE = "template"

_GENERATION = "generation_config.json"
_THINK = {"<think>": "</think>", "[THINK]": "[/THINK]"}
"""Markers around reasoning, by the one that opens it."""
_QUESTION: tuple[Message, ...] = ({"role": "user", "content": "Tell me."},)
_REPLY = "eyas was here"
_SAMPLED_STOP = (Finish.STOP, Finish.TOOL_CALLS)


class _Opening(NamedTuple):
    """Reasoning that the prompt opens: the marker that ends it, and how many ids of the prompt open it."""

    closing: Part
    ids: int


@dataclass(frozen=True, slots=True)
class TemplateFamily:
    """Any model before its tokenizer is loaded. `template`: a Jinja file; None: the one in the tokenizer's folder."""

    template: Path | None = None
    name: str = TEMPLATE
    models: tuple[str, ...] = ()
    tokenizer: str = ""

    def sampling(self, thinking: bool) -> Mapping[str, float]:  # noqa: ARG002  # as every family says it
        """Nothing: a template recommends no sampling parameters, so the provider's defaults hold."""
        return {}

    def body(self, thinking: bool) -> Mapping[str, Any]:
        """OpenRouter's switch between thinking and instant mode."""
        return {"reasoning": {"enabled": thinking}}

    def load(self, folder: Path) -> LoadedTemplate:
        """Load the tokenizer in a folder and the template.

        Raises:
            UsageError: one of them is missing or cannot be used, or no file names the id that ends an answer.
        """
        vocab = Vocab.load(folder, None)
        template = Template.load(folder, self.template)
        return LoadedTemplate(vocab, template, _stop(vocab, template, folder))


class LoadedTemplate:
    """A model with its tokenizer and its template."""

    name = TEMPLATE

    def __init__(self, vocab: Vocab, template: Template, stop: Part) -> None:
        self.vocab = vocab
        self.stop = cast("int", stop.token)
        self._stop = stop
        self._template = template
        self._openings = {thinking: _opening(vocab, template.text(_QUESTION, thinking)) for thinking in (True, False)}
        self._thinks = not _THINK.keys().isdisjoint(vocab.specials)
        tags = [re.escape(name) for name in vocab.specials if name.startswith("<") and name.endswith(">")]
        self._leak = re.compile("|".join(sorted(tags, key=len, reverse=True)) or r"(?!)")

    def prompt_ids(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], thinking: bool) -> list[int]:
        """Ids of the prompt as the template gives them, generation prompt included.

        Raises:
            UsageError: the template cannot say these messages, or what would be answered cannot be put into ids: tool
                calls, and reasoning of a model that thinks without its prompt opening it.
        """
        used = bool(tools) or any(message.get("tool_calls") or message.get("role") == "tool" for message in messages)
        if used:
            raise UsageError(
                "the prompt has tools: a template does not say how the model writes its calls: remove the prompt, "
                "or name the model's own [target] family."
            )
        if not messages or not all(isinstance(message.get("content"), str) for message in messages):
            raise UsageError("the prompt cannot be rendered: a message is no plain text; correct or remove it.")
        if thinking and self._thinks and self._openings[True] is None:
            raise UsageError(
                f"{self._template.origin} does not open the reasoning of this model, so where it stands in an answer "
                "is not known: set thinking = false, or name the model's own [target] family."
            )
        return self.vocab.encode_special(self._template.text(messages, thinking))

    def count_prompt(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], thinking: bool) -> int:
        """How many ids the prompt has."""
        return len(self.prompt_ids(messages, tools, thinking))

    def refuses(self, messages: Sequence[Message], thinking: bool) -> str:  # noqa: ARG002  # as every family says it
        """Nothing is known of the model's API: an empty string."""
        return ""

    def history(self, completion: Completion) -> Message:
        """A past answer as a turn of the history, without its reasoning."""
        return past(completion, remembers=False)

    def shifts(self, thinking: bool) -> tuple[Shift, ...]:
        """What a server may count otherwise: the opening of the reasoning in the answer, the BOS not at all."""
        found: list[Shift] = []
        opening = self._openings[thinking]
        if opening is not None:
            found.append(Shift("the reasoning's opening counted in the completion", -opening.ids, opening.ids))
        bos = self._template.named.get("bos_token")
        if bos and self._template.text(_QUESTION, thinking).startswith(bos):
            found.append(Shift("BOS not counted", -1))
        return tuple(found)

    def parts(self, completion: Completion, thinking: bool) -> tuple[Part, ...]:
        """What the model sampled: R and its closing marker where the prompt opens it, C, the stop token.

        An answer whose form is not known has no parts, so that its count can never agree: one with tool calls, and one
        with reasoning that the prompt did not open.
        """
        opening = self._openings[thinking]
        if completion.tool_calls or (completion.reasoning and opening is None):
            return ()
        ended = completion.finish in _SAMPLED_STOP
        parts: list[Part] = []
        if completion.reasoning:
            parts.append(Part(completion.reasoning, Channel.REASONING))
        if opening is not None and (ended or completion.content):
            parts.append(opening.closing)
        if completion.content:
            parts.append(Part(completion.content, Channel.CONTENT))
        if ended:
            parts.append(self._stop)
        return tuple(parts)

    @property
    def stops(self) -> tuple[int, ...]:
        """The one id that is known to end an answer."""
        return (self.stop,)

    def said(self, ids: Sequence[int], thinking: bool) -> Said:
        """What sampled ids say: R up to its closing marker where the prompt opens it, then C. Calls are not known."""
        opening = self._openings[thinking]
        reasoning, rest = after_reasoning(without_stop(ids, self.stops), opening.closing.token if opening else None, ())
        return Said(self.vocab.decode(reasoning), self.vocab.decode(rest))

    def leaks(self, text: str) -> bool:
        """Whether a special's spelling in angle brackets stands in a text of an answer."""
        return "<" in text and self._leak.search(text) is not None

    @property
    def caveats(self) -> tuple[str, ...]:
        """What cannot be promised for this model, a sentence each."""
        opening = self._openings[True]
        if opening is not None:
            reasoning = (
                f"Reasoning is taken to end with {opening.closing.text}; spaces around it are those of the texts."
            )
        elif self._thinks:
            reasoning = "Thinking is refused: the template does not open the reasoning."
        else:
            reasoning = "Answers with reasoning are kept and never trained on: the tokenizer has no markers for it."
        found = [
            f"Prompts are those of {self._template.origin}; only the prompt count tells whether a provider uses them.",
            "Prompts with tools, tool calls in their history or content other than text are set aside.",
            reasoning,
            f"An answer is taken to end with {self._stop.text}; other stop tokens of the model are not told apart.",
            "No sampling parameters are recommended: the provider's defaults hold unless RUN.toml gives some.",
        ]
        if self._template.dated:
            found.append("The template writes the date: label and export on the day of the run, by UTC.")
        return tuple(found)


def _opening(vocab: Vocab, prompt: str) -> _Opening | None:
    """What opens the reasoning at the end of a prompt, newlines after it included; None: nothing does."""
    for start, end in _THINK.items():
        if prompt.rstrip().endswith(start) and start in vocab.specials and end in vocab.specials:
            tail = prompt[prompt.rindex(start) :]
            return _Opening(Part(end, token=vocab.specials[end]), len(vocab.encode_special(tail)))
    return None


def _stop(vocab: Vocab, template: Template, folder: Path) -> Part:
    """The id that ends an answer; of several, the one that the template puts after an answer of the past.

    Raises:
        UsageError: no file names one that the tokenizer has.
    """
    names = {number: name for name, number in vocab.specials.items()}
    listed: Any = read(folder / _GENERATION).get("eos_token_id")
    numbers = cast("list[Any]", listed) if isinstance(listed, list) else [listed]
    found = [str(template.named.get("eos_token")), *(names.get(number, "") for number in numbers)]
    stops = [name for name in dict.fromkeys(found) if name in vocab.specials]
    if not stops:
        raise UsageError(f"{folder} names no eos_token of its tokenizer in {CONFIG} or {_GENERATION}: add it there.")
    stop = stops[0] if len(stops) == 1 else _said(template, stops)
    return Part(stop, token=vocab.specials[stop])


def _said(template: Template, stops: Sequence[str]) -> str:
    """The one of these that the template puts after an answer of the past; the first if it puts none."""
    past: tuple[Message, ...] = (*_QUESTION, {"role": "assistant", "content": _REPLY})
    after = template.text(past, thinking=False, prompt=False).rpartition(_REPLY)[2].lstrip()
    return next((name for name in stops if after.startswith(name)), stops[0])
