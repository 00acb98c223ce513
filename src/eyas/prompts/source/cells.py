"""Values of columns as JSON has them: what is null in a row or a struct is left out, since columns fill in what is missing."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from enum import Enum
from itertools import pairwise
from typing import Any, cast

from eyas.prompts.source.row import MAX_ROW, NOT_UTF8, TEXT_PREFIX, TOO_LONG, BadRow, Row

LEAST = 256
"""What a row counts at least: an object of no columns takes that much memory too."""


class _Unusable(Enum):
    """What stands in place of a text that spoils its row; the value is the reason."""

    GARBLED = NOT_UTF8
    LONG = TOO_LONG


def batch_rows(arrow: Any, batch: Any) -> list[dict[str, Any]]:
    """The rows of a record batch.

    Text that stands many times in a dictionary column is one object, so that a small file cannot unfold in memory.
    """
    names = batch.schema.names
    columns = [values(arrow, column) for column in batch.columns]
    return [
        {name: value for name, value in zip(names, cells, strict=True) if value is not None}
        for cells in (zip(*columns, strict=True) if columns else ((),) * batch.num_rows)
    ]


def values(arrow: Any, array: Any) -> list[Any]:
    """The values of an Arrow array, null as None."""
    kind, types = array.type, arrow.types
    if types.is_dictionary(kind):
        return _shared(arrow, array)
    if types.is_struct(kind):
        return _structs(arrow, array)
    if types.is_map(kind) or types.is_list(kind) or types.is_large_list(kind):
        return _lists(arrow, array)
    if isinstance(kind, arrow.BaseExtensionType):
        return values(arrow, array.storage)
    convert = next((convert for test, convert in _LEAVES.items() if getattr(types, test)(kind)), None)
    return convert(arrow, array) if convert else [plain(value) for value in array.to_pylist()]


def plain(value: Any) -> Any:
    """A Python value as JSON has it: numbers that are none and bytes that are no text as None, dates as text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        items = ((str(key), plain(item)) for key, item in cast("dict[Any, Any]", value).items())
        return {key: item for key, item in items if item is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, bytes):
        return _text(value)
    if hasattr(value, "tolist"):  # an array or a number of numpy
        return plain(value.tolist())
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value) if type(value).__name__ in {"Decimal", "UUID"} else None


def measured(data: dict[str, Any], file: str, line: int) -> tuple[Row | BadRow, int]:
    """The row, unless it is too long or garbled, and about how many bytes of text it is."""
    size, stack = LEAST, list[Any](data.values())
    while stack and size <= MAX_ROW:
        node = stack.pop()
        if type(node) is str:
            size += len(node)
        elif type(node) is dict:
            size += sum(map(len, cast("dict[str, Any]", node)))
            stack += node.values()
        elif type(node) is list:
            stack += cast("list[Any]", node)
            size += len(cast("list[Any]", node))
        elif isinstance(node, _Unusable):
            return BadRow(file, line, node.value, _start(data)), size
        else:
            size += 8
    return (BadRow(file, line, TOO_LONG, _start(data)) if size > MAX_ROW else Row(data, file, line)), size


def _start(data: dict[str, Any]) -> str:
    return next((value for value in data.values() if type(value) is str), "")[:TEXT_PREFIX]


def _shared(arrow: Any, array: Any) -> list[Any]:
    used = array.indices.unique()
    known = dict(zip(used.to_pylist(), values(arrow, array.dictionary.take(used)), strict=True))
    return [known[index] for index in array.indices.to_pylist()]


def _structs(arrow: Any, array: Any) -> list[Any]:
    names = [field.name for field in array.type]
    fields = [values(arrow, field) for field in array.flatten()]
    made = [
        {name: value for name, value in zip(names, cells, strict=True) if value is not None}
        for cells in (zip(*fields, strict=True) if fields else ((),) * len(array))
    ]
    return _nulled(array, made)


def _lists(arrow: Any, array: Any) -> list[Any]:
    offsets = array.offsets.to_pylist()
    start = offsets[0] if offsets else 0
    length = offsets[-1] - start if offsets else 0
    if arrow.types.is_map(array.type):
        keys = values(arrow, array.keys.slice(start, length))
        items = values(arrow, array.items.slice(start, length))
        pairs = [(key if isinstance(key, str) else str(key), item) for key, item in zip(keys, items, strict=True)]
        made: list[Any] = [dict(pairs[at - start : to - start]) for at, to in pairwise(offsets)]
    else:
        inner = values(arrow, array.values.slice(start, length))
        made = [inner[at - start : to - start] for at, to in pairwise(offsets)]
    return _nulled(array, made)


def _nulled(array: Any, made: list[Any]) -> list[Any]:
    if not array.null_count:
        return made
    return [value if valid else None for value, valid in zip(made, array.is_valid().to_pylist(), strict=True)]


def _strings(arrow: Any, array: Any) -> list[Any]:
    if array.nbytes <= MAX_ROW:
        return _all_strings(arrow, array)
    # One may be longer than a row: such are not made at all.
    lengths = importlib.import_module("pyarrow.compute").binary_length(array).to_pylist()
    return [
        _Unusable.LONG if length and length > MAX_ROW else _all_strings(arrow, array.slice(at, 1))[0]
        for at, length in enumerate(lengths)
    ]


def _all_strings(arrow: Any, array: Any) -> list[Any]:
    try:
        return array.to_pylist()
    except UnicodeDecodeError:
        raw = array.cast(arrow.large_binary()).to_pylist()
    texts = [None if value is None else _text(value) for value in raw]
    return [
        _Unusable.GARBLED if text is None and value is not None else text
        for text, value in zip(texts, raw, strict=True)
    ]


def _bytes(arrow: Any, array: Any) -> list[Any]:
    """Bytes that are text as text; pictures and the like as null."""
    large = arrow.types.is_large_binary(array.type)
    texts = array.view(arrow.large_string()) if large else array.cast(arrow.binary()).view(arrow.string())
    return [None if isinstance(value, _Unusable) else value for value in _strings(arrow, texts)]


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _floats(_: Any, array: Any) -> list[Any]:
    return [None if value is None or not math.isfinite(value) else value for value in array.to_pylist()]


def _as_text(arrow: Any, array: Any) -> list[Any]:
    return array.cast(arrow.string()).to_pylist()


_LEAVES: dict[str, Callable[[Any, Any], list[Any]]] = {
    "is_string": _strings,
    "is_large_string": _strings,
    "is_boolean": lambda _, array: array.to_pylist(),
    "is_integer": lambda _, array: array.to_pylist(),
    "is_floating": _floats,
    "is_binary": _bytes,
    "is_large_binary": _bytes,
    "is_fixed_size_binary": _bytes,
    "is_timestamp": _as_text,
    "is_date": _as_text,
    "is_time": _as_text,
    "is_decimal": _as_text,
    "is_duration": lambda arrow, array: array.cast(arrow.int64()).to_pylist(),
}
