"""RunConfig -> the text of a RUN.toml that means the same: what a run made in Python keeps in its directory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from eyas.config import RunConfig, parse
from eyas.errors import UsageError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED = {code: f"\\u{code:04X}" for code in (*range(0x20), 0x7F)}


def written(config: RunConfig) -> str:
    """RUN.toml with the keys that were set, in the order of the sections.

    Raises:
        UsageError: a value that TOML cannot say, such as None in `extra_body`.
    """
    data = config.model_dump(mode="json", exclude_unset=True, exclude={"base", "shard"})
    datasets = cast("list[dict[str, Any]]", data.pop("datasets"))
    lines = [line for name, section in data.items() if section is not None for line in _table(f"[{name}]", section)]
    lines += [line for each in datasets for line in _table("[[datasets]]", each)]
    text = "\n".join(lines) + "\n"
    read_back = parse(text, config.base / "RUN.toml", insecure_http=True)
    if _all(read_back) != _all(config):
        gone = ", ".join(_without_value("", {**data, "datasets": datasets}))
        raise UsageError(
            f"the config cannot be kept as a RUN.toml, which has no word for None or infinity: {gone}: leave those keys out of what "
            "eyas.load is given"
        )
    return text


def _all(config: RunConfig) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude={"base", "shard"})


def _table(head: str, section: Mapping[str, Any]) -> Iterator[str]:
    yield head
    # None is what most keys are without a value: where it says something else, the comparison above finds it.
    yield from (f"{_key(name)} = {_value(value)}" for name, value in section.items() if value is not None)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').translate(_ESCAPED) + '"'


def _value(value: Any) -> str:
    match value:
        case str():
            return _string(value)
        case list():
            return f"[{', '.join(map(_value, cast('list[Any]', value)))}]"
        case dict():
            fields = cast("dict[str, Any]", value).items()
            return f"{{{', '.join(f'{_key(name)} = {_value(each)}' for name, each in fields if each is not None)}}}"
        case None:
            return '""'
        case float():
            return repr(value)
        case _:
            return json.dumps(value)


def _without_value(name: str, value: Any) -> Iterator[str]:
    """The keys that are None, by dotted name."""
    if value is None:
        yield name
    elif isinstance(value, dict):
        for key, each in cast("dict[str, Any]", value).items():
            yield from _without_value(f"{name}.{key}" if name else key, each)
    elif isinstance(value, list):
        for place, each in enumerate(cast("list[Any]", value)):
            yield from _without_value(f"{name}[{place}]", each)
