"""The sections of RUN.toml, one class each; what is set in a dataset goes before [target] and [budget]."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

MOST_IN_FLIGHT = 5000
Turns = Literal["first", "last", "replay"]


class Section(BaseModel):
    """What a table of RUN.toml shares with the others: no unknown keys, no change after it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Run(Section):
    """[run]: where the run lives, and the seed of its order."""

    dir: str = Field(min_length=1)
    seed: int = 0


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


class Cluster(Section):
    """[cluster]: a run over many machines (`eyas run --on ray`): workers, requests in flight at each, prompts handed at once."""

    workers: int | None = Field(default=None, ge=1, le=1000)
    in_flight_per_worker: int | None = Field(default=None, ge=1, le=MOST_IN_FLIGHT)
    lease_prompts: int = Field(default=100, ge=1, le=100_000)


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
    reread_seconds: float | None = Field(default=None, gt=0)
