"""What a scenario is: a market, the lengths of its answers, its speeds and the rates of its faults."""

from __future__ import annotations

from typing import Literal

import msgspec

from eyas.sim.providers import CutStyle, Provider
from eyas.sim.scenarios.kimi import PROVIDERS


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """Rates from 0 to 1 at which a chat request meets each fault; at most one befalls a request.

    Attributes:
        rate_limit: 429 of the provider, half of them with Retry-After.
        unavailable: 503.
        server_error: a JSON envelope with 500, 502, 504 or 408.
        budget_402: 402 of the in-flight budget, with Retry-After.
        html: a gateway's HTML page, 502 or 524; the provider may have run on.
        reset: TCP reset before the headers; the provider may have run on.
        error_200: an error envelope inside 200 before any token.
        early_cut: after the headers, before any token, the stream ends or is reset.
        error_chunk: an error amid the tokens, with finish null and usage; what ran is billed.
        finish_error: finish_reason "error" amid the tokens; free.
        empty_choices: 200 with `choices: []`.
        empty_answer: finish "stop" and zero completion tokens; free.
        cut_close, cut_reset: the stream ends or is reset amid the tokens.
        hang: silence amid the tokens, until the client goes away.
        stall: silence of `stall_seconds` amid the tokens, then the stream goes on.
        no_usage, no_done: a whole answer without its usage, or without `[DONE]`.
        misserved: another endpoint than allowed serves it.
        wrong_mode: it thinks where it must not, or the other way round.
    """

    rate_limit: float = 0.0
    unavailable: float = 0.0
    server_error: float = 0.0
    budget_402: float = 0.0
    html: float = 0.0
    reset: float = 0.0
    error_200: float = 0.0
    early_cut: float = 0.0
    error_chunk: float = 0.0
    finish_error: float = 0.0
    empty_choices: float = 0.0
    empty_answer: float = 0.0
    cut_close: float = 0.0
    cut_reset: float = 0.0
    hang: float = 0.0
    stall: float = 0.0
    no_usage: float = 0.0
    no_done: float = 0.0
    misserved: float = 0.0
    wrong_mode: float = 0.0


class Outage(msgspec.Struct, frozen=True):
    """A provider answers 503 from `start` to `end`, seconds since the world began."""

    tag: str
    start: float
    end: float


class Capacity(msgspec.Struct, frozen=True):
    """A provider has only this share of its slots from `start` to `end`, seconds since the world began."""

    tag: str
    start: float
    end: float
    share: float


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """The run that a scenario is about, for a rehearsal without a RUN.toml.

    Attributes:
        datasets: names of its prompt sets; `prompts` of `prompt_tokens` tokens each stand in every one of them.
        output_tokens: quota of each set; None: an answer to every prompt.
        max_tokens, in_flight, usd, mode: as RUN.toml has them.
    """

    datasets: tuple[str, ...] = ("A",)
    prompts: int = 5_000
    prompt_tokens: int = 200
    output_tokens: int | None = None
    max_tokens: int = 8192
    in_flight: int = 1000
    usd: float = 100.0
    mode: Literal["strict", "metered"] = "strict"


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a world but its seed and its clock; change it with `msgspec.structs.replace`.

    Attributes:
        length_median, length_sigma, length_min, length_max: tokens of an answer, lognormal, before max_tokens. Text ends
            with a whole sentence, so an answer is up to 80 tokens longer; only max_tokens is exact.
        thinking_share: the share of an answer that is reasoning.
        tool_share: how often an answer to a request with tools calls them.
        compact_share: how often tool arguments are sampled without spaces.
        drift: the share of answers in which some tokens are a split that the tokenizer would not choose.
        speed: factor on every provider's tokens a second; `tps` and `ttft` (seconds) replace the providers' own.
        slots: replaces every provider's own; 0 is no limit.
        capacities: times during which a provider has fewer slots.
        retry_after: seconds, from and to, in the Retry-After that half of the refusals of a provider carry.
        cut: replaces every provider's own way to cut the stream.
        generation_delay: seconds after the end during which /generation answers 404.
        keepalive: seconds between whitespace or comments while no token has come.
        comments: the chance of a comment line at a piece amid the stream.
        keys: the keys that are accepted; empty accepts any. `management_keys` may read the credits.
        balance_usd, key_limit_usd: when spent, 402 (or `key_limit_status`); None is no limit.
        in_flight_budget_usd: what requests in flight may hold together; None is no limit.
        settle_seconds: how long the cost of an ended request still counts in that budget.
        echo_permaslug: answers name the dated slug of the model.
        cache_ttl: seconds that the response cache keeps an answer.
        keep_ids: the books keep the sampled ids.
        workload: the run that a rehearsal without a RUN.toml plays.
    """

    name: str = "clean"
    providers: tuple[Provider, ...] = PROVIDERS
    model: str = "moonshotai/kimi-k2.5"
    permaslug: str = "moonshotai/kimi-k2.5-0127"
    length_median: float = 1200.0
    length_sigma: float = 0.8
    length_min: int = 1
    length_max: int = 100_000
    thinking_share: float = 0.65
    tool_share: float = 0.5
    compact_share: float = 0.0
    drift: float = 0.05
    speed: float = 1.0
    tps: float | None = None
    ttft: float | None = None
    slots: int | None = None
    cut: CutStyle | None = None
    faults: Faults = Faults()
    outages: tuple[Outage, ...] = ()
    capacities: tuple[Capacity, ...] = ()
    retry_after: tuple[int, int] = (1, 3)
    stall_seconds: float = 0.8
    generation_delay: float = 0.6
    keepalive: float = 0.25
    comments: float = 0.002
    keys: tuple[str, ...] = ()
    management_keys: tuple[str, ...] = ()
    balance_usd: float | None = None
    key_limit_usd: float | None = None
    key_limit_status: int = 403
    in_flight_budget_usd: float | None = None
    settle_seconds: float = 2.0
    echo_permaslug: bool = True
    cache_ttl: float = 300.0
    keep_ids: bool = True
    workload: Workload = Workload()
