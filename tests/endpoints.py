"""Endpoints as the API lists them, for tests."""

from __future__ import annotations

from typing import Any

from eyas.providers import catalog
from eyas.providers.catalog import Company, Terms
from eyas.types import Endpoint

MODEL = "moonshotai/kimi-k2.5"


def row(name: str, tag: str, quantization: str | None = "int4", **more: Any) -> dict[str, Any]:
    """One endpoint as the API lists it."""
    pricing = {"prompt": more.pop("prompt", "0.0000005"), "completion": more.pop("completion", "0.000002")}
    return {
        "name": f"{name} | {MODEL}-0127", "provider_name": name, "tag": tag, "quantization": quantization, "status": 0,
        "context_length": 262_144, "max_completion_tokens": 65_536, "pricing": pricing, "uptime_last_30m": 99.1,
    } | more  # fmt: skip


def listed(*rows: dict[str, Any], slugs: dict[str, str] | None = None) -> tuple[Endpoint, ...]:
    """Endpoints of these rows."""
    companies = {name: Company(slug, Terms()) for name, slug in (slugs or {}).items()}
    return catalog.endpoints(MODEL, {"endpoints": list(rows)}, companies).endpoints
