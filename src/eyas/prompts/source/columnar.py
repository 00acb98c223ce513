"""Parquet and Arrow: read by small batches, each looked at before it is unpacked."""

from __future__ import annotations

import importlib
import mmap
from collections.abc import Iterator
from typing import Any, BinaryIO

from eyas.errors import UsageError
from eyas.prompts.source import ipc, pages
from eyas.prompts.source.cells import batch_rows, measured
from eyas.prompts.source.formats import Columnar
from eyas.prompts.source.row import MAX_DEPTH, MAX_ROW, BrokenSource, Rows

_BATCH = 16 << 20
"""Bytes of rows that a batch should have, unpacked."""

_MOST_ROWS = 1024
_AT_ONCE = 512 << 20
"""Bytes that the pages of all columns, or the buffers of a record batch, may unfold to at one time."""

FREE = 256 << 20
RATIO = 1000
"""A source may unfold to this many times its bytes, and to `FREE` bytes in any case: text of questions packs 20 times."""

_GROUP_FREE = 64 << 20
"""The same for a row group or record batch, before any of it is unpacked."""

_BUFFER = 1 << 20


def columnar_rows(file: BinaryIO, name: str, kind: Columnar) -> Rows:
    """The rows of a Parquet or Arrow file; `line` is the row's number in it, from 1.

    Raises:
        UsageError: pyarrow is not installed.
        BrokenSource: the file is damaged, or unfolds to more than its size can be meant for.
    """
    arrow = load_arrow(name, kind)
    size = file.seek(0, 2)
    file.seek(0)
    number, unfolded = 0, 0
    try:
        batches = _parquet(file) if kind is Columnar.PARQUET else _arrow(arrow, file, kind)
        for batch in batches:
            made = batch_rows(arrow, batch)
            del batch  # or it would stay while the next one is unpacked
            for data in made:
                number += 1
                row, length = measured(data, name, number)
                unfolded += length
                if unfolded > max(FREE, RATIO * size):
                    raise BrokenSource(_bomb(unfolded, size))
                yield row
    except (arrow.ArrowException, OSError, ValueError, KeyError, IndexError, NotImplementedError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BrokenSource(
            f"its {kind.value} data break off or are damaged ({reason}): fetch or write the file again"
        ) from error


def load_arrow(name: str, kind: Columnar) -> Any:
    """The module pyarrow: it is large, and only sources of columns need it.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise UsageError(
            f"{name}: is {kind.value}, and reading it needs pyarrow ({error}): pip install 'eyas[parquet]'"
        ) from error


def _parquet(file: BinaryIO) -> Iterator[Any]:
    parquet: Any = importlib.import_module("pyarrow.parquet")
    groups = pages.groups(file)
    schema = parquet.ParquetFile(file).schema
    leaves = [schema.column(index) for index in range(len(schema.names))]
    # Text comes as a dictionary and its indices, as it stands in the file: unfolded, 900 bytes may be 20 GB.
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"]
    table = parquet.ParquetFile(file, read_dictionary=texts, buffer_size=_BUFFER, pre_buffer=False)
    _check_depth(table.schema_arrow)
    for index, group in enumerate(groups):
        if group.rows > 0:
            some = _batch_rows(pages.load(file, group), group.rows, index + 1)
            yield from table.iter_batches(batch_size=some, row_groups=[index], use_threads=False)


def _batch_rows(load: pages.Load, rows: int, group: int) -> int:
    """How many rows of a row group are unpacked together."""
    _check(load.packed, load.unpacked, load.pages, f"row group {group}")
    row = max(load.unpacked // rows, load.value, 1)
    if row > MAX_ROW and rows == 1:
        raise BrokenSource(f"the only row of row group {group} has {row >> 20} MiB: split it or remove it")
    return max(1, min(_MOST_ROWS, _BATCH // row))


def _arrow(arrow: Any, file: BinaryIO, kind: Columnar) -> Iterator[Any]:
    start = 8 if kind is Columnar.ARROW_FILE else 0
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # it goes with the last batch that looks into it
    stay = 0
    for number, load in enumerate(ipc.loads(mapped, start), 1):
        stay += load.unpacked if load.stays else 0
        _check(load.packed, load.unpacked, max(stay, load.unpacked), f"record batch {number}")
    # Within its magic bytes and a footer, the file form is the stream form.
    with importlib.import_module("pyarrow.ipc").open_stream(arrow.py_buffer(mapped).slice(start)) as stream:
        _check_depth(stream.schema)
        yield from _slices(stream, mapped)


def _slices(stream: Any, mapped: mmap.mmap) -> Iterator[Any]:
    while (batch := next(stream, None)) is not None:
        batch.validate(full=True)  # its offsets are bytes of the file, and point anywhere until they are checked
        count = batch.num_rows
        some = max(1, min(_MOST_ROWS, _BATCH * count // max(1, batch.nbytes)))
        for at in range(0, count, some):
            yield batch.slice(at, some)
        del batch  # or it would stay while the next one is unpacked
        if hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)  # what was read need not stay in memory


def _check(packed: int, unpacked: int, at_once: int, where: str) -> None:
    if unpacked > max(_GROUP_FREE, RATIO * packed):
        raise BrokenSource(f"{where}: {_bomb(unpacked, packed)}")
    if at_once > _AT_ONCE:
        raise BrokenSource(
            f"{where} needs {at_once >> 20} MiB at one time, and {_AT_ONCE >> 20} are the most: "
            "write the file again with smaller pages or batches"
        )


def _bomb(unpacked: int, packed: int) -> str:
    return (
        f"its {packed:,} bytes unfold to more than {unpacked >> 20:,} MiB, more than {RATIO} times as much, "
        "which no set of prompts does: check where it comes from, or write it as JSON Lines"
    )


def _check_depth(schema: Any) -> None:
    level: list[Any] = list(schema.types)
    for _ in range(MAX_DEPTH):
        level = [kind.field(index).type for kind in level for index in range(kind.num_fields)]
        if not level:
            return
    raise BrokenSource(f"its columns nest deeper than {MAX_DEPTH} levels: flatten them")
