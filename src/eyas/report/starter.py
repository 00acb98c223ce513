"""The first RUN.toml of a user: every key with its default, what it means and what it may be. Pure.

Defaults and choices are read from the classes that check the file, so that no comment can say another one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any, cast

from eyas.config import Budget, Dataset, Limits, Providers, Run, Section, Target
from eyas.errors import UsageError
from eyas.families import FAMILIES, guess
from eyas.providers.precision import native_format

_HEAD = """\
# What `eyas run RUN.toml` asks, and what it may spend. Written by `eyas init`.
#
# A line such as "#seed = 0" is a key that is not set. What it shows is its default; where its note begins
# with "not set:", it is an example. Remove the "#" to set it. Relative paths start from the folder of this file.
# `eyas doctor RUN.toml` checks it all and spends nothing; `eyas run RUN.toml --limit 20` asks a first few.
"""
_NOTE_AT = 44
"""Column where notes begin."""


class Keeping(StrEnum):
    """Whether providers that keep prompts and answers may be asked, as OpenRouter's `data_collection` says it."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a user has said of a run.

    Attributes:
        model: its id at the API.
        usd: the cap in US dollars.
        name, source: of the one dataset; `source` as RUN.toml names it.
        distillable: ask only models whose author allows distillation.
        keeping: whether providers may keep data.
    """

    model: str
    usd: float
    name: str
    source: str
    distillable: bool = True
    keeping: Keeping = Keeping.DENY


@dataclass(frozen=True, slots=True)
class _Key:
    """A line: a key, its value in TOML, what it means, and whether it is set."""

    name: str
    value: str
    note: str
    given: bool = False

    def __str__(self) -> str:
        line = f"{'' if self.given else '#'}{self.name} = {self.value}"
        return f"{line:<{_NOTE_AT - 2}}  # {self.note}"


def run_toml(wish: Wish) -> str:
    """The text of a RUN.toml that asks what is wished; it loads, also with any of its commented keys set.

    Raises:
        UsageError: a text in the wish is not Unicode.
    """
    sections = (
        ("[run]", _run(wish)),
        ("[target]", _target(wish)),
        ("[budget]", _budget(wish)),
        ("[providers]", _providers(wish)),
        ("[limits]", _limits()),
        ("[[datasets]]", _dataset(wish)),
    )
    return _HEAD + "".join(f"\n{head}\n" + "".join(f"{line}\n" for line in lines) for head, lines in sections)


def dataset_name(source: str) -> str:
    """A name for the dataset of a file: its own, without suffixes, of characters that RUN.toml takes."""
    stem = PurePath(source).name.lstrip(".").partition(".")[0]
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-_")
    return plain[:64] or "prompts"


def toml(value: object) -> str:
    """A value as TOML says it.

    Raises:
        UsageError: a text that is not Unicode, such as a file name in another encoding.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml, cast('Iterable[object]', value)))}]"
    if isinstance(value, dict):
        entries = ", ".join(f"{key} = {toml(each)}" for key, each in cast("dict[str, object]", value).items())
        return f"{{ {entries} }}" if entries else "{}"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{value!r} is not Unicode, and RUN.toml is: give it another name") from None
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _given(name: str, value: object, note: str) -> _Key:
    return _Key(name, toml(value), note, given=True)


def _default(section: type[Section], name: str, note: str) -> _Key:
    return _Key(name, toml(_default_of(section, name)), note)


def _default_of(section: type[Section], name: str) -> Any:
    return section.model_fields[name].get_default(call_default_factory=True)


def _example(name: str, value: object, note: str) -> _Key:
    return _Key(name, toml(value), f"not set: {note}")


def _run(wish: Wish) -> Iterator[_Key]:
    yield _given("dir", f"runs/{wish.name}", "the run directory: the same command again resumes in it")
    yield _default(Run, "seed", "order of the prompts: any prefix of it is a random sample")


def _target(wish: Wish) -> Iterator[_Key]:
    known = guess(wish.model)
    family = FAMILIES[known] if known else None
    thinks = family is None or _has_mode(known, thinking=True)
    preset: Mapping[str, float] = family.sampling(thinks) if family else {}
    whose = f"the family's for thinking = {toml(thinks)}" if family else "the API's own default"
    yield _given("model", wish.model, "the model's id at the API")
    yield _default(Target, "backend", "openrouter | openai | sglang | vllm | llamacpp (`eyas init --backend`)")
    yield _default(Target, "base_url", "https, or http on this machine")
    if family:
        yield _Key("family", toml(family.name), 'guessed from the model; "template" takes any model')
        yield _Key("tokenizer", toml(family.tokenizer), "a hub id (pip install 'eyas[hub]'), or a folder")
    else:
        yield _given("family", "template", "none is known for this model: by its tokenizer's chat template")
        yield _example("tokenizer", wish.model, "it has to be: a hub id, or a folder")
    if thinks:
        yield _default(Target, "thinking", "false: turn reasoning off, where the family can")
    else:
        yield _given("thinking", value=False, note="this family has no thinking mode")
    yield _Key("temperature", toml(preset.get("temperature", 1.0)), whose)
    yield _Key("top_p", toml(preset.get("top_p", 1.0)), whose)
    yield _default(Target, "max_tokens", "most output tokens of an answer, reasoning included")
    yield _example("stream", value=True, note="true; false: no pieces, ids less sure, and a kill saves no text")
    yield _default(Target, "recover", 'get lost answers back; off with zdr or data_collection = "deny"')
    yield _default(Target, "extra_body", "added to every request body")
    yield _default(Target, "extra_headers", "added to every request; never the key")


