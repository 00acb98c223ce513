"""Whose key goes where: OpenRouter's to OpenRouter only, a server's own to that server only."""

from __future__ import annotations

import os

from pydantic import SecretStr

from eyas.config import RunConfig, Service
from eyas.engine.planning import Keys
from eyas.errors import UsageError

VARIABLE = "OPENROUTER_API_KEY"
IN_PYTHON = f"set {VARIABLE}, or give key="
"""What to do where there is no key."""

Key = str | SecretStr
"""A key; `SecretStr` does not show it where it is printed."""


def key_for(service: Service, given: Key | None, *, needed: bool = True, remedy: str = IN_PYTHON) -> SecretStr:
    """The key that requests there carry: for OpenRouter `given`, else OPENROUTER_API_KEY; for others that of `key_env`.

    Raises:
        UsageError: there is none though it is needed, or `key_env` names a variable that is not set.
    """
    if service.bills and (given is not None or service.key_env is None):
        return openrouter_key(given, needed=needed, remedy=remedy)
    name = service.key_variable
    if not name:
        return SecretStr("")
    found = os.environ.get(name, "").strip()
    if not found and needed:
        raise UsageError(f"key_env: the environment variable {name} is not set: set it, or remove key_env")
    return SecretStr(found)


def keys_of(config: RunConfig, given: Key | None, *, needed: bool, remedy: str = IN_PYTHON) -> Keys:
    """The keys of a plan: the target's, and that of [fallback], which tells of its limit only."""
    other = SecretStr("") if config.fallback is None else key_for(config.fallback, given, needed=False)
    return Keys(key_for(config.target, given, needed=needed, remedy=remedy), other)


def openrouter_key(given: Key | None, *, needed: bool = True, remedy: str = IN_PYTHON) -> SecretStr:
    """The key `given`, else that of OPENROUTER_API_KEY.

    Raises:
        UsageError: there is none though it is needed, or it is no key.
    """
    text = given.get_secret_value() if isinstance(given, SecretStr) else given
    key = (os.environ.get(VARIABLE, "") if text is None else text).strip()
    if needed and not key:
        raise UsageError(f"there is no API key: {remedy}")
    if any(not character.isprintable() or character.isspace() for character in key):
        raise UsageError("the API key holds spaces or control characters: give the key alone")
    return SecretStr(key)
