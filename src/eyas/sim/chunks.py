"""The bytes of answers as the API writes them: chunks of a stream and whole bodies, key order as recorded."""

from __future__ import annotations

import json
from typing import Any

from eyas.sim.billing import Counts, dollars

COMMENT = b": OPENROUTER PROCESSING\n\n"
DONE = b"data: [DONE]\n\n"
KEEPALIVE = b"\n         \n"

_END = b'},"finish_reason":null,"native_finish_reason":null}]}\n\n'
_REASONING = b'"content":"","role":"assistant","reasoning":"'
_DETAILS = b'","reasoning_details":[{"type":"reasoning.text","text":"'
_DETAILS_END = b'","format":"unknown","index":0}]' + _END
_CONTENT = b'"content":"'
_CONTENT_END = b'","role":"assistant"' + _END
_CALL = b'"content":null,"role":"assistant","tool_calls":[{"index":'


class Chunks:
    """Chunks of one stream; its head is built once, so that a piece costs one join."""

    def __init__(self, head: dict[str, Any]) -> None:
        """`head` is id, created, model and provider, in this order."""
        first = {"id": head["id"], "object": "chat.completion.chunk", **head}
        text = json.dumps(first, ensure_ascii=False, separators=(",", ":"))
        self._plain = b"data: " + text[:-1].encode()
        self._head = self._plain + b',"choices":[{"index":0,"delta":{'

    def reasoning(self, text: bytes) -> bytes:
        """A piece of reasoning, already escaped."""
        return b"".join((self._head, _REASONING, text, _DETAILS, text, _DETAILS_END))

    def content(self, text: bytes) -> bytes:
        """A piece of content, already escaped."""
        return b"".join((self._head, _CONTENT, text, _CONTENT_END))

    def call(self, index: int, name: str) -> bytes:
        """The beginning of a tool call; `name` is Kimi's native id, functions.NAME:IDX."""
        short = name.removeprefix("functions.").rpartition(":")[0]
        begin = f'{index},"id":{json.dumps(name)},"type":"function","function":{{"name":{json.dumps(short)},"arguments":""}}}}]'
        return self._head + _CALL + begin.encode() + _END

    def arguments(self, index: int, text: bytes) -> bytes:
        """A piece of a call's arguments, already escaped."""
        return b"".join((self._head, _CALL, b'%d,"function":{"arguments":"' % index, text, b'"}}]', _END))

    def finish(self, reason: str, usage: bytes | None = None, error: bytes | None = None) -> bytes:
        """The first finish chunk, or with a usage the second one, which repeats the reason; `error` goes inside."""
        delta = b'"content":"","role":"assistant"' + (b"" if usage else b',"reasoning":null')
        shown = json.dumps(reason).encode()
        inner = b"" if error is None else b',"error":' + error
        tail = b"" if usage is None else b',"usage":' + usage
        return b"".join(
            (self._head, delta, b'},"finish_reason":', shown, b',"native_finish_reason":', shown, inner, b"}]", tail,
             b"}\n\n")
        )  # fmt: skip

    def error(self, error: bytes, usage: bytes) -> bytes:
        """An error amid the stream, as recorded: finish null, a whole usage block, the error at the top."""
        choice = b'"content":"","role":"assistant"},"finish_reason":null,"native_finish_reason":null}]'
        plain = self._plain + b',"error":' + error + b',"choices":[{"index":0,"delta":{'
        return b"".join((plain, choice, b',"usage":', usage, b"}\n\n"))

    def no_choices(self, usage: bytes | None) -> bytes:
        """A chunk with empty choices."""
        return self._plain + b',"choices":[]' + (b"" if usage is None else b',"usage":' + usage) + b"}\n\n"


def usage_json(counts: Counts, *, free: bool = False) -> bytes:
    """The usage block; the cost is an exact decimal, 0 if the answer is free."""
    cost, prompt, completion = ("0", "0", "0") if free else (
        dollars(counts.cost), dollars(counts.prompt_cost), dollars(counts.completion_cost))  # fmt: skip
    return (
        f'{{"prompt_tokens":{counts.prompt},"completion_tokens":{counts.completion},'
        f'"total_tokens":{counts.prompt + counts.completion},"cost":{cost},"is_byok":false,'
        '"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0,"audio_tokens":0,"video_tokens":0},'
        f'"cost_details":{{"upstream_inference_cost":{cost},"upstream_inference_prompt_cost":{prompt},'
        f'"upstream_inference_completions_cost":{completion}}},'
        f'"completion_tokens_details":{{"reasoning_tokens":{counts.reasoning},"image_tokens":0,"audio_tokens":0}}}}'
    ).encode()


def error_json(code: int | str, message: str, metadata: dict[str, Any] | None = None) -> bytes:
    """The inner error object."""
    error: dict[str, Any] = {"code": code, "message": message}
    if metadata is not None:
        error["metadata"] = metadata
    return json.dumps(error, ensure_ascii=False, separators=(",", ":")).encode()


def envelope(code: int, message: str, metadata: dict[str, Any] | None = None) -> bytes:
    """An error body."""
    return b'{"error":' + error_json(code, message, metadata) + b',"user_id":"user_simulated"}'


def whole_body(head: dict[str, Any], choices: list[dict[str, Any]], usage: bytes | None, error: bytes | None) -> bytes:
    """The body of an answer that is not streamed."""
    first = {"id": head["id"], "object": "chat.completion", **head, "system_fingerprint": None, "choices": choices}
    text = json.dumps(first, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
    return b"".join(
        (text, b"" if error is None else b',"error":' + error, b"" if usage is None else b',"usage":' + usage, b"}")
    )
