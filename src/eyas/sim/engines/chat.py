"""Chat completions as the four servers write them; they differ in a few fields, see `Dialect` (pure).

Shapes: https://platform.openai.com/docs/api-reference/chat/streaming, vLLM's `vllm/entrypoints/openai/chat_completion/`
(`return_token_ids`: the prompt's ids at the top of the first chunk, each chunk's in its choice), SGLang's
`python/sglang/srt/entrypoints/openai/protocol.py` (ids in the choice, of whole answers only).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from eyas.errors import UsageError
from eyas.sim.cutting import Texts
from eyas.sim.engines.author import Answer
from eyas.sim.engines.base import Asked, Host, Job, Told
from eyas.sim.engines.playing import Delta, Player, Spoken
from eyas.sim.reply import Reply

DONE = b"data: [DONE]\n\n"
_ENCODE = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server's chat differs.

    Attributes:
        reasoning: the field of the reasoning.
        ids: which answers carry ids when `return_token_ids` asks for them.
        prompt: where the prompt's ids stand then.
        stop: the name of the field that says which stop it was, if there is one.
        names_model: whether a model by another name than the one served is refused.
    """

    reasoning: str = "reasoning_content"
    ids: Literal["none", "whole", "all"] = "none"
    prompt: Literal["top", "choice"] = "top"
    stop: str | None = None
    names_model: bool = False


class StreamOptions(msgspec.Struct, frozen=True):
    """What a stream is to say beside its tokens."""

    include_usage: bool = False


class Body(msgspec.Struct, frozen=True):
    """The fields of a chat request that a stand-in obeys."""

    messages: list[dict[str, Any]]
    model: str | None = None
    tools: list[dict[str, Any]] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    return_token_ids: bool | None = None
    seed: int | None = None


def parse(data: bytes, host: Host, dialect: Dialect, refuse: Callable[[int, str], Reply]) -> Asked | Reply:
    """What a chat body asks for, or the refusal."""
    try:
        body = msgspec.json.decode(data, type=Body)
    except msgspec.DecodeError as error:
        return refuse(400, str(error))
    if dialect.names_model and body.model != host.settings.model:
        return refuse(404, f"The model `{body.model}` does not exist.")
    if not body.messages:
        return refuse(400, "messages: at least one is required")
    stream, ids = bool(body.stream), bool(body.return_token_ids) and dialect.ids != "none"
    if body.stream_options is not None and not stream:
        return refuse(400, "Stream options can only be defined when `stream=True`.")
    if stream and ids and dialect.ids == "whole":
        return refuse(400, "return_token_ids is not supported with streaming. Please set stream=false.")
    thinking = _thinking(body.chat_template_kwargs or {}, host)
    try:
        prompt = array("i", host.loaded.prompt_ids(body.messages, body.tools or (), thinking))
    except UsageError as error:
        return refuse(400, str(error))
    wishes = Wishes(
        ids=ids and host.settings.told is not Told.NONE,
        usage=not stream or bool(body.stream_options and body.stream_options.include_usage),
        logprobs=max(1, body.top_logprobs or 0) if body.logprobs else 0,
    )
    limit = body.max_completion_tokens or body.max_tokens or max(1, host.settings.context - len(prompt))
    return Asked(prompt, thinking, limit, stream, ChatForm(host, dialect, wishes), body.seed)


