"""Parquet: the canonical record of an answer, one row each: its ids and mask, what was asked, and where it comes from.

Any process packs rows as an Arrow stream; the parent writes them as row groups, packed by Zstandard. Where a row group
ends depends on the rows alone, so the same rows give the same bytes, however they were cut into chunks (with the same
version of pyarrow, which writes its name into the file).
"""

from __future__ import annotations

import importlib
import re
from array import array
from collections.abc import Iterable
from collections.abc import Sequence as Many
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from eyas.errors import UsageError
from eyas.exporters.base import Row
from eyas.exporters.messages import calls, json_text
from eyas.exporters.rows import NOWHERE
from eyas.types import NANO, Finish

SCHEMA_VERSION = 1
"""Grows when a column is renamed or removed; columns may be added under the same number."""

_GROUP_ROWS = 1000
_GROUP_IDS = 2_000_000
_LEVEL = 3
_RUN = re.compile(rb"\x00+|\x01+")
_STOP = re.compile(r"(?:<[|｜](?!tool|start|channel|message|constrain)[^|｜<>]+[|｜]>|</s>|<end_of_turn>)\Z")  # noqa: RUF001
_ENDED = (Finish.STOP, Finish.TOOL_CALLS)


class Parquet:
    """The format `parquet`."""

    name = "parquet"
    suffix = ".parquet"
    text = False
    cannot = (
        "What was asked besides messages and tools: sampling parameters and mode stand in the run's run.toml.",
        "Attempts that failed: they stay in the run's journal.",
        "A trainer that reads it as it is: SpecForge and speculators read the format rows.",
    )

    def refuses(self, _: Row, /) -> str:
        """Why an answer cannot be carried at all, or an empty string; here every answer can."""
        return ""

    def pack(self, rows: Many[Row]) -> bytes:
        """Rows as an Arrow IPC stream.

        Raises:
            UsageError: pyarrow is not installed.
        """
        arrow = _load("pyarrow")
        schema = _schema()
        found = {**_lists(arrow, rows), **_texts_and_numbers(rows)}
        columns = [_column(arrow, found[field.name], field.type) for field in schema]
        sink = arrow.BufferOutputStream()
        with _load("pyarrow.ipc").new_stream(sink, schema) as stream:
            stream.write_batch(arrow.RecordBatch.from_arrays(columns, schema=schema))
        return sink.getvalue().to_pybytes()

    def open(self, path: Path) -> ParquetShard:
        """A new shard.

        Raises:
            UsageError: pyarrow is not installed.
        """
        return ParquetShard(path)


class ParquetShard:
    """An open Parquet file; at most one row group of rows is held."""

    def __init__(self, path: Path) -> None:
        """Begin the file.

        Raises:
            UsageError: pyarrow is not installed.
        """
        self._arrow = _load("pyarrow")
        self._stream = _load("pyarrow.ipc").open_stream
        self._file = _load("pyarrow.parquet").ParquetWriter(
            str(path), _schema(), compression="zstd", compression_level=_LEVEL
        )
        self._held: list[Any] = []
        self._rows = self._ids = 0

    def write(self, chunk: bytes) -> None:
        """Append one packed chunk."""
        with self._stream(chunk) as stream:
            table = stream.read_all()
        start = 0
        for end, length in enumerate(table.column("length").to_pylist(), 1):
            self._rows += 1
            self._ids += length
            if self._rows == _GROUP_ROWS or self._ids >= _GROUP_IDS:
                self._held.append(table.slice(start, end - start))
                self._flush()
                start = end
        if start < table.num_rows:
            self._held.append(table.slice(start))

    def close(self) -> None:
        """Write what is held, and finish the file."""
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._held:
            # One chunk a column: where chunks meet would show in the pages of the file.
            group = self._arrow.concat_tables(self._held).combine_chunks()
            self._file.write_table(group, row_group_size=group.num_rows)
        self._held, self._rows, self._ids = [], 0, 0


def mask_runs(mask: bytes) -> str:
    """A mask of bytes 0 and 1 as lengths of runs, the first of 0s: `2,3,1` is 001110, `0,2` is 11.

    It is TorchSpec's packed form (`torchspec/data/utils.py`, `pack_loss_mask`).
    """
    lengths = [len(run) for run in _RUN.findall(mask)]
    return ",".join(map(str, [0, *lengths] if mask[:1] == b"\1" else lengths))


def stop_supervised(row: Row) -> bool:
    """Whether the row ends with the stop token, supervised, as far as its spelling shows.

    The model finished, the last id has mask 1, and the text ends like a stop token: rows that --max-length cut end with
    something else, such as a marker of tool calls.
    """
    ended, mask = row.record.completion.finish in _ENDED, row.sequence.loss_mask
    return ended and bool(mask) and mask[-1] == 1 and _STOP.search(row.text) is not None


