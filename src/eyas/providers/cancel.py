"""Whose generations stop, and cost no more, when a client ends its stream.

Source: https://openrouter.ai/docs/api-reference/streaming (stream cancellation), read 2026-08; the list is old and not
complete. A provider on neither of its lists is taken to run on.
"""

from __future__ import annotations

from eyas.types import Endpoint

_STOPS = frozenset(
    {
        "openai", "azure", "anthropic", "fireworks", "mancer", "recursal", "anyscale", "lepton", "octoai", "novita",
        "deepinfra", "together", "cohere", "hyperbolic", "infermatic", "avian", "xai", "cloudflare", "sfcompute",
        "nineteen", "liquid", "friendli", "chutes", "deepseek",
    }
)  # fmt: skip


def stops(endpoint: Endpoint) -> bool:
    """Whether ending a stream ends its bill."""
    names = (endpoint.slug, endpoint.provider)
    return any("".join(c for c in name.lower() if c.isalnum()) in _STOPS for name in names)
