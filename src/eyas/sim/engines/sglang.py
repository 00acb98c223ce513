"""SGLang's native server: `/generate` with `input_ids`, `output_ids` back (pure).

Shapes: https://docs.sglang.ai/basic_usage/native_api.html and `sampling_params.html` beside it; fields of an event:
https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/managers/tokenizer_manager.py, how an answer ends:
`schedule_batch.py` beside it. A stream's events are cumulative unless the server was started with
`--incremental-streaming-output`. The ids hold the stop token, the text does not. Servers from before 0.4.6 give no ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from eyas.sim.engines.author import Answer
from eyas.sim.engines.base import Asked, Host, Job, Streams, Told
from eyas.sim.engines.chat import DONE, Dialect, parse, told
from eyas.sim.engines.openai import models
from eyas.sim.engines.playing import Delta, Player, Spelled
from eyas.sim.engines.vllm import ids_json, prompt_of
from eyas.sim.reply import Action, Reply, as_json, body

_DIALECT = Dialect(ids="whole", prompt="choice", stop="matched_stop")
_ENCODE = msgspec.json.encode


class Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`sampling_params`: unknown ones are an error, as at the server."""

    max_new_tokens: int | None = 128
    skip_special_tokens: bool = True
    sampling_seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    min_new_tokens: int | None = None
    stop: Any = None
    stop_token_ids: list[int] | None = None
    stop_regex: Any = None
    ignore_eos: bool | None = None
    spaces_between_special_tokens: bool | None = None
    no_stop_trim: bool | None = None
    n: int | None = None
    json_schema: str | None = None
    regex: str | None = None
    ebnf: str | None = None
    structural_tag: Any = None
    custom_params: Any = None
    logit_bias: Any = None


class Body(msgspec.Struct, frozen=True):
    """The fields of a request that the stand-in obeys."""

    input_ids: list[int] | None = None
    text: str | None = None
    sampling_params: Sampling = Sampling()
    stream: bool = False
    return_prompt_token_ids: bool = False


class SGLang:
    """`/generate`, chat completions, and what the server says of itself."""

    path = ""

    def __init__(self, host: Host) -> None:
        self._host = host

    def get(self, path: str) -> Reply | None:
        """See `Wire`."""
        settings = self._host.settings
        if path == "/v1/models":
            return as_json(models(self._host, "sglang", root=settings.model, max_model_len=settings.context))
        if path in ("/get_model_info", "/model_info"):
            return as_json({"model_path": settings.model, "served_model_name": settings.model,
                            "tokenizer_path": settings.model, "is_generation": True, "preferred_sampling_params": None,
                            "weight_version": "default"})  # fmt: skip
        if path in ("/get_server_info", "/server_info"):
            return as_json({"model_path": settings.model, "served_model_name": settings.model, "context_length": None,
                            "stream_interval": settings.interval, "max_running_requests": settings.slots,
                            "incremental_streaming_output": settings.streams is Streams.INCREMENTAL,
                            "max_total_num_tokens": settings.context * 4, "version": "0.5.4",
                            "internal_states": []})  # fmt: skip
        return body(200, b"") if path in ("/health", "/health_generate") else None

    def post(self, path: str, data: bytes) -> Asked | Reply | None:
        """See `Wire`."""
        if path == "/generate":
            return self._fit(self._generate(data))
        if path == "/v1/chat/completions":
            return self._fit(parse(data, self._host, _DIALECT, _refuse))
        if path in ("/tokenize", "/v1/tokenize"):
            asked = msgspec.json.decode(data, type=dict[str, Any])
            ids = self._host.loaded.vocab.encode_special(str(asked.get("prompt") or ""))
            return as_json({"tokens": ids, "count": len(ids), "max_model_len": self._host.settings.context})
        return None

    def _generate(self, data: bytes) -> Asked | Reply:
        try:
            asked = msgspec.json.decode(data, type=Body)
        except msgspec.DecodeError as error:
            return _refuse(400, str(error))
        try:
            prompt = prompt_of(asked.text if asked.input_ids is None else asked.input_ids, self._host)
        except ValueError as error:
            return _amid(str(error)) if asked.stream else _refuse(400, str(error))
        sampling = asked.sampling_params
        limit = (
            self._host.settings.context - len(prompt) if sampling.max_new_tokens is None else sampling.max_new_tokens
        )
        form = GenerateForm(self._host, asked)
        return Asked(prompt, self._host.modes.of(prompt), limit, asked.stream, form, sampling.sampling_seed)

    def _fit(self, asked: Asked | Reply) -> Asked | Reply:
        if isinstance(asked, Reply):
            return asked
        context, size, refused = self._host.settings.context, len(asked.prompt), ""
        if size >= context:
            refused = f"The input ({size} tokens) is longer than the model's context length ({context} tokens)."
        elif size + asked.limit > context:
            refused = (
                f"Requested token count exceeds the model's maximum context length of {context} tokens. You requested a "
                f"total of {size + asked.limit} tokens: {size} tokens from the input messages and {asked.limit} tokens "
                "for the completion."
            )
        elif asked.limit < 1:
            refused = f"max_new_tokens must be at least 1, got {asked.limit}."
        if not refused:
            return asked
        return _amid(refused) if asked.stream and isinstance(asked.form, GenerateForm) else _refuse(400, refused)


