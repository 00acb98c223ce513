"""vLLM: prompt ids in, token ids out; or its chat, which renders the prompt itself and returns both.

Source: https://docs.vllm.ai/en/latest/serving/openai_compatible_server/ and https://github.com/vllm-project/vllm/pull/22587
(`return_token_ids`).
"""

from __future__ import annotations

import msgspec

from eyas.backends.base import Ask, Wire
from eyas.backends.chunk import WireUsage, usage_of
from eyas.backends.ids import Came
from eyas.backends.local import Dialect, Json
from eyas.backends.openai import chat
from eyas.types import Prompt


def completions(model: str, prompt: Prompt, ask: Ask) -> Json:
    """A request with prompt ids. Specials are asked for in the text too, so that it can be held against the ids."""
    del prompt  # its ids say all
    body: Json = {"model": model, "prompt": list(ask.prompt_ids), "max_tokens": ask.max_tokens, **ask.sampling}
    body |= {"stream": ask.stream, "return_token_ids": True}
    if ask.stream:
        body["stream_options"] = {"include_usage": True}
    if ask.stops:
        body["stop_token_ids"] = list(ask.stops)
    return body | {"skip_special_tokens": False, "spaces_between_special_tokens": False}


def chat_with_ids(model: str, prompt: Prompt, ask: Ask) -> Json:
    """A chat request whose answer carries the ids."""
    return chat(model, prompt, ask) | {"return_token_ids": True}


class _Choice(msgspec.Struct):
    text: str = ""
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


class _Chunk(msgspec.Struct):
    model: str = ""
    choices: list[_Choice] = []
    prompt_token_ids: list[int] | None = None
    usage: WireUsage | None = None
    error: object = None


_decode = msgspec.json.Decoder(_Chunk).decode


def came(data: bytes) -> Came:
    """One chunk of /v1/completions, or a whole body."""
    chunk = _decode(data)
    choice = chunk.choices[0] if chunk.choices else _Choice()
    return Came(
        text=choice.text,
        ids=choice.token_ids or (),
        finish=choice.finish_reason or "",
        stop=choice.stop_reason if isinstance(choice.stop_reason, int) else None,
        usage=usage_of(chunk.usage) if chunk.usage else None,
        prompt_ids=choice.prompt_token_ids or chunk.prompt_token_ids,
        model=chunk.model,
        error=chunk.error,
    )


VLLM = Dialect("vLLM", Wire.VLLM, "/v1/completions", completions, takes_ids=True, about="/v1/models")
VLLM_CHAT = Dialect("vLLM", Wire.CHAT, "/v1/chat/completions", chat_with_ids, takes_ids=False, about="/v1/models")
