"""A data set of the Hugging Face hub, streamed: `hub:org/name@revision:split`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from eyas.errors import UsageError
from eyas.prompts.source.cells import measured, plain
from eyas.prompts.source.row import TOO_DEEP, BadRow, BrokenSource, Rows, too_deep

SCHEME = "hub:"
_SPEC = re.compile(
    r"hub:(?P<repo>[\w.-]+/[\w.-]+)(?:/(?P<config>[^@:\s]+))?(?:@(?P<revision>[^:\s]+))?(?::(?P<split>\S+))?"
)
_ERRORS = (OSError, ValueError, RuntimeError, LookupError, TypeError, NotImplementedError, ImportError)


class HubSet(msgspec.Struct, frozen=True):
    """A split of a data set on the hub, at a revision; its configuration is needed only where there are several."""

    repo: str
    config: str | None
    revision: str | None
    split: str


def parse(source: str) -> HubSet:
    """Reads `hub:org/name`, with `/config`, `@revision` and `:split` where wanted; the split is train if none is named.

    Raises:
        UsageError: it is not written so.
    """
    found = _SPEC.fullmatch(source)
    if not found:
        raise UsageError(f"{source}: is no data set of the hub: write hub:org/name, hub:org/name@revision:split")
    return HubSet(found["repo"], found["config"], found["revision"], found["split"] or "train")


def hub_rows(source: str) -> Rows:
    """The rows of a data set on the hub, from 1; only what is read is fetched.

    Raises:
        UsageError: `datasets` is not installed, or the source is not written as it must be.
        BrokenSource: the hub does not give the set or the split.
    """
    wanted = parse(source)
    try:
        library: Any = importlib.import_module("datasets")
    except ImportError as error:
        raise UsageError(f"{source}: reading from the hub needs datasets ({error}): pip install 'eyas[hub]'") from error
    for number, record in enumerate(_records(library, wanted), 1):
        data = plain(record)
        if too_deep(data):
            yield BadRow(source, number, TOO_DEEP, "")
        else:
            yield measured(data, source, number)[0]


def _records(library: Any, wanted: HubSet) -> Iterator[dict[str, Any]]:
    errors = (*_ERRORS, *_own_errors(library))
    try:
        found = library.load_dataset(
            wanted.repo, wanted.config, revision=wanted.revision, split=wanted.split, streaming=True
        )
        yield from cast("Iterator[dict[str, Any]]", iter(found))
    except errors as error:
        raise BrokenSource(explain(wanted, error)) from error


def _own_errors(library: Any) -> tuple[type[Exception], ...]:
    """What `datasets` and the client below it raise beside Python's own errors, where they are there."""
    own = [getattr(getattr(library, "exceptions", None), "DatasetsError", None)]
    try:
        own.append(importlib.import_module("httpx").HTTPError)
    except ImportError:
        own.append(None)
    return tuple(each for each in own if each is not None)


def explain(wanted: HubSet, error: Exception) -> str:
    """Why the hub did not give a set, and what to do, in one sentence."""
    said = " ".join(str(error).split())[:300] or type(error).__name__
    names = {each.__name__ for each in type(error).__mro__}
    if "gated" in said.lower() or "GatedRepoError" in names:
        remedy = f"accept its terms on https://huggingface.co/datasets/{wanted.repo}, then log in (hf auth login)"
        return f"is gated ({said}): {remedy}"
    if "ConnectionError" in names or "HTTPError" in names or "couldn't reach" in said.lower():
        return f"the hub cannot be reached ({said}): check the network, or fetch the files and name their folder"
    if "config name" in said.lower() or "builderconfig" in said.lower():
        return f"a configuration must be named ({said}): write hub:{wanted.repo}/CONFIG:{wanted.split}"
    if "split" in said.lower():
        return f"has no split {wanted.split!r} ({said}): name one of its splits after the last colon"
    if "FileNotFoundError" in names:
        return (
            f"is not to be had from the hub ({said}): check name and revision; for a private set log in (hf auth login)"
        )
    return f"the hub's data cannot be read ({said}): fetch the files and name their folder"
