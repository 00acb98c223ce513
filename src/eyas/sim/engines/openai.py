"""An OpenAI-compatible chat server: text, no ids (pure).

Shapes: https://platform.openai.com/docs/api-reference/chat, with `reasoning_content` for the reasoning, as most open-weight
servers have it.
"""

from __future__ import annotations

from typing import Any

from eyas.sim.engines.base import Asked, Host
from eyas.sim.engines.chat import Dialect, parse
from eyas.sim.reply import Reply, as_json, body

_DIALECT = Dialect(names_model=True)


class OpenAI:
    """`/v1/chat/completions` and `/v1/models`."""

    path = "/v1"

    def __init__(self, host: Host) -> None:
        self._host = host

    def get(self, path: str) -> Reply | None:
        """See `Wire`."""
        if path == "/v1/models":
            return as_json(models(self._host, "stand-in"))
        return body(200, b"{}") if path == "/health" else None

    def post(self, path: str, data: bytes) -> Asked | Reply | None:
        """See `Wire`."""
        if path != "/v1/chat/completions":
            return None
        asked = parse(data, self._host, _DIALECT, refuse)
        if isinstance(asked, Reply):
            return asked
        context, tokens = self._host.settings.context, len(asked.prompt) + asked.limit
        if tokens > context:
            return refuse(400, f"This model's maximum context length is {context} tokens, {tokens} were requested.")
        return asked


def refuse(status: int, message: str) -> Reply:
    """An error as OpenAI's API writes it."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return as_json({"error": error}, status)


def models(host: Host, owner: str, **more: Any) -> dict[str, Any]:
    """The list of the one model."""
    card = {"id": host.settings.model, "object": "model", "created": 1_700_000_000, "owned_by": owner}
    return {"object": "list", "data": [{**card, **more}]}
