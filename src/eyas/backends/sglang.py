"""SGLang: its native /generate with prompt ids in and token ids out; or its chat with ids returned.

Source: https://docs.sglang.ai/basic_usage/native_api.html and https://docs.sglang.ai/basic_usage/sampling_params.html. A
stream repeats all that came before in each event, unless the server was started so that it does not: such a server is not
asked to stream, since that would be bytes in the square of an answer's length.
"""

from __future__ import annotations

import msgspec

from eyas.backends.base import Ask, Wire
from eyas.backends.ids import Came
from eyas.backends.local import Dialect, Json
from eyas.backends.openai import chat
from eyas.types import Prompt, Usage


def generate(model: str, prompt: Prompt, ask: Ask) -> Json:
    """A request with prompt ids."""
    del model, prompt  # a server has one model; the ids say all
    sampling: Json = {"max_new_tokens": ask.max_tokens, **ask.sampling}
    if ask.stops:
        sampling["stop_token_ids"] = list(ask.stops)
    sampling |= {"skip_special_tokens": False, "spaces_between_special_tokens": False}
    return {"input_ids": list(ask.prompt_ids), "sampling_params": sampling, "stream": ask.stream}


def chat_with_ids(model: str, prompt: Prompt, ask: Ask) -> Json:
    """A chat request whose answer carries the ids, which a stream does not: https://github.com/sgl-project/sglang/pull/30917."""
    return chat(model, prompt, ask) | {"return_token_ids": True, "stream": False}


class _Finish(msgspec.Struct):
    type: str = ""
    matched: int | str | list[int] | None = None
    message: str = ""


class _Meta(msgspec.Struct):
    finish_reason: _Finish | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


class _Event(msgspec.Struct):
    text: str = ""
    output_ids: list[int] = []
    meta_info: _Meta | None = None
    error: object = None


_decode = msgspec.json.Decoder(_Event).decode


def came(data: bytes) -> Came:
    """One event of /generate, or a whole body."""
    event = _decode(data)
    meta = event.meta_info or _Meta()
    finish = meta.finish_reason
    if finish is not None and finish.type == "abort" and finish.message:
        return Came(error={"message": finish.message, "code": 500})
    return Came(
        text=event.text,
        ids=event.output_ids,
        so_far=len(event.output_ids) == meta.completion_tokens,
        finish=finish.type if finish else "",
        stop=finish.matched if finish and isinstance(finish.matched, int) else None,
        usage=Usage(meta.prompt_tokens, meta.completion_tokens, cached_tokens=meta.cached_tokens)
        if event.meta_info
        else None,
        error=event.error,
    )


SGLANG = Dialect("SGLang", Wire.SGLANG, "/generate", generate, takes_ids=True, about="/v1/models")
SGLANG_CHAT = Dialect(
    "SGLang", Wire.CHAT, "/v1/chat/completions", chat_with_ids, takes_ids=False, about="/v1/models", streams=False
)