def _load(module: str) -> Any:
    """A module of pyarrow: it is large, and only this format needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"--format parquet needs pyarrow ({error}): pip install 'eyas[parquet]'.") from error


@cache
def _schema() -> Any:
    """The columns; those that may be null say so in docs/formats.md."""
    pa = _load("pyarrow")
    call = pa.struct({"name": pa.string(), "arguments": pa.string()})
    ids = pa.list_(pa.int32())
    return pa.schema(
        {
            "schema_version": pa.int32(),
            **dict.fromkeys(("id", "primary_id", "dataset"), pa.string()),
            **dict.fromkeys(("turn", "sample"), pa.int32()),
            "source": pa.struct({"file": pa.string(), "line": pa.int32()}),
            **dict.fromkeys(("messages", "tools", "reasoning", "content"), pa.string()),
            "tool_calls": pa.list_(pa.struct({"id": pa.string(), "type": pa.string(), "function": call})),
            **dict.fromkeys(("finish", "cut"), pa.string()),
            **dict.fromkeys(("prompt_ids", "completion_ids", "input_ids"), ids),
            "loss_mask": pa.list_(pa.int8()),
            "mask_runs": pa.string(),
            **dict.fromkeys(("length", "supervised"), pa.int32()),
            "eot_supervised": pa.bool_(),
            **dict.fromkeys(("label", "reason", "text"), pa.string()),
            **dict.fromkeys(("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens"), pa.int32()),
            **dict.fromkeys(("provider", "tag", "model", "generation_id"), pa.string()),
            "usd": pa.float64(),
            "attempt": pa.int32(),
            **dict.fromkeys(("first_token", "seconds"), pa.float64()),
        }
    )


def _lists(arrow: Any, rows: Many[Row]) -> dict[str, Any]:
    """The columns of ids and the mask, made without an object for each number."""
    sequences = [row.sequence for row in rows]
    masks = [bytes(sequence.loss_mask) for sequence in sequences]
    whole = [sequence.prompt_ids + sequence.completion_ids for sequence in sequences]
    parts = {
        "prompt_ids": [sequence.prompt_ids for sequence in sequences],
        "completion_ids": [sequence.completion_ids for sequence in sequences],
        "input_ids": whole,
    }
    joined = b"".join(masks)
    values = arrow.Array.from_buffers(arrow.int8(), len(joined), [None, arrow.py_buffer(joined)])
    return {
        **{name: _ids(arrow, each) for name, each in parts.items()},
        "loss_mask": arrow.ListArray.from_arrays(_offsets(arrow, masks), values),
        "mask_runs": list(map(mask_runs, masks)),
        "length": list(map(len, masks)),
        "supervised": [mask.count(1) for mask in masks],
    }


def _ids(arrow: Any, many: list[tuple[int, ...]]) -> Any:
    return arrow.ListArray.from_arrays(_offsets(arrow, many), _int32(arrow, chain.from_iterable(many)))


def _offsets(arrow: Any, many: Iterable[Many[int]]) -> Any:
    return _int32(arrow, accumulate(map(len, many), initial=0))


def _int32(arrow: Any, numbers: Iterable[int]) -> Any:
    values = array("i", numbers)
    return arrow.Array.from_buffers(arrow.int32(), len(values), [None, arrow.py_buffer(values)])


def _column(arrow: Any, values: Any, kind: Any) -> Any:
    return arrow.array(values, kind) if isinstance(values, list) else values


def _texts_and_numbers(rows: Many[Row]) -> dict[str, list[Any]]:
    """All other columns, as lists."""
    made = [_cells(row) for row in rows]
    return {name: [cells[name] for cells in made] for name in (made[0] if made else ())}


def _cells(row: Row) -> dict[str, Any]:
    """What one row says; what is not known is None."""
    record, completion = row.record, row.record.completion
    work, prompt, usage = record.work, record.prompt, completion.usage
    source = prompt.source or NOWHERE
    return {
        "schema_version": SCHEMA_VERSION,
        "id": row.sequence.record_id,
        "primary_id": work.primary,
        "dataset": work.dataset,
        "turn": work.turn,
        "sample": work.sample,
        "source": {"file": source.file, "line": source.line},
        "messages": json_text(prompt.messages),
        "tools": json_text(prompt.tools),
        "reasoning": completion.reasoning,
        "content": completion.content,
        "tool_calls": calls(completion),
        "finish": completion.finish or "",
        "cut": completion.cut.kind if completion.cut else "",
        "eot_supervised": stop_supervised(row),
        "label": row.sequence.label,
        "reason": row.sequence.reason,
        "text": row.text,
        "prompt_tokens": usage and usage.prompt_tokens,
        "completion_tokens": usage and usage.completion_tokens,
        "reasoning_tokens": usage and usage.reasoning_tokens,
        "cached_tokens": usage and usage.cached_tokens,
        "provider": completion.provider,
        "tag": record.tag,
        "model": completion.model,
        "generation_id": completion.generation_id,
        "usd": None if record.cost is None else record.cost / NANO,
        "attempt": record.attempt,
        "first_token": completion.first_token,
        "seconds": completion.seconds,
    }