def _thinking(switches: dict[str, Any], host: Host) -> bool:
    """The mode that the template's switches ask for, if the model has it."""
    for name in ("thinking", "enable_thinking"):
        asked = switches.get(name)
        if isinstance(asked, bool) and host.modes.has(asked):
            return asked
    return host.modes.default


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a request wants beside the text: ids, usage, logprobs of the so many likeliest tokens (0: none)."""

    ids: bool = False
    usage: bool = True
    logprobs: int = 0


class ChatForm:
    """One chat answer."""

    early = True

    def __init__(self, host: Host, dialect: Dialect, wishes: Wishes) -> None:
        self._host = host
        self._dialect = dialect
        self._wishes = wishes
        self._start = b""

    def player(self, answer: Answer) -> Player:
        """See `Form`."""
        return Spoken(answer, self._host.texts)

    def head(self, job: Job) -> bytes:
        """The chunk with the role."""
        first = {"id": f"chatcmpl-{job.id}", "object": "chat.completion.chunk", "created": job.created,
                 "model": self._host.settings.model}  # fmt: skip
        self._start = b"data: " + _ENCODE(first)[:-1] + b',"choices":'
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
        prompt = {"prompt_token_ids": job.asked.prompt.tolist()} if self._wishes.ids else {}
        return b"data: " + _ENCODE({**first, "choices": [choice], **prompt}) + b"\n\n"

    def piece(self, job: Job, deltas: Sequence[Delta]) -> bytes:
        """A chunk for each delta that says something."""
        out, sent, size = list[bytes](), job.sent, job.answer.size
        for delta in deltas:
            sent += len(delta.ids)
            ended = sent >= size
            if delta.text or delta.calls or ended or self._wishes.ids or self._wishes.logprobs:
                out.append(self._start + _ENCODE([self._choice(job, delta, ended)]) + b"}\n\n")
        return b"".join(out)

    def _choice(self, job: Job, delta: Delta, ended: bool) -> dict[str, Any]:
        said: dict[str, Any] = {}
        if delta.channel == "reasoning":
            said[self._dialect.reasoning] = delta.text
        elif delta.channel == "content" or ended:
            said["content"] = delta.text
        if delta.calls:
            said["tool_calls"] = _calls(delta)
        choice: dict[str, Any] = {"index": 0, "delta": said, "logprobs": self._logprobs(delta.ids),
                                  "finish_reason": job.answer.finish if ended else None}  # fmt: skip
        if ended and self._dialect.stop is not None:
            choice[self._dialect.stop] = None
        if self._wishes.ids:
            choice["token_ids"] = told(delta.ids, job, self._host, ended)
        return choice

    def _logprobs(self, ids: Sequence[int]) -> dict[str, Any] | None:
        return {"content": logprobs(ids, self._host.texts, self._wishes.logprobs)} if self._wishes.logprobs else None

    def end(self, job: Job) -> bytes:
        """The chunk with the usage, if it is wished for, and the mark of the end."""
        if not self._wishes.usage:
            return DONE
        return self._start + b'[],"usage":' + _ENCODE(usage(job)) + b"}\n\n" + DONE

    def whole(self, job: Job, deltas: Sequence[Delta]) -> bytes:
        """See `Form`."""
        texts = {
            name: "".join(delta.text for delta in deltas if delta.channel == name) for name in ("reasoning", "content")
        }
        calls = [call for delta in deltas for call in _calls(delta)]
        message: dict[str, Any] = {"role": "assistant", "content": texts["content"] or (None if calls else "")}
        message[self._dialect.reasoning] = texts["reasoning"] or None
        if calls:
            message["tool_calls"] = calls
        ids = job.answer.ids
        choice: dict[str, Any] = {"index": 0, "message": message, "logprobs": self._logprobs(ids),
                                  "finish_reason": job.answer.finish}  # fmt: skip
        if self._dialect.stop is not None:
            choice[self._dialect.stop] = None
        prompt = {"prompt_token_ids": job.asked.prompt.tolist()} if self._wishes.ids else {}
        if self._wishes.ids:
            choice["token_ids"] = told(ids, job, self._host, ended=True)
            choice |= prompt if self._dialect.prompt == "choice" else {}
        body = {"id": f"chatcmpl-{job.id}", "object": "chat.completion", "created": job.created,
                "model": self._host.settings.model, "choices": [choice], "usage": usage(job)}  # fmt: skip
        return _ENCODE(body | (prompt if self._dialect.prompt == "top" else {}))


def _calls(delta: Delta) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for index, call in enumerate(delta.calls)
    ]


def usage(job: Job) -> dict[str, int]:
    """Tokens of prompt and answer, the stop token among them."""
    prompt, size = len(job.asked.prompt), job.answer.size
    return {"prompt_tokens": prompt, "total_tokens": prompt + size, "completion_tokens": size}


def told(ids: Sequence[int], job: Job, host: Host, ended: bool) -> list[int]:
    """Those of the ids that the server gives back; `ended`: they are the last ones."""
    stop = ended and job.answer.stopped and host.settings.told is Told.NO_STOP
    return list(ids[:-1] if stop else ids)


def logprobs(ids: Sequence[int], texts: Texts, top: int) -> list[dict[str, Any]]:
    """Entries of made-up probability, with the exact bytes of each token."""
    rows = list[dict[str, Any]]()
    for number in ids:
        data = texts.data(number)
        row: dict[str, Any] = {"token": data.decode(errors="replace"), "logprob": -0.25, "bytes": list(data)}
        rows.append({**row, "top_logprobs": [row] if top else []})
    return rows


def fitted(asked: Asked, limit: int) -> Asked:
    """The same request with a lower limit."""
    return replace(asked, limit=min(asked.limit, limit))