def _refuse(status: int, message: str) -> Reply:
    return as_json({"error": {"message": message}}, status)


def _amid(message: str) -> Reply:
    """A refusal within a stream: its status is 200."""
    error = {"message": message, "type": "invalid_request_error", "code": 400, "retryable": False}
    data = b"data: " + _ENCODE({"error": error}) + b"\n\n" + DONE
    return Reply(200, iter([(0.0, data), (0.0, Action.END)]), headers={"Content-Type": "text/event-stream"})


class GenerateForm:
    """One answer of `/generate`."""

    early = True

    def __init__(self, host: Host, asked: Body) -> None:
        self._host = host
        self._asked = asked
        self._ids = host.settings.told is not Told.NONE
        self._cumulative = host.settings.streams is Streams.CUMULATIVE
        self._text, self._numbers = bytearray(), bytearray()

    def player(self, answer: Answer) -> Player:
        """See `Form`."""
        silent = self._host.loaded.vocab.specials.values() if self._asked.sampling_params.skip_special_tokens else ()
        return Spelled(answer, self._host.texts, set(silent), "replace")

    def head(self, job: Job) -> bytes:
        """Nothing: the first event has the first token."""
        del job
        return b""

    def piece(self, job: Job, deltas: Sequence[Delta]) -> bytes:
        """One event."""
        return b"data: " + self._event(job, deltas[0]) + b"\n\n"

    def end(self, job: Job) -> bytes:
        """The mark of the end."""
        del job
        return DONE

    def whole(self, job: Job, deltas: Sequence[Delta]) -> bytes:
        """See `Form`: as the last event."""
        return self._event(job, deltas[0])

    def _event(self, job: Job, delta: Delta) -> bytes:
        sent = job.sent + len(delta.ids)
        ended = sent >= job.answer.size
        text = self._host.texts.escape(delta.text)
        numbers = ids_json(told(delta.ids, job, self._host, ended))[1:-1]
        if self._cumulative:
            self._text += text
            self._numbers += b"," + numbers if self._numbers and numbers else numbers
            text, numbers = bytes(self._text), bytes(self._numbers)
        out = [b'{"text":"', text, b'"']
        if self._ids:
            out += [b',"output_ids":[', numbers, b"]"]
        if self._ids and self._asked.return_prompt_token_ids:
            out += [b',"prompt_token_ids":', ids_json(job.asked.prompt)]
        out.append(
            b',"meta_info":{"id":"%b","finish_reason":%b,"prompt_tokens":%d,"weight_version":"default",'
            b'"num_retractions":0,"reasoning_tokens":0,"completion_tokens":%d,"cached_tokens":0%b}}'
            % (
                job.id.encode(),
                self._finish(job.answer) if ended else b"null",
                len(job.asked.prompt),
                sent,
                b',"e2e_latency":1.0' if ended else b"",
            )
        )
        return b"".join(out)

    def _finish(self, answer: Answer) -> bytes:
        if answer.stopped:
            return b'{"type":"stop","matched":%d}' % answer.ids[-1]
        return b'{"type":"length","length":%d}' % answer.size
