"""Any server with an OpenAI-compatible chat API: messages in, text out; ids come from logprobs, pieces or counts.

Source: https://platform.openai.com/docs/api-reference/chat. `chat_template_kwargs` is what vLLM, SGLang and llama.cpp give to
the chat template, whose switch is called `thinking` (Kimi, DeepSeek) or `enable_thinking` (Qwen, GLM); others ignore it.
"""

from __future__ import annotations

from eyas.backends.base import Ask, Wire
from eyas.backends.local import Dialect, Json
from eyas.types import Prompt


def chat(model: str, prompt: Prompt, ask: Ask) -> Json:
    """A chat request."""
    body: Json = {"model": model, "messages": list(prompt.messages)}
    if prompt.tools:
        body["tools"] = list(prompt.tools)
    body |= {"stream": ask.stream, "max_tokens": ask.max_tokens, **ask.sampling}
    if ask.stream:
        body["stream_options"] = {"include_usage": True}
    return body | {"chat_template_kwargs": {"thinking": ask.thinking, "enable_thinking": ask.thinking}}


OPENAI = Dialect(
    "an OpenAI-compatible server",
    Wire.CHAT,
    "/v1/chat/completions",
    chat,
    takes_ids=False,
    about="/v1/models",
    wants_ids=False,
)
