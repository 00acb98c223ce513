"""What commands share before their work begins: the key, open files, the event loop."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from pydantic import SecretStr

from eyas.engine.checkup import SPARE_FILES
from eyas.errors import UsageError
from eyas.machine import run_loop

__all__ = ["allow_open_files", "key", "run_loop"]


def key(key_file: Path | None, *, needed: bool = True) -> SecretStr:
    """The API key, from a file or from OPENROUTER_API_KEY; never from a flag.

    Raises:
        UsageError: there is none.
    """
    if key_file is not None:
        try:
            found = key_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--key-file {key_file} cannot be read ({type(error).__name__}): check the path") from None
    else:
        found = os.environ.get("OPENROUTER_API_KEY", "").strip()
    if needed and not found:
        raise UsageError("there is no API key: set OPENROUTER_API_KEY, or give a file with --key-file")
    if any(not character.isprintable() or character.isspace() for character in found):
        raise UsageError("the API key holds spaces or control characters: give the key alone")
    return SecretStr(found)


def allow_open_files(in_flight: int) -> None:
    """Raise the limit of open files as far as may be, and refuse what it does not carry.

    Raises:
        UsageError: fewer files may be open than requests in flight need.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    if soft != resource.RLIM_INFINITY and in_flight > soft - SPARE_FILES:
        raise UsageError(
            f"in_flight = {in_flight} needs {in_flight + SPARE_FILES} open files, {soft} are allowed: raise the limit "
            f"(ulimit -Hn as root, or /etc/security/limits.conf), or set [limits] in_flight = {max(1, soft - SPARE_FILES)}"
        )
