"""vLLM's OpenAI-compatible server: prompts as ids, ids back (pure).

Shapes: https://docs.vllm.ai/en/latest/serving/openai_compatible_server/ and, for `return_token_ids`,
https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/completion/protocol.py and `serving.py` beside it. The
ids hold the stop token, the text does not (`vllm/v1/engine/detokenizer.py`). A server from before 0.10.2 ignores the field.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from eyas.sim.engines.author import Answer
from eyas.sim.engines.base import Asked, Host, Job, Told
from eyas.sim.engines.chat import DONE, Dialect, StreamOptions, parse, told, usage
from eyas.sim.engines.openai import models
from eyas.sim.engines.playing import Delta, Player, Spelled
from eyas.sim.reply import Reply, as_json, body

_DIALECT = Dialect(reasoning="reasoning", ids="all", stop="stop_reason", names_model=True)
_ENCODE = msgspec.json.encode


class Body(msgspec.Struct, frozen=True):
    """The fields of a completion request that the stand-in obeys; unknown ones are ignored, as the server does."""

    prompt: Any = None
    model: str | None = None
    max_tokens: int | None = 16
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    return_token_ids: bool | None = None
    skip_special_tokens: bool = True
    seed: int | None = None


class VLLM:
    """Completions, chat completions, tokenize, models and version."""

    path = "/v1"

    def __init__(self, host: Host) -> None:
        self._host = host
        self._old = host.settings.told is Told.NONE

    def get(self, path: str) -> Reply | None:
        """See `Wire`."""
        if path == "/v1/models":
            return as_json(models(self._host, "vllm", root=self._host.settings.model, parent=None,
                                  max_model_len=self._host.settings.context, permission=[]))  # fmt: skip
        if path == "/version":
            return as_json({"version": "0.9.2" if self._old else "0.11.0"})
        return body(200, b"") if path == "/health" else None

    def post(self, path: str, data: bytes) -> Asked | Reply | None:
        """See `Wire`."""
        if path == "/v1/completions":
            return self._fit(self._completion(data))
        if path == "/v1/chat/completions":
            return self._fit(parse(data, self._host, _DIALECT, self._refuse))
        if path == "/tokenize":
            return self._tokenize(data)
        return None

    def _completion(self, data: bytes) -> Asked | Reply:
        try:
            asked = msgspec.json.decode(data, type=Body)
            prompt = prompt_of(asked.prompt, self._host)
        except (msgspec.DecodeError, ValueError) as error:
            return self._refuse(400, str(error))
        if asked.model not in (None, self._host.settings.model):
            return self._refuse(404, f"The model `{asked.model}` does not exist.")
        if asked.stream_options is not None and not asked.stream:
            return self._refuse(400, "Stream options can only be defined when `stream=True`.")
        usage_wished = bool(asked.stream_options and asked.stream_options.include_usage)
        form = CompletionForm(self._host, asked, usage_wished)
        limit = 16 if asked.max_tokens is None else asked.max_tokens
        thinking = self._host.modes.of(prompt)
        return Asked(prompt, thinking, limit, bool(asked.stream), form, asked.seed)

    def _fit(self, asked: Asked | Reply) -> Asked | Reply:
        if isinstance(asked, Reply):
            return asked
        context, size = self._host.settings.context, len(asked.prompt)
        if asked.limit < 1:
            return self._refuse(400, f"max_tokens must be at least 1, got {asked.limit}.")
        if size + asked.limit > context:
            return self._refuse(
                400,
                f"'max_tokens' or 'max_completion_tokens' is too large: {asked.limit}. This model's maximum context "
                f"length is {context} tokens and your request has {size} input tokens.",
            )
        return asked

    def _tokenize(self, data: bytes) -> Reply:
        asked = msgspec.json.decode(data, type=dict[str, Any])
        ids = self._host.loaded.vocab.encode_special(str(asked.get("prompt") or ""))
        return as_json({"count": len(ids), "max_model_len": self._host.settings.context, "tokens": ids,
                        "token_strs": None})  # fmt: skip

    def _refuse(self, status: int, message: str) -> Reply:
        kind = "NotFoundError" if status == 404 else "BadRequestError"  # HTTP's
        error = {"message": message, "type": kind, "param": None, "code": status}
        return as_json({"object": "error", **error} if self._old else {"error": error}, status)


def prompt_of(value: Any, host: Host) -> array[int]:
    """The ids of a prompt: a list of them, or a text.

    Raises:
        ValueError: it is neither, it is empty, or an id is not in the vocabulary.
    """
    if isinstance(value, str):
        value = host.loaded.vocab.encode_special(value)
    ids = cast("list[Any]", value) if isinstance(value, list) else []
    if not ids or not all(type(each) is int for each in ids):
        raise ValueError("prompt: give one prompt, a text or a list of token ids, that is not empty")
    if not host.known(ids):
        raise ValueError(f"Token id {max(ids)} is out of vocabulary")
    return array("i", ids)


class CompletionForm:
    """One answer of `/v1/completions`."""

    early = True

    def __init__(self, host: Host, asked: Body, usage_wished: bool) -> None:
        self._host = host
        self._asked = asked
        self._usage = usage_wished
        self._ids = bool(asked.return_token_ids)
        self._old = host.settings.told is Told.NONE
        self._start = b""

    def player(self, answer: Answer) -> Player:
        """See `Form`."""
        silent = self._host.loaded.vocab.specials.values() if self._asked.skip_special_tokens else ()
        return Spelled(answer, self._host.texts, set(silent), "drop")

    def head(self, job: Job) -> bytes:
        """Nothing: the first chunk has the first token."""
        first = {"id": f"cmpl-{job.id}", "object": "text_completion", "created": job.created,
                 "model": self._host.settings.model}  # fmt: skip
        self._start = b"data: " + _ENCODE(first)[:-1] + b',"choices":['
        return b""

    def piece(self, job: Job, deltas: Sequence[Delta]) -> bytes:
        """One chunk."""
        [delta] = deltas
        ended = job.sent + len(delta.ids) >= job.answer.size
        finish = b'"%b"' % job.answer.finish.replace("tool_calls", "stop").encode() if ended else b"null"
        text = self._host.texts.escape(delta.text)
        out = [self._start, b'{"index":0,"text":"', text, b'","logprobs":null,"finish_reason":', finish]
        out.append(b',"stop_reason":null')
        if not self._old:
            prompt = ids_json(job.asked.prompt) if self._ids and job.sent == 0 else b"null"
            ids = ids_json(told(delta.ids, job, self._host, ended)) if self._ids else b"null"
            out += [b',"prompt_token_ids":', prompt, b',"token_ids":', ids]
        out.append(b'}],"usage":null}\n\n' if self._old else b"}]}\n\n")
        return b"".join(out)

    def end(self, job: Job) -> bytes:
        """The chunk with the usage, if it is wished for, and the mark of the end."""
        return (self._start + b'],"usage":' + _ENCODE(usage(job)) + b"}\n\n" if self._usage else b"") + DONE

    def whole(self, job: Job, deltas: Sequence[Delta]) -> bytes:
        """See `Form`."""
        [delta] = deltas
        choice: dict[str, Any] = {"index": 0, "text": delta.text, "logprobs": None,
                                  "finish_reason": job.answer.finish.replace("tool_calls", "stop"), "stop_reason": None,
                                  "prompt_logprobs": None}  # fmt: skip
        if not self._old:
            choice["token_ids"] = told(delta.ids, job, self._host, ended=True) if self._ids else None
            choice["prompt_token_ids"] = job.asked.prompt.tolist() if self._ids else None
        return _ENCODE({"id": f"cmpl-{job.id}", "object": "text_completion", "created": job.created,
                        "model": self._host.settings.model, "choices": [choice], "system_fingerprint": None,
                        "usage": usage(job), "kv_transfer_params": None})  # fmt: skip


def ids_json(ids: Sequence[int]) -> bytes:
    """Ids as a JSON array."""
    return f"[{','.join(map(str, ids))}]".encode()
