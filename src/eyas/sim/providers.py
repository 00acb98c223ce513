"""Virtual providers: what they offer, how they count, cut and strip, and how the router chooses among them (pure)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

import msgspec

from eyas.types import NANO

CutStyle = Literal["token", "burst", "word", "anywhere", "block"]
"""How streamed text is cut: a token a piece, two to five, those of a word, anywhere, or in blocks of some hundred tokens."""

Redump = Literal["none", "compact", "spaced", "escaped"]
"""How arguments are written anew: not at all, without spaces, with them, or with them and in ASCII."""

ListStyle = Literal["none", "all", "text", "content", "folded"]
"""Which tokens a list of logprobs holds: none, all, all but special ones, the content's, or all with some in one entry."""

ReasoningCount = Literal["with_end", "exact", "estimate"]
"""What `reasoning_tokens` counts: R + 1 (`</think>` included), R, or a guess a few percent off."""


@lru_cache(maxsize=1024)
def nano(price: str) -> int:
    """Nano-dollars of a decimal string of dollars.

    Raises:
        ValueError: the price is finer than a nano-dollar a token.
    """
    value = Decimal(price) * NANO
    if value != value.to_integral_value():
        raise ValueError(f"price {price} is finer than a nano-dollar; the simulator's books are exact integers")
    return int(value)


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """One virtual provider's endpoint and its habits.

    Attributes:
        name: the display name that answers carry.
        tag: the endpoint's tag; the slug is its part before the first slash.
        prompt, completion: US dollars a token, as the decimal strings of the API.
        status, uptime: as the endpoint list shows them; uptime is percent.
        slots: answers at the same time; more get 429. 0 is no limit.
        per_second: requests that it takes a second; more get 429 with Retry-After 1. 0 is no limit.
        batching: with n answers at the same time each comes at 1 / (1 + n / batching) of its speed. 0: at full speed.
        tps, tps_sigma: median tokens a second of an answer and the sigma of its lognormal spread.
        ttft: median seconds to the first token.
        think_sampled: `<think>` counts as a completion token, so the prompt counts one less.
        stop_counted: the stop token counts as a completion token.
        strip: whitespace taken off reasoning and content.
        trailing_space: a space that was never sampled ends the reasoning.
        redump: tool arguments are parsed and dumped again, in one piece.
        logprobs: what it lists when it is asked for logprobs.
        hidden_prompt: tokens of a system turn that nobody asked for.
        other_template: it counts a newline after each turn, and a system turn of its own where there is none.
        other_tokenizer: it counts with a smaller vocabulary.
        cancel_stops: a client that goes away stops the bill.
        usage_alone: the usage chunk has empty `choices`.
    """

    name: str
    tag: str
    quantization: str | None
    prompt: str
    completion: str
    context: int = 262_144
    max_output: int | None = 262_144
    status: int = 0
    uptime: float | None = 99.0
    slots: int = 0
    per_second: float = 0.0
    batching: float = 0.0
    tps: float = 20.0
    tps_sigma: float = 0.35
    ttft: float = 1.2
    think_sampled: bool = False
    stop_counted: bool = True
    reasoning_count: ReasoningCount = "with_end"
    strip: Literal["none", "leading", "both"] = "none"
    trailing_space: bool = False
    redump: Redump = "none"
    logprobs: ListStyle = "none"
    hidden_prompt: int = 0
    other_template: bool = False
    other_tokenizer: bool = False
    cut: CutStyle = "token"
    cancel_stops: bool = False
    usage_alone: bool = False
    parameters: tuple[str, ...] = ("max_tokens", "temperature", "top_p", "tools", "tool_choice", "reasoning")

    @property
    def slug(self) -> str:
        """The base slug, which matches all endpoints of the provider."""
        return self.tag.partition("/")[0]

    @property
    def prompt_nano(self) -> int:
        """Nano-dollars a prompt token."""
        return nano(self.prompt)

    @property
    def completion_nano(self) -> int:
        """Nano-dollars a completion token."""
        return nano(self.completion)

    def matches(self, name: str) -> bool:
        """Whether a slug or a full tag of a `provider` block means this endpoint."""
        return name in (self.slug, self.tag)


class Route(msgspec.Struct, frozen=True):
    """The fields of a request's `provider` block that the router obeys; unknown ones are ignored, as the API does."""

    only: list[str] | None = None
    ignore: list[str] | None = None
    order: list[str] | None = None
    allow_fallbacks: bool = True
    quantizations: list[str] | None = None
    max_price: dict[str, float | str] | None = None
    sort: str | dict[str, Any] | None = None


def allowed(route: Route, providers: Sequence[Provider]) -> list[Provider]:
    """The endpoints that the block's hard filters leave, in the table's order."""
    left = [p for p in providers if _passes(route, p)]
    if route.order and not route.allow_fallbacks:
        left = [p for p in left if any(p.matches(name) for name in route.order)]
    return left


def _passes(route: Route, provider: Provider) -> bool:
    if route.only is not None and not any(provider.matches(name) for name in route.only):
        return False
    if any(provider.matches(name) for name in route.ignore or ()):
        return False
    if route.quantizations is not None and (provider.quantization or "unknown") not in route.quantizations:
        return False
    limits = route.max_price
    if not limits:
        return True
    per_million = {"prompt": Decimal(provider.prompt) * 10**6, "completion": Decimal(provider.completion) * 10**6}
    return all(per_million[key] <= Decimal(str(limit)) for key, limit in limits.items() if key in per_million)


def ranked(route: Route, providers: Sequence[Provider], rng: random.Random) -> list[Provider]:
    """The order in which allowed endpoints are tried: `order` first, then `sort`, else weighted by 1/price²."""
    left = sorted(providers, key=lambda p: (p.prompt_nano + p.completion_nano, p.tag))
    by = route.sort.get("by") if isinstance(route.sort, dict) else route.sort
    if by == "throughput":
        left.sort(key=lambda p: -p.tps)
    elif by == "latency":
        left.sort(key=lambda p: p.ttft)
    elif by is None and not route.order and len(left) > 1:
        weights = [0.0 if p.status < 0 else 1.0 / (p.prompt_nano + p.completion_nano) ** 2 for p in left]
        if any(weights):
            left.insert(0, left.pop(rng.choices(range(len(left)), weights)[0]))
    if by != "price":
        left.sort(key=lambda p: p.status < 0)
    places = {name: place for place, name in reversed(list(enumerate(route.order or ())))}
    last = len(places)
    left.sort(key=lambda p: min(places.get(p.slug, last), places.get(p.tag, last)))
    return left if route.allow_fallbacks else left[: max(1, len(route.order or ()))]
