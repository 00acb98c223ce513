"""llama.cpp: its native /completion with prompt ids in and token ids out, never streamed.

Its stream leaves out the ids of characters that take several tokens, and so does the list of logprobs of its chat. Source:
https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
"""

from __future__ import annotations

import msgspec

from eyas.backends.base import Ask, Wire
from eyas.backends.ids import Came
from eyas.backends.local import Dialect, Json
from eyas.types import Prompt, Usage

_AS_THE_MODEL_SAMPLES: Json = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0, "repeat_penalty": 1.0}
"""The server's own defaults cut the distribution (top_k 40, min_p 0.05): a drafter is to learn that of the model."""

_STOPS = {"eos": "stop", "word": "stop", "limit": "length"}


def completion(model: str, prompt: Prompt, ask: Ask) -> Json:
    """A request with prompt ids."""
    del prompt  # its ids say all
    body: Json = {"model": model, "prompt": list(ask.prompt_ids), "n_predict": ask.max_tokens}
    return body | _AS_THE_MODEL_SAMPLES | dict(ask.sampling) | {"return_tokens": True, "stream": False}


class _Body(msgspec.Struct):
    content: str = ""
    tokens: list[int] = []
    tokens_predicted: int = 0
    tokens_evaluated: int = 0
    stop_type: str = ""
    model: str = ""
    error: object = None


_decode = msgspec.json.Decoder(_Body).decode


def came(data: bytes) -> Came:
    """A whole body of /completion."""
    body = _decode(data)
    return Came(
        text=body.content,
        ids=body.tokens,
        finish=_STOPS.get(body.stop_type, body.stop_type),
        usage=Usage(body.tokens_evaluated, body.tokens_predicted) if body.stop_type else None,
        model=body.model,
        error=body.error,
    )


LLAMACPP = Dialect(
    "llama.cpp", Wire.LLAMACPP, "/completion", completion, takes_ids=True, about="/v1/models", streams=False
)
