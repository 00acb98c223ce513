"""The sections of RUN.toml, one class each; what is set in a dataset goes before [target] and [budget]."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

OPENROUTER = "https://openrouter.ai/api/v1"
MOST_IN_FLIGHT = 5000
LOOPBACK = ("127.0.0.1", "localhost", "::1")
Backend = Literal["openrouter", "openai", "sglang", "vllm", "llamacpp"]
Turns = Literal["first", "last", "replay"]
_OURS = frozenset(
    {"model", "models", "messages", "tools", "stream", "max_tokens", "max_completion_tokens", "provider", "n"}
)


class Section(BaseModel):
    """What a table of RUN.toml shares with the others: no unknown keys, no change after it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Run(Section):
    """[run]: where the run lives, and the seed of its order."""

    dir: str = Field(min_length=1)
    seed: int = 0


class Target(Section):
    """[target]: the model that answers, and how it is asked."""

    model: str = Field(min_length=1)
    backend: Backend = "openrouter"
    base_url: str = OPENROUTER
    family: str | None = None
    tokenizer: str | None = None
    chat_template: str | None = None
    thinking: bool = True
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int = Field(default=16384, ge=1)
    stream: bool = True
    recover: bool = True
    extra_body: dict[str, Any] = {}
    extra_headers: dict[str, str] = {}

    @field_validator("base_url")
    @classmethod
    def _safe_url(cls, value: str, info: ValidationInfo) -> str:
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.hostname or url.port == 0:
            raise ValueError("give a full address such as https://openrouter.ai/api/v1")
        if url.username or url.password or url.query or url.fragment:
            raise ValueError("give the address alone: a key belongs in OPENROUTER_API_KEY or --key-file")
        agreed = cast("dict[str, bool]", info.context or {}).get("insecure_http", False)
        if url.scheme == "http" and url.hostname not in LOOPBACK and not agreed:
            raise ValueError(
                "http:// would send the key unencrypted: use https://, or agree with `run --insecure-http`"
            )
        return value.rstrip("/")

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


class Budget(Section):
    """[budget]: the dollar cap, the token quota of each dataset, and what may be wasted."""

    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    output_tokens: int | None = Field(default=None, gt=0)
    total_output_tokens: int | None = Field(default=None, gt=0)
    mode: Literal["strict", "metered"] = "strict"
    keep_from: int = Field(default=64, ge=1)
    waste: float = Field(default=0.10, ge=0, le=1)
    on_length: Literal["keep", "drop", "redo"] = "keep"

    @model_validator(mode="after")
    def _one_quota(self) -> Budget:
        if self.output_tokens is not None and self.total_output_tokens is not None:
            raise ValueError(
                "give output_tokens (for each dataset) or total_output_tokens (shared by weight), not both"
            )
        return self


class Providers(Section):
    """[providers]: which endpoints may serve. Fields of OpenRouter's provider object may stand here as they are."""

    precision: Literal["native", "any"] = "native"
    unknown: Literal["reject", "accept"] = "reject"
    routing: Literal["pinned", "gateway"] = "pinned"
    drop_above: float | None = Field(default=None, ge=0, le=1)
    require_streamed: bool = False
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    sort: str | dict[str, Any] | None = "price"
    allow_fallbacks: bool | None = None
    require_parameters: bool | None = None
    data_collection: Literal["allow", "deny"] | None = None
    zdr: bool | None = None
    enforce_distillable_text: bool | None = None
    quantizations: tuple[str, ...] = ()
    preferred_min_throughput: float | dict[str, float] | None = None
    preferred_max_latency: float | dict[str, float] | None = None
    max_price: dict[str, float] | None = None
    options: dict[str, Any] | None = None


class Limits(Section):
    """[limits]: how many requests may fly, in how many processes their answers are read, how long each part may take (seconds)."""

    in_flight: int = Field(default=2000, ge=1, le=MOST_IN_FLIGHT)
    processes: Annotated[int, Field(ge=1, le=64)] | Literal["auto"] = "auto"
    connects_per_second: int = Field(default=300, ge=1)
    connect_seconds: float = Field(default=30, gt=0)
    headers_seconds: float = Field(default=300, gt=0)
    silence_seconds: float = Field(default=240, gt=0)
    total_seconds: float = Field(default=7200, gt=0)
    draft_seconds: float = Field(default=3, gt=0)
    reread_seconds: float = Field(default=600, gt=0)
