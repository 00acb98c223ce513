"""Whose key goes where: OpenRouter's to OpenRouter only, a server's own to that server only."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import SecretStr

from eyas.cli import start
from eyas.config import RunConfig, Service
from eyas.engine.planning import Keys
from eyas.errors import UsageError


def key_for(service: Service, key_file: Path | None, *, needed: bool = True) -> SecretStr:
    """The key that requests there carry: from --key-file or OPENROUTER_API_KEY for OpenRouter, from `key_env` for others.

    Raises:
        UsageError: there is none though it is needed, or `key_env` names a variable that is not set.
    """
    if service.bills and (key_file is not None or service.key_env is None):
        return start.key(key_file, needed=needed)
    name = service.key_variable
    if not name:
        return SecretStr("")
    found = os.environ.get(name, "").strip()
    if not found and needed:
        raise UsageError(f"key_env: the environment variable {name} is not set: set it, or remove key_env")
    return SecretStr(found)


def keys_of(config: RunConfig, key_file: Path | None, *, needed: bool) -> Keys:
    """The keys of a plan: the target's, which a pilot needs, and that of [fallback], which tells of its limit only."""
    other = SecretStr("") if config.fallback is None else key_for(config.fallback, key_file, needed=False)
    return Keys(key_for(config.target, key_file, needed=needed), other)
