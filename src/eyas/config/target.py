"""[target] and [fallback]: the model that answers, where it is served, and how it is asked."""

from __future__ import annotations

from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator, model_validator

from eyas.config.sections import Section

OPENROUTER = "https://openrouter.ai/api/v1"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
API = "openrouter"
"""The one backend that bills."""
Backend = Literal["openrouter", "openai", "sglang", "vllm", "llamacpp"]
_OURS = frozenset(
    {
        "model", "models", "messages", "prompt", "input_ids", "tools", "stream", "max_tokens", "max_completion_tokens",
        "max_new_tokens", "n_predict", "provider", "n", "return_token_ids", "return_tokens",
    }
)  # fmt: skip


class Service(Section):
    """Where the model is served, and what every request there carries. One address a replica."""

    backend: Backend = API
    base_url: str | tuple[str, ...] = OPENROUTER
    served_as: str | None = Field(default=None, min_length=1)
    prompts_as: Literal["ids", "chat"] = "ids"
    key_env: str | None = Field(default=None, pattern="^[A-Za-z_][A-Za-z0-9_]*$")
    stream: bool | None = None
    extra_body: dict[str, Any] = Field(default_factory=dict[str, Any])
    extra_headers: dict[str, str] = Field(default_factory=dict[str, str])

    @property
    def urls(self) -> tuple[str, ...]:
        """All addresses, without a slash at their end."""
        return (self.base_url,) if isinstance(self.base_url, str) else self.base_url

    @property
    def bills(self) -> bool:
        """Whether answers cost dollars that eyas counts."""
        return self.backend == API

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key; empty where none is sent."""
        return self.key_env or ("OPENROUTER_API_KEY" if self.bills else "")

    @field_validator("base_url")
    @classmethod
    def _plain(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        urls = [value] if isinstance(value, str) else list(value)
        for each in urls:
            url = urlsplit(each)
            if url.scheme not in ("http", "https") or not url.hostname or url.port == 0:
                raise ValueError("give a full address such as https://openrouter.ai/api/v1")
            if url.username or url.password or url.query or url.fragment:
                raise ValueError("give the address alone: a key belongs in OPENROUTER_API_KEY or --key-file")
        found = tuple(each.rstrip("/") for each in urls)
        if len({urlsplit(each).netloc for each in found}) < len(found) or not found:
            raise ValueError("give each replica once, with a host and port of its own")
        return found[0] if isinstance(value, str) else found

    @field_validator("extra_headers")
    @classmethod
    def _no_key(cls, value: dict[str, str]) -> dict[str, str]:
        if any(name.lower() == "authorization" for name in value):
            raise ValueError("the key comes from OPENROUTER_API_KEY or --key-file, never from RUN.toml: remove it here")
        return value

    @field_validator("extra_body")
    @classmethod
    def _not_ours(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(_OURS & set(value))
        if taken:
            raise ValueError(f"{', '.join(taken)}: eyas sets these itself, to bound the bill and to choose who answers")
        return value

    @model_validator(mode="after")
    def _fits(self, info: ValidationInfo) -> Self:
        if self.bills and len(self.urls) > 1:
            raise ValueError("base_url: openrouter has one address; a list is for replicas of a server of yours")
        if not self.bills and OPENROUTER in self.urls:
            raise ValueError(f"base_url: missing: where does {self.backend} listen? for example http://127.0.0.1:8000")
        if self.backend == "llamacpp" and self.prompts_as == "chat":
            raise ValueError(
                'prompts_as: llama.cpp returns ids for prompts that are ids; for its chat take backend = "openai"'
            )
        if self.backend == "llamacpp" and self.stream:
            raise ValueError(
                "stream: llama.cpp's stream leaves out ids of characters that take several tokens: remove it"
            )
        agreed = bool(info.context and info.context.get("insecure_http")) or not self.key_variable
        if not agreed and any(_open(each) for each in self.urls):
            raise ValueError(
                "base_url: http:// would send the key unencrypted: use https://, or agree with `run --insecure-http`"
            )
        return self


class Target(Service):
    """[target]: the model that answers, and how it is asked."""

    model: str = Field(min_length=1)
    family: str | None = None
    tokenizer: str | None = None
    chat_template: str | None = None
    thinking: bool = True
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int = Field(default=16384, ge=1)
    recover: bool = True

    @property
    def asked_as(self) -> str:
        """The model's name where it is served."""
        return self.served_as or self.model


class Fallback(Service):
    """[fallback]: who is asked for what the target's servers leave: when they are gone, or after so many minutes."""

    after_minutes: float | None = Field(default=None, gt=0)


def _open(address: str) -> bool:
    """Whether what is sent there can be read on the way."""
    url = urlsplit(address)
    return url.scheme == "http" and url.hostname not in LOOPBACK
