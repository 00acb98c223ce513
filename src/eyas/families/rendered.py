"""Families whose prompts the library `renderers` writes, and what all families have in common."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from eyas.errors import UsageError
from eyas.families.base import Loaded, Part, Shift
from eyas.families.content import is_text
from eyas.families.history import accepted, past
from eyas.families.library import Renderer
from eyas.families.said import Said, without_stop
from eyas.types import Completion, Message
from eyas.vocab import Layout, Vocab

REASONING_ON: Mapping[str, Any] = {"reasoning": {"enabled": True}}
REASONING_OFF: Mapping[str, Any] = {"reasoning": {"enabled": False}}
"""OpenRouter's switch, https://openrouter.ai/docs/use-cases/reasoning-tokens."""

THINK_SHIFT = Shift("<think> counted in the completion", -1, 1)
"""A server that counts `<think>` as the answer's, though the template gives it."""

_RENDER_ERRORS = (AssertionError, AttributeError, ImportError, LookupError, RuntimeError, TypeError, ValueError)

_TAG = re.compile(r"<[^<>\s]+>")


class Answers(Protocol):
    """What says which parts the model sampled."""

    @property
    def stop(self) -> Part:
        """What ends an answer."""
        ...

    @property
    def stops(self) -> tuple[Part, ...]:
        """All that may end one."""
        ...

    def parts(self, completion: Completion, thinking: bool) -> tuple[Part, ...]:
        """The parts of an answer, in order."""
        ...

    def said(self, ids: Sequence[int], vocab: Vocab, thinking: bool) -> Said:
        """What sampled ids, without the stop token, say."""
        ...


