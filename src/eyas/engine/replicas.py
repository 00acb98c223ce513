"""The servers of the user's: who answers now, and, before the first request, whether each does what the run needs of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from eyas.backends.answers import answer
from eyas.backends.base import Ask, Wire
from eyas.backends.events import Events
from eyas.backends.ids import NO_IDS
from eyas.backends.local import Local
from eyas.backends.sglang import came
from eyas.errors import ApiError, EyasError, UsageError
from eyas.families import Loaded
from eyas.providers.choose import Verdict
from eyas.providers.precision import Fidelity
from eyas.providers.rules import Rule
from eyas.tokens.engine import ENGINE_TEXT, read_ids
from eyas.transport import Deadlines, Request, Transport, fetch
from eyas.types import Completion, Endpoint, Failure, Prices, Prompt

LOOK = Deadlines(connect=5.0, headers=10.0, silence=10.0, total=20.0)
TRIAL = Deadlines(connect=10.0, headers=300.0, silence=300.0, total=300.0)
"""The first request of a server that has just started may compile for minutes."""
TRIAL_TOKENS = 4
WORDS = "Tell me, in 3 words: what is 12345 + 1? \u00e9\u4f60\u597d"
"""What the trial asks, and what both tokenizers are to encode alike."""


class _Model(msgspec.Struct):
    id: str = ""
    max_model_len: int | None = None
    meta: dict[str, Any] | None = None


class _Models(msgspec.Struct):
    data: list[_Model] = []


class _Settings(msgspec.Struct):
    n_ctx: int | None = None


class _Props(msgspec.Struct):
    total_slots: int | None = None
    default_generation_settings: _Settings = msgspec.field(default_factory=_Settings)


@dataclass(frozen=True, slots=True)
class Replica:
    """What a look at one server found: its endpoint, and why it cannot be asked now, a sentence, or nothing."""

    endpoint: Endpoint
    amiss: str = ""


async def look(backend: Local, transport: Transport) -> tuple[Verdict, ...]:
    """A verdict on every replica, by what it says of itself now."""
    found = await asyncio.gather(*(_look(backend, tag, transport) for tag in backend.roots))
    return tuple(_verdict(replica) for replica in found)


def _verdict(replica: Replica) -> Verdict:
    slots, context = replica.endpoint.slots, replica.endpoint.context
    room = f", {slots} slots" if slots else ""
    context = f"context {context}" if context else "context not told"
    reason = replica.amiss or f"answers; {context}{room}"
    return Verdict(replica.endpoint, not replica.amiss, reason, Rule.STATUS, Fidelity.UNKNOWN)


async def _look(backend: Local, tag: str, transport: Transport) -> Replica:
    bare = Endpoint(backend.model, tag, tag, tag, Prices(0, 0))
    try:
        status, headers, body = await fetch(transport, backend.about(tag), LOOK)
    except EyasError as error:
        return Replica(bare, f"{backend.roots[tag]} cannot be reached ({error}): is the server started?")
    if status != 200:
        failure = backend.failure(status, headers, body)
        return Replica(bare, f"{backend.roots[tag]} does not say what it serves: {failure.detail}")
    try:
        models = msgspec.json.decode(body, type=_Models).data
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Replica(bare, f"{backend.roots[tag]} answers with something that is no list of models: check base_url")
    named = next((each for each in models if each.id == backend.model), None)
    if named is None and backend.wire is not Wire.LLAMACPP:
        known = ", ".join(repr(each.id) for each in models[:4]) or "no model"
        return Replica(bare, f"{backend.roots[tag]} serves {known}, not {backend.model!r}: set [target] served_as")
    served = named or (models[0] if models else _Model())
    context, slots = served.max_model_len, None
    if backend.wire is Wire.LLAMACPP:
        context, slots = await _props(backend, tag, transport)
    return Replica(msgspec.structs.replace(bare, context=context, slots=slots))


async def _props(backend: Local, tag: str, transport: Transport) -> tuple[int | None, int | None]:
    """Context and number of slots of a llama.cpp server; its context is that of one slot."""
    try:
        _, _, body = await fetch(transport, backend.get(tag, "/props"), LOOK)
        props = msgspec.json.decode(body, type=_Props)
    except (EyasError, msgspec.DecodeError, UnicodeDecodeError):
        return None, None
    return props.default_generation_settings.n_ctx, props.total_slots


async def prove(backend: Local, family: Loaded, thinking: bool, transport: Transport, tags: list[str]) -> Local:
    """Ask each of these replicas one short question, and hold the answer against what the run needs.

    Gives the backend as it is to be used: one that does not stream where a server's stream repeats itself.

    Raises:
        UsageError: a replica gives no ids, or has another tokenizer than the run.
        ApiError: one does not answer.
    """
    found = await asyncio.gather(*(_prove(backend, family, thinking, transport, tag) for tag in tags))
    return backend if all(found) else replace(backend, dialect=replace(backend.dialect, streams=False))


async def _prove(backend: Local, family: Loaded, thinking: bool, transport: Transport, tag: str) -> bool:
    """Whether this one can be asked to stream."""
    root = backend.roots[tag]
    await _same_tokenizer(backend, family, transport, tag)
    messages = ({"role": "user", "content": WORDS},)
    prompt = Prompt("0" * 16, "trial", messages)
    ids = tuple(family.prompt_ids(messages, (), thinking)) if backend.takes_ids else ()
    ask = Ask(TRIAL_TOKENS, thinking=thinking, stream=backend.streams, prompt_ids=ids, stops=family.stops)
    body = await _answer(backend, transport, backend.chat(backend.body(prompt, ask), tag))
    stream = answer(backend.wire)
    stream.feed(body)
    stream.end()
    outcome = stream.outcome()
    without = isinstance(outcome, Completion) and backend.dialect.wants_ids and outcome.token_ids is None
    if without or (isinstance(outcome, Failure) and outcome.detail == NO_IDS):
        raise UsageError(
            f'{root} gives no token ids: update {backend.dialect.name}, or take backend = "openai", which rebuilds them from text'
        )
    if isinstance(outcome, Failure):
        raise ApiError(f"{root} did not answer a trial: {outcome.detail}: check that it is {backend.dialect.name}")
    if backend.takes_ids:
        _same_text(root, read_ids(outcome, family, thinking), len(ids))
    return backend.wire is not Wire.SGLANG or not _repeats(body)


async def _answer(backend: Local, transport: Transport, request: Request) -> bytes:
    try:
        status, headers, body = await fetch(transport, request, TRIAL)
    except EyasError as error:
        raise ApiError(f"{request.url} did not answer a trial ({error}): look at the server's log") from None
    if status != 200:
        detail = backend.failure(status, headers, body).detail
        raise ApiError(
            f"{request.url} refuses what {backend.dialect.name} takes: {detail}: check [target] backend and extra_body"
        )
    return body


def _same_text(root: str, outcome: Completion, asked: int) -> None:
    counted = outcome.usage.prompt_tokens if outcome.usage else asked
    if ENGINE_TEXT in outcome.extra or counted != asked:
        raise UsageError(
            f"{root} has another tokenizer than this run: check [target] tokenizer, and which model is served"
        )


async def _same_tokenizer(backend: Local, family: Loaded, transport: Transport, tag: str) -> None:
    """Hold the server's tokenizer against ours, where it lets itself be asked."""
    question = {
        "model": backend.model,
        "prompt": WORDS,
        "content": WORDS,
        "add_special_tokens": False,
        "add_special": False,
    }
    try:
        status, _, body = await fetch(transport, backend.post(tag, "/tokenize", question), LOOK)
        theirs = msgspec.json.decode(body)["tokens"] if status == 200 else None
    except (EyasError, msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        return
    ours = family.vocab.encode(WORDS)
    if isinstance(theirs, list) and theirs and theirs != ours:
        raise UsageError(
            f"{backend.roots[tag]} has another tokenizer than this run ({theirs[:5]} … for ids {ours[:5]} …): check [target] "
            "tokenizer, and which model is served"
        )


def _repeats(body: bytes) -> bool:
    """Whether a stream of SGLang's repeats in each event all that came before."""
    events = Events()
    data = [*events.feed(body), *events.end()]
    later = [came(each) for each in data[1:] if each.strip() != b"[DONE]"]
    return any(each.so_far and len(each.ids) > 1 for each in later)
