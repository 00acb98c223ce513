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
_RUNS_ON = frozenset(
    {
        "amazonbedrock", "bedrock", "groq", "modal", "google", "googlevertex", "googleaistudio", "minimax", "huggingface",
        "replicate", "perplexity", "mistral", "ai21", "featherless", "lynn", "lambda", "reflection", "sambanova",
        "inflection", "zerooneai", "aionlabs", "alibaba", "nebius", "kluster", "targon", "inferencenet",
    }
)  # fmt: skip


def stops(endpoint: Endpoint) -> bool:
    """Whether ending a stream ends its bill; what is not known counts as no."""
    return listed(endpoint) is True


def listed(endpoint: Endpoint) -> bool | None:
    """Whether OpenRouter's list says that ending a stream ends its bill; None for a provider that it does not name."""
    names = {"".join(c for c in name.lower() if c.isalnum()) for name in (endpoint.slug, endpoint.provider)}
    if names & _STOPS:
        return True
    return False if names & _RUNS_ON else None
