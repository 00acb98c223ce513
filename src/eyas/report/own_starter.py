"""The first RUN.toml of a user who has servers of their own: what that backend needs, and little more. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.families import FAMILIES, guess
from eyas.report.starter import toml

ADDRESSES = {
    "openai": "http://127.0.0.1:8000/v1",
    "sglang": "http://127.0.0.1:30000",
    "vllm": "http://127.0.0.1:8000/v1",
    "llamacpp": "http://127.0.0.1:8080",
}
"""Where each listens if nobody says otherwise."""

STARTED = {
    "openai": "any server with /v1/chat/completions",
    "sglang": "python -m sglang.launch_server --model-path {weights}",
    "vllm": "vllm serve {weights}",
    "llamacpp": "llama-server -m MODEL.gguf --parallel 8 --ctx-size 65536",
}
"""How its server is started, for a comment."""

_IDS = {
    "openai": "Answers come as text: their ids are rebuilt from it, and labelled by how sure they are.",
    "sglang": "Prompts are sent as ids, and ids come back: those are the record's, labelled `engine`.",
    "vllm": "Prompts are sent as ids, and ids come back: those are the record's, labelled `engine`.",
    "llamacpp": "Prompts are sent as ids, and ids come back: those are the record's, labelled `engine`.",
}
_IN_FLIGHT = {"llamacpp": (8, "no more than the server's slots are answered at once")}
_HEAD = """\
# What `eyas run RUN.toml` asks of servers of your own. Written by `eyas init --backend {backend}`.
#
# The server:  {started}
# {ids}
#
# A line such as "#seed = 0" is not set; remove the "#" to set it. All keys: docs/run-toml.md.
# `eyas doctor RUN.toml` tries each server; `eyas plan RUN.toml --pilot 20` asks a few, and says when all is done.
"""
_NOTE_AT = 50


@dataclass(frozen=True, slots=True)
class OwnWish:
    """What a user has said of a run at servers of their own.

    Attributes:
        model: whose answers they are: by its name the family and the tokenizer are told.
        backend: which server it is.
        urls: one address a replica; empty for the usual one.
        name, source: of the one dataset; `source` as RUN.toml names it.
    """

    model: str
    backend: str
    urls: tuple[str, ...]
    name: str
    source: str


def weights_of(model: str) -> str:
    """The hub id of a model's weights, which is also what its server calls it if nobody says otherwise."""
    family = FAMILIES.get(guess(model) or "")
    return family.tokenizer.partition("@")[0] if family and family.tokenizer else model


def run_toml(wish: OwnWish) -> str:
    """The text of a RUN.toml for it; it loads, also with any of its commented keys set.

    Raises:
        UsageError: a text in the wish is not Unicode.
    """
    started = STARTED[wish.backend].format(weights=weights_of(wish.model))
    sections = (
        ("[run]", [_line("dir", f"runs/{wish.name}", "the run directory: the same command again resumes in it")]),
        ("[target]", _target(wish)),
        (
            "[budget]",
            [_line("output_tokens", 7_000_000, "wanted in each dataset; not set: every prompt is answered", "#")],
        ),
        ("[limits]", [_in_flight(wish.backend)]),
        (
            "[[datasets]]",
            [
                _line("name", wish.name, "of these characters: A-Z a-z 0-9 . _ -; more tables: more datasets"),
                _line("source", wish.source, "the prompts"),
            ],
        ),
    )
    head = _HEAD.format(backend=wish.backend, started=started, ids=_IDS[wish.backend])
    return (
        head + "".join(f"\n{name}\n" + "".join(f"{line}\n" for line in lines) for name, lines in sections) + _FALLBACK
    )


_FALLBACK = """
# What these servers leave, when they are gone or after so many minutes, can be asked of OpenRouter, in the same run:
#
# [fallback]
# backend = "openrouter"
# after_minutes = 480
#
# It costs dollars, so that a cap is needed: [budget] usd = 100.0
"""


def _target(wish: OwnWish) -> list[str]:
    urls = wish.urls or (ADDRESSES[wish.backend],)
    address = urls[0] if len(urls) == 1 else urls
    known = guess(wish.model)
    lines = [
        _line("model", wish.model, "whose answers these are; the same name at every backend"),
        _line("backend", wish.backend, "openrouter | openai | sglang | vllm | llamacpp"),
        _line("base_url", address, "a list for several replicas"),
        _served(wish),
    ]
    if known is None:
        lines.append(_line("family", "template", "none is known for this model: by its tokenizer's chat template"))
        lines.append(_line("tokenizer", wish.model, "a hub id (pip install 'eyas[hub]'), or the folder of the weights"))
    else:
        tokenizer = FAMILIES[known].tokenizer
        lines.append(
            _line("tokenizer", tokenizer, "a hub id (pip install 'eyas[hub]'), or the folder of the weights", "#")
        )
    if wish.backend in ("vllm", "sglang"):
        lines.append(_line("prompts_as", "ids", "ids: eyas renders prompts | chat: the server does", "#"))
    most, hidden = (4096, "") if wish.backend == "llamacpp" else (16_384, "#")
    lines.append(_line("max_tokens", most, "of an answer; the server's context holds it and its prompt", hidden))
    lines.append(_line("key_env", "MY_SERVER_KEY", "environment variable with the server's key, if it wants one", "#"))
    return lines


def _served(wish: OwnWish) -> str:
    """Servers call a model as its weights are called, in the same case; llama.cpp takes any name."""
    name, note = weights_of(wish.model), "the model's name at the server, where it is another"
    return _line("served_as", name, note, "#" if wish.backend == "llamacpp" or name == wish.model else "")


def _in_flight(backend: str) -> str:
    number, note = _IN_FLIGHT.get(backend, (256, "requests at the same time, over all replicas"))
    return _line("in_flight", number, note)


def _line(name: str, value: object, note: str, hidden: str = "") -> str:
    return f"{f'{hidden}{name} = {toml(value)}':<{_NOTE_AT - 2}}  # {note}"
