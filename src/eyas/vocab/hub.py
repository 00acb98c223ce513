"""Find the folder of a tokenizer: on disk, or on the hub."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from eyas.errors import UsageError

_HUB_ID = re.compile(r"(?P<repo>[\w-][\w.-]*/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_HUB_FILES = ["tiktoken.model", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "*.jinja"]


def resolve(spec: str) -> Path:
    """The folder of a tokenizer given as a local folder, or as a hub id with an optional @revision.

    Raises:
        UsageError: there is no such folder, or the hub did not give it.
    """
    folder = Path(spec).expanduser()
    if folder.is_dir():
        return folder
    match = _HUB_ID.fullmatch(spec)
    if match is None:
        raise UsageError(f"tokenizer {spec!r} is neither a folder nor a hub id: use a path, or org/name[@revision].")
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        raise UsageError(
            f"tokenizer {spec!r} is no local folder, and loading it from the hub needs: pip install 'eyas[hub]'"
        ) from None
    import httpx  # noqa: PLC0415  # the hub's client raises its errors

    try:
        found = hub.snapshot_download(match["repo"], revision=match["revision"], allow_patterns=_HUB_FILES)
    except (OSError, ValueError, RuntimeError, httpx.HTTPError) as error:
        raise UsageError(
            f"tokenizer {spec!r} could not be loaded from the hub ({error}): check the id and the network, "
            "or give a local folder as [target] tokenizer."
        ) from error
    return Path(found)