def _has_mode(family: str | None, *, thinking: bool) -> bool:
    try:
        FAMILIES[family or ""].body(thinking)
    except UsageError:
        return False
    return True


def _budget(wish: Wish) -> Iterator[_Key]:
    yield _given("usd", wish.usd, "the cap in US dollars, over all sessions of the run")
    yield _example("output_tokens", 7_000_000, "every prompt is answered; else tokens wanted in each dataset")
    yield _default(Budget, "mode", "reserve strict: in full | metered: the likely cost")
    yield _default(Budget, "keep_from", "a cut answer with so many tokens is kept as partial")
    yield _default(Budget, "waste", "share of the cap; above it nothing is asked again after waste")
    yield _default(Budget, "on_length", "answers cut by max_tokens: keep | drop | redo")


def _providers(wish: Wish) -> Iterator[_Key]:
    yield _given("enforce_distillable_text", wish.distillable, "true: only models whose author allows distillation")
    yield _given("data_collection", wish.keeping.value, "allow | deny: providers that keep prompts and answers")
    if native_format(wish.model):
        yield _default(Providers, "precision", "native: none that quantizes below the model's own weights | any")
    else:
        yield _given("precision", "any", "the model's own weight format is not known; native would shut out all")
    yield _default(Providers, "unknown", "endpoints that do not say their precision: reject | accept")
    yield _default(Providers, "routing", "pinned: eyas names one endpoint a request | gateway: OpenRouter picks")
    yield _default(Providers, "ignore", "to shut out, by slug, tag or name: `eyas providers MODEL`")
    yield _default(Providers, "only", "the only ones to use")
    yield _default(Providers, "quantizations", 'labels allowed, such as "int4"; empty: by precision')
    yield _example("max_price", {"prompt": 1.0, "completion": 4.0}, "no bound; else US dollars per million tokens")
    yield _example("drop_above", 0.05, "none is dropped; else at this share of mismatches")
    yield _default(Providers, "require_streamed", "true: drop providers that do not cut their stream at tokens")
    yield _example("zdr", value=True, note="as the account says; true: only endpoints that retain nothing")
    yield _default(Providers, "sort", "and all other fields of OpenRouter's provider object may stand here")


def _limits() -> Iterator[_Key]:
    yield _default(Limits, "in_flight", "requests at the same time; needs as many open files and 256 more")
    yield _default(Limits, "processes", "that read answers; 1: the run's own; auto: by cores and in_flight")
    yield _default(Limits, "connects_per_second", "new connections while the number in flight grows")
    yield _default(Limits, "connect_seconds", "to connect")
    yield _default(Limits, "headers_seconds", "from the send to the response's headers")
    yield _default(Limits, "silence_seconds", "between two bytes of a body")
    yield _default(Limits, "total_seconds", "a whole request")
    yield _default(Limits, "draft_seconds", "how often text in flight is kept: what a kill can lose")
    yield _example("reread_seconds", 600.0, "600; else how often prices and limits are read again")


def _dataset(wish: Wish) -> Iterator[_Key]:
    yield _given("name", wish.name, "letters, digits, '.', '_' and '-'; more datasets: more of these tables")
    yield _given("source", wish.source, "the prompts")
    yield _example("output_tokens", 7_000_000, "that of [budget]")
    yield _example("max_tokens", 16_384, "that of [target]")
    yield _example("thinking", value=False, note="that of [target]")
    yield _example("temperature", 0.7, "that of [target]")
    yield _example("top_p", 0.9, "that of [target]")
    yield _example("system", "You are a careful assistant.", "none is added; else for rows that bring none")
    yield _default(Dataset, "samples", "answers to each prompt")
    yield _example("turns", "first", "told from the rows; first | last | replay")
    yield _default(Dataset, "weight", "its share of [budget] total_output_tokens")
    yield _example("expected_tokens", 2_000, "not known; else tokens of a usual answer, for `eyas plan`")
    yield _example("map", {"messages": "chat"}, "told from the rows; else which column holds what")
    yield _example("filter", "keep.py:keep", "all rows; else a Python function of the row")
    yield _example("near_duplicates", 0.8, "all are kept; else the likeness from which one goes")
    yield _example("languages", ["en"], "all")
    yield _example("min_prompt_tokens", 8, "all")
    yield _example("max_prompt_tokens", 32_000, "all")
    yield _example("decontaminate", ["mt_bench.jsonl"], "none; else files whose prompts are kept out")
