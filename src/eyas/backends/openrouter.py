"""OpenRouter: requests built, generation look-ups read. Source: https://openrouter.ai/docs/api-reference/overview."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import msgspec
from pydantic import SecretStr

from eyas.backends import errors
from eyas.backends.base import Ask, Wire
from eyas.errors import ApiError, KeyOrCreditsError, UsageError
from eyas.ledger import nano_dollars
from eyas.transport import Request
from eyas.types import Failure, FailureKind, Prompt

_CACHED = {"X-OpenRouter-Cache": "true", "X-OpenRouter-Cache-TTL": "86400"}


@dataclass(frozen=True, slots=True)
class Generation:
    """What the API knows of one generation afterwards. `cost` is nano-dollars; counts are native tokens."""

    cost: int
    counts: tuple[int, int, int | None]
    provider: str
    finish: str


class _GenerationData(msgspec.Struct):
    total_cost: Decimal | None = None
    usage: Any = None
    provider_name: str | None = None
    native_tokens_prompt: int | None = None
    native_tokens_completion: int | None = None
    native_tokens_reasoning: int | None = None
    tokens_prompt: int | None = None
    tokens_completion: int | None = None
    finish_reason: str | None = None


class _GenerationBody(msgspec.Struct):
    data: _GenerationData


@dataclass(frozen=True, slots=True)
class OpenRouter:
    """The API at `base_url`. The key is never printed, and goes to that origin only."""

    base_url: str
    model: str
    key: SecretStr
    extra_headers: Mapping[str, str] = field(default_factory=dict[str, str])
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    wire: Wire = field(default=Wire.CHAT, init=False)
    bills: bool = field(default=True, init=False)
    streams: bool = field(default=True, init=False)
    takes_ids: bool = field(default=False, init=False)

    @property
    def where(self) -> str:
        """Its address."""
        return self.base_url

    def body(self, prompt: Prompt, ask: Ask) -> bytes:
        """The exact bytes of a request for `prompt`; max_tokens is always sent: it bounds the bill."""
        body: dict[str, Any] = {"model": self.model, "messages": list(prompt.messages)}
        if prompt.tools:
            body["tools"] = list(prompt.tools)
        body |= {"stream": ask.stream, "max_tokens": ask.max_tokens, **ask.sampling, **ask.family_body}
        if ask.provider:
            body["provider"] = dict(ask.provider)
        if ask.session:
            body["session_id"] = ask.session
        body |= dict(self.extra_body)
        if ask.mark:
            body["metadata"] = {**body.get("metadata", {}), "attempt": ask.mark}
        return msgspec.json.encode(body)

    def chat(self, body: bytes, tag: str = "", *, cached: bool = False) -> Request:
        """The request that sends such a body; `cached` lets the API keep the answer for a day, and give it again."""
        del tag  # the body names the endpoint
        headers = self._headers() | (_CACHED if cached else {})
        return Request("POST", f"{self.base_url}/chat/completions", headers, body)

    def endpoints(self) -> Request:
        """Ask for the model's endpoint list."""
        return Request("GET", f"{self.base_url}/models/{quote(self.model, safe='/:')}/endpoints", self._headers())

    def providers(self) -> Request:
        """Ask for the official name and slug of every provider."""
        return Request("GET", f"{self.base_url}/providers", self._headers())

    def no_retention(self) -> Request:
        """Ask which endpoints, of all models, keep no prompt."""
        return Request("GET", f"{self.base_url}/endpoints/zdr", self._headers())

    def distillable(self) -> Request:
        """Ask for the models whose authors allow distillation."""
        return Request("GET", f"{self.base_url}/models?distillable=true", self._headers())

    def about_key(self) -> Request:
        """Ask for the key's own limit and use."""
        return Request("GET", f"{self.base_url}/key", self._headers())

    def credits(self) -> Request:
        """Ask for the account's balance; only a management key is told."""
        return Request("GET", f"{self.base_url}/credits", self._headers())

    def generation(self, generation_id: str) -> Request:
        """Ask what became of a generation."""
        return Request("GET", f"{self.base_url}/generation?id={quote(generation_id, safe='')}", self._headers())

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """What a response with a status other than 200 stands for."""
        return errors.from_response(status, headers, body)

    def read_generation(self, status: int, headers: Mapping[str, str], body: bytes) -> Generation | None:
        """The answer to `generation`; None while the API does not know it yet (404 for a while, or too busy).

        Raises:
            KeyOrCreditsError: the key is refused.
        """
        if status != 200:
            if self.failure(status, headers, body).kind is FailureKind.KEY:
                raise KeyOrCreditsError(f"the API refuses the key at {self.base_url}: check OPENROUTER_API_KEY")
            return None
        try:
            data = msgspec.json.decode(body, type=_GenerationBody, strict=False).data
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        cost = data.total_cost if data.total_cost is not None else data.usage
        if cost is None:
            return None
        prompt = data.native_tokens_prompt if data.native_tokens_prompt is not None else data.tokens_prompt
        completion = (
            data.native_tokens_completion if data.native_tokens_completion is not None else data.tokens_completion
        )
        return Generation(
            cost=nano_dollars(str(cost)),
            counts=(prompt or 0, completion or 0, data.native_tokens_reasoning),
            provider=data.provider_name or "",
            finish=data.finish_reason or "",
        )

    def read_list(self, what: str, answer: tuple[int, Mapping[str, str], bytes]) -> Any:
        """The `data` of a list that was asked for.

        Raises:
            KeyOrCreditsError: the key is refused.
            UsageError: the API does not know the model.
            ApiError: any other error, with what to check.
        """
        status, headers, body = answer
        if status == 200:
            try:
                return msgspec.json.decode(body)["data"]
            except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
                raise ApiError(
                    f"{self.base_url} answered {what} with something that is no list: check base_url"
                ) from None
        failure = self.failure(status, headers, body)
        if status in (401, 403):
            raise KeyOrCreditsError(
                f"the API refuses the key ({failure.detail}): check OPENROUTER_API_KEY or --key-file"
            )
        if status == 404:
            raise UsageError(
                f"{self.base_url} does not know the model {self.model!r} ({failure.detail}): check the model's id, and the base URL"
            )
        raise ApiError(f"{self.base_url} answered {what} with {failure.detail}: try again in a minute")

    def _headers(self) -> dict[str, str]:
        key = self.key.get_secret_value()
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        return headers | dict(self.extra_headers)
