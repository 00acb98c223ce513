"""Error replies before any answer: envelopes, pages and resets as real traffic and the API's pages show them (pure)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from eyas.sim.ask import Chat
from eyas.sim.billing import Refusal
from eyas.sim.chunks import envelope
from eyas.sim.providers import Provider
from eyas.sim.reply import Action, Reply, body

_MESSAGES = {
    408: "Request timed out",
    500: "Internal Server Error",
    502: "Provider returned error",
    504: "The operation was aborted",
}


def refused(refusal: Refusal) -> Reply:
    """The account cannot pay for it."""
    metadata: dict[str, Any] = {"limit_source": refusal.source, "remedy_hint": refusal.message}
    if refusal.reason:
        metadata["reason"] = refusal.reason
    headers = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
    return body(refusal.status, envelope(refusal.status, refusal.message, metadata), headers=headers, wait=0.05)


def unrouted(chat: Chat, providers: Sequence[Provider]) -> Reply:
    """No endpoint is left of the model's after the request's filters."""
    slugs = sorted({provider.slug for provider in providers})
    asked = [*(chat.provider.only or []), *(chat.provider.order or [])]
    message = "No allowed providers are available for the selected model."
    if chat.provider.only:
        message += (
            f" Providers serving {chat.model}: {', '.join(slugs)}, but your request's provider.only preference permits "
            f"only: {', '.join(chat.provider.only)}."
        )
    metadata = {"available_providers": slugs, "requested_providers": asked}
    return body(404, envelope(404, message, metadata), wait=0.05)


def too_long(context: int, prompt: int, limit: int) -> Reply:
    """The prompt and max_tokens do not fit any endpoint's window."""
    message = (
        f"This endpoint's maximum context length is {context} tokens. However, you requested about {prompt + limit} tokens "
        f"({prompt} of text input, {limit} in the output). Please reduce the length of either one."
    )
    return body(400, envelope(400, message, {"error_type": "context_length_exceeded"}), wait=0.05)


def upstream(
    kind: str, provider: Provider, model: str, rng: random.Random, retry_after: tuple[int, int] = (1, 3)
) -> Reply:
    """The provider's own trouble before the headers: rate_limit, unavailable, server_error, or "requests", too many a second.

    Half of them say to come back after so many seconds, from and to; the last one says 1.
    """
    metadata: dict[str, Any] = {"provider_name": provider.name, "is_byok": False}
    headers = {"Retry-After": str(rng.randint(*retry_after))} if rng.random() < 0.5 else {}
    if kind == "requests":
        headers = {"Retry-After": "1"}
    wait = rng.uniform(0.05, 0.4)
    if kind in ("rate_limit", "requests"):
        metadata["raw"] = (
            f"{model} is temporarily rate-limited upstream. Please retry shortly, or add your own key to accumulate "
            "your rate limits"
        )
        return body(429, envelope(429, "Provider returned error", metadata), wait=wait, headers=headers)
    if kind == "unavailable":
        metadata["error_type"] = "provider_overloaded"
        return body(503, envelope(503, "Provider temporarily unavailable", metadata), wait=wait, headers=headers)
    status = rng.choice(sorted(_MESSAGES))
    metadata["raw"] = {"error": {"message": "upstream failed"}} if rng.random() < 0.5 else "upstream failed"
    return body(status, envelope(status, _MESSAGES[status], metadata), wait=wait)


def page(rng: random.Random, wait: float) -> Reply:
    """A gateway's HTML page: the provider may have run, and there is no generation id."""
    status, words = rng.choice([(502, "502: Bad gateway"), (524, "524: A timeout occurred")])
    html = f"<!DOCTYPE html>\n<html><head><title>openrouter.ai | {words}</title></head><body>{words}</body></html>\n"
    return body(status, html.encode(), wait=wait, headers={"Content-Type": "text/html; charset=UTF-8"})


def reset(wait: float) -> Reply:
    """A connection that is reset before any header."""
    return Reply(0, iter([(0.0, Action.RESET)]), wait=wait)