@dataclass(frozen=True, slots=True)
class Mode:
    """One mode of a model, thinking or instant.

    Attributes:
        sampling: the maker's recommended sampling parameters.
        body: what OpenRouter's request body says to get this mode.
        shifts: ways of counting with a known cause, the plainest first.
    """

    sampling: Mapping[str, float]
    body: Mapping[str, Any]
    shifts: tuple[Shift, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """A family before its tokenizer is loaded, said in data.

    Attributes:
        name: as RUN.toml names it.
        models: globs of the model ids that belong to it, lower case.
        tokenizer: hub id of the default tokenizer.
        modes: its modes by `thinking`; one that is absent does not exist.
        renderer: makes what writes the prompts of a mode.
        answers: makes what says how answers are sampled.
        needs: special tokens by spelling that the tokenizer must have, with their ids where these are well known.
        layout: what a `tiktoken.model` does not say; None for models that ship a `tokenizer.json`.
        entries: how many ordinary entries the tokenizer must have; None: any number.
        leaks: more spellings of markers that are no special tokens, as a regular expression.
        remembers: whether the template keeps the reasoning of a past answer with tool calls.
        refuses: why the API refuses a history, see `Loaded.refuses`.
    """

    name: str
    models: tuple[str, ...]
    tokenizer: str
    modes: Mapping[bool, Mode]
    renderer: Callable[[Vocab, bool], Renderer]
    answers: Callable[[Vocab], Answers]
    needs: Mapping[str, int | None] = field(repr=False)
    layout: Layout | None = field(default=None, repr=False)
    entries: int | None = None
    leaks: str = ""
    remembers: bool = False
    refuses: Callable[[Sequence[Message], bool], str] = field(default=accepted, repr=False)

    def mode(self, thinking: bool) -> Mode:
        """What is said of a mode.

        Raises:
            UsageError: the model has no such mode.
        """
        try:
            return self.modes[thinking]
        except KeyError:
            asked, other = ("thinking", "false") if thinking else ("instant", "true")
            raise UsageError(f"{self.name} has no {asked} mode: set thinking = {other}.") from None

    def sampling(self, thinking: bool) -> Mapping[str, float]:
        """The maker's recommended sampling parameters.

        Raises:
            UsageError: the model has no such mode.
        """
        return self.mode(thinking).sampling

    def body(self, thinking: bool) -> Mapping[str, Any]:
        """What OpenRouter's request body says to turn thinking on or off.

        Raises:
            UsageError: the model has no such mode.
        """
        return self.mode(thinking).body

    def load(self, folder: Path) -> Loaded:
        """Load the tokenizer in a folder and check that it is the family's.

        Raises:
            UsageError: it is not; the message says what does not fit.
        """
        vocab = Vocab.load(folder, self.layout)
        wrong = [f"{vocab.ranks:,} entries instead of {self.entries:,}"] if self._other_size(vocab) else []
        wrong += filter(None, (_unfit(vocab, name, number) for name, number in self.needs.items()))
        if wrong:
            raise UsageError(
                f"the tokenizer in {folder} does not fit family {self.name}: {'; '.join(wrong[:4])}. "
                f"Use the one of {self.tokenizer}, or another family."
            )
        return self.bind(vocab)

    def bind(self, vocab: Vocab) -> Loaded:
        """The family with a tokenizer that fits."""
        return LoadedFamily(self, vocab)

    def _other_size(self, vocab: Vocab) -> bool:
        return self.entries is not None and vocab.ranks != self.entries


class LoadedFamily:
    """A family with its tokenizer."""

    def __init__(self, family: Described, vocab: Vocab) -> None:
        self.name = family.name
        self.vocab = vocab
        self.caveats: tuple[str, ...] = ()
        self._family = family
        self._answers = family.answers(vocab)
        # Brackets are left out: [PAD] or [EOS] in an answer is ordinary prose about tokenizers; servers skip the real ones.
        self._markers = frozenset(name for name in vocab.specials if name.startswith("<"))
        self._more = re.compile(family.leaks or r"(?!)")
        self._renderers: dict[bool, Renderer] = {}
        self._lock = threading.Lock()

    @property
    def stop(self) -> int:
        """The id that ends an answer; where several can, the one of an answer without tool calls."""
        return cast("int", self._answers.stop.token)

    @property
    def stops(self) -> tuple[int, ...]:
        """All ids that may end an answer."""
        return tuple(cast("int", part.token) for part in self._answers.stops)

    def prompt_ids(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], thinking: bool) -> list[int]:
        """Ids of the prompt as the template gives them, generation prompt included.

        Raises:
            UsageError: the template cannot say these messages (images, an empty list, a broken tool schema), or the
                model has no such mode.
        """
        self._family.mode(thinking)
        if not messages or not all(is_text(message.get("content")) for message in messages):
            raise UsageError(
                "the prompt cannot be rendered: it is empty, or holds something else than text; remove it."
            )
        try:
            renderer = self._renderers.get(thinking) or self._renderer(thinking)
            return renderer.render_ids(list(messages), tools=list(tools) or None, add_generation_prompt=True)
        except _RENDER_ERRORS as error:
            raise UsageError(
                f"the prompt cannot be rendered for {self.name} ({error}): correct or remove it."
            ) from error

    def count_prompt(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], thinking: bool) -> int:
        """How many ids the prompt has; raises UsageError as `prompt_ids` does, and where the API refuses the messages."""
        if reason := self.refuses(messages, thinking):
            raise UsageError(reason)
        return len(self.prompt_ids(messages, tools, thinking))

    def refuses(self, messages: Sequence[Message], thinking: bool) -> str:
        """Why the API refuses these messages, or an empty string."""
        return self._family.refuses(messages, thinking)

    def history(self, completion: Completion) -> Message:
        """A past answer as a turn of the history."""
        return past(completion, remembers=self._family.remembers)

    def shifts(self, thinking: bool) -> tuple[Shift, ...]:
        """Ways of counting with a known cause, the plainest first; none for a mode that does not exist."""
        mode = self._family.modes.get(thinking)
        return mode.shifts if mode else ()

    def parts(self, completion: Completion, thinking: bool) -> tuple[Part, ...]:
        """What the model sampled, in order; an answer that did not end has no markers after its text."""
        return self._answers.parts(completion, thinking)

    def said(self, ids: Sequence[int], thinking: bool) -> Said:
        """What sampled ids say: the way back from `parts`."""
        return self._answers.said(without_stop(ids, self.stops), self.vocab, thinking)

    def leaks(self, text: str) -> bool:
        """Whether markers stand in a text of an answer; names in brackets are not taken for markers."""
        if "<" in text and not self._markers.isdisjoint(_TAG.findall(text)):
            return True
        return self._more.search(text) is not None

    def _renderer(self, thinking: bool) -> Renderer:
        with self._lock:
            if thinking not in self._renderers:
                self._renderers[thinking] = self._family.renderer(self.vocab, thinking)
            return self._renderers[thinking]


def hub_ids(*names: str) -> tuple[str, ...]:
    """Globs of model ids by their names without the organisation, which differs between OpenRouter and the hub."""
    return tuple(f"*/{name}" for name in names)


def _unfit(vocab: Vocab, name: str, number: int | None) -> str:
    found = vocab.specials.get(name)
    if number is None:
        return "" if found is not None else f"it has no {name}"
    return "" if found == number else f"{name} is not {number}"
