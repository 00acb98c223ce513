"""The keys of a command: from --key-file or the environment, never from a flag; eyas.api.keys says whose goes where."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from eyas.api import keys
from eyas.config import RunConfig, Service
from eyas.engine.planning import Keys
from eyas.errors import UsageError

REMEDY = f"set {keys.VARIABLE}, or give a file with --key-file"


def key_for(service: Service, key_file: Path | None, *, needed: bool = True) -> SecretStr:
    """The key that requests there carry: from --key-file or OPENROUTER_API_KEY for OpenRouter, from `key_env` for others.

    Raises:
        UsageError: there is none though it is needed, or `key_env` names a variable that is not set.
    """
    return keys.key_for(service, _read(key_file), needed=needed, remedy=REMEDY)


def keys_of(config: RunConfig, key_file: Path | None, *, needed: bool) -> Keys:
    """The keys of a plan: the target's, which a pilot needs, and that of [fallback], which tells of its limit only."""
    return keys.keys_of(config, _read(key_file), needed=needed, remedy=REMEDY)


def openrouter_key(key_file: Path | None, *, needed: bool = True) -> SecretStr:
    """The key of a command that asks OpenRouter only, whatever RUN.toml says.

    Raises:
        UsageError: there is none though it is needed, or it is no key.
    """
    return keys.openrouter_key(_read(key_file), needed=needed, remedy=REMEDY)


def _read(key_file: Path | None) -> str | None:
    if key_file is None:
        return None
    try:
        return key_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--key-file {key_file} cannot be read ({type(error).__name__}): check the path") from None
