"""Sources that claim or unfold to far more than their size: a clear end, and little memory, measured in a process."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from eyas.prompts.read import MAX_ROW

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="NO /proc: MEMORY IS NOT MEASURED")

MOST_MB = 300
READER = """
import json, re, sys
from pathlib import Path
from eyas.errors import UsageError
from eyas.prompts.read import Row, rows
told = {}
for name in sys.argv[1:]:
    good, bad, error = 0, [], ""
    try:
        for row in rows(name, Path(".")):
            good += isinstance(row, Row)
            if not isinstance(row, Row) and len(bad) < 5:
                bad.append([row.line, row.reason])
    except UsageError as wrong:
        error = str(wrong)
    told[name] = [good, bad, error]
status = Path("/proc/self/status").read_text()
print(json.dumps([told, int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024]))
"""


def reading(
    folder: Path, names: list[str], given: Iterable[bytes] = (), most_mb: int = MOST_MB
) -> dict[str, tuple[int, list[Any], str]]:
    """Reads sources one after another in a process of its own, whose memory never goes above the limit.

    The limit is held against VmHWM: ru_maxrss counts the memory of the process that a child was forked from.
    """
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, *names], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with reader, reader.stdin, reader.stdout:
        reader.stdin.writelines(given)
        reader.stdin.close()
        told, most = json.loads(reader.stdout.read())
    assert reader.returncode == 0
    assert most < most_mb, f"{most:.0f} MB"
    return told


def zst(*parts: bytes) -> bytes:
    """One Zstandard frame of all parts, which may be long together."""
    sink = io.BytesIO()
    with zstandard.ZstdCompressor(level=1).stream_writer(sink, closefd=False) as packed:
        for part in parts:
            packed.write(part)
    return sink.getvalue()


def endless(head: bytes, fill: bytes = b"\0", megabytes: int = 320) -> Iterator[bytes]:
    """A head, and then the same again and again."""
    yield head
    yield from [fill * ((1 << 20) // len(fill))] * megabytes


def test_endless_text_is_never_held(tmp_path):
    """A line, a cell, an element or a member without end becomes a bad row or an error, and what precedes it is read."""
    start = b'{"a": 1}\n{"a": "'
    bombs = {
        "line": zst(*endless(start)),
        "line-gzip": gzip.compress(b"".join(endless(start, megabytes=100)), 1),
        "brackets": zst(*endless(b'{"a": 1}\n{"a": ', b"[", 20)),
        "objects": zst(b'{"a": 1}\n{"a": [', b"[],".ljust(3) * (MAX_ROW // 4), b"1]}"),
        "element": zst(*endless(b'[{"a": 1}, {"a": "')),
        "escapes": zst(*endless(b'[{"a": 1}, {"a": "', b"\\", 40)),
        "member": zst(*endless(b'{"data": [{"a": 1}, {"a": "', megabytes=100)),
        "cells.csv": zst(*endless(b"a,b\n1,2\n", b"1,2,")),
        "quotes.csv": zst(*endless(b'a,b\n1,2\n3,"', b"a line\n".rjust(100) * 100, 60)),
    }
    for name, content in bombs.items():
        assert len(content) < 1 << 20
        (tmp_path / name).write_bytes(content)
    told = reading(tmp_path, list(bombs))
    assert {name: good for name, (good, _, _) in told.items()} == dict.fromkeys(bombs, 1)
    for name in ("line", "line-gzip", "brackets", "cells.csv"):
        [[_, reason]] = told[name][1]
        assert "longer than 16 MiB: split it or remove it" in reason
    assert "more than 1,000,000 lists and objects" in told["objects"][1][0][1]
    for name in ("element", "escapes", "member"):
        assert "breaks off in element 2 of its JSON array" in told[name][2]
    assert "record at line 3 never ends" in told["quotes.csv"][2]


def test_columns_that_unfold_are_refused(tmp_path):
    """900 bytes of Parquet or Arrow that are 20 GB, a huge page, a long run and a huge buffer end in a clear error."""
    pa = pytest.importorskip("pyarrow", reason="NO PYARROW, its bombs are not tested: pip install 'eyas[parquet]'")
    pq = pytest.importorskip("pyarrow.parquet")
    text = pa.array(["x" * 100_000])
    same = pa.DictionaryArray.from_arrays(pa.array([0] * 200_000, pa.int32()), text)
    lists = pa.ListArray.from_arrays(pa.array([0, 200_000], pa.int32()), same)
    pages = pa.table({"a": pa.array(["x" * (100 << 20)])})
    zeros = pa.Array.from_buffers(pa.int8(), 30_000_000, [None, pa.py_buffer(bytes(30_000_000))])
    numbers = pa.ListArray.from_arrays(pa.array([0, 30_000_000], pa.int32()), zeros)
    bombs = {
        "dictionary": lambda path: pq.write_table(pa.table({"a": same}), path, compression="zstd"),
        "one-row": lambda path: pq.write_table(pa.table({"a": lists}), path, compression="zstd"),
        "page": lambda path: pq.write_table(pages, path, compression="zstd", use_dictionary=False),
        "run": lambda path: pq.write_table(pa.table({"a": numbers}), path),
        "arrow-dictionary": lambda path: feather(pa, pa.table({"a": same}), path),
        "arrow-buffer": lambda path: feather(pa, pages, path),
    }
    for name, write in bombs.items():
        write(str(tmp_path / name))
        assert (tmp_path / name).stat().st_size < 100_000
    assert (tmp_path / "dictionary").stat().st_size < 1000
    told = reading(tmp_path, list(bombs))
    assert "longer than 16 MiB" in told.pop("one-row")[1][0][1]
    for _, _, error in told.values():
        assert "times as much, which no set of prompts does" in error
    assert 0 < told["dictionary"][0] < 3000


def feather(pa: Any, table: Any, path: str) -> None:
    """Writes an Arrow file with packed buffers."""
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(path, table.schema, options=options) as file:
        file.write_table(table)


def test_a_pipe_that_is_looked_through_is_not_held(tmp_path):
    """What comes from a pipe and must be read twice goes over the disk."""
    rows = (json.dumps({"a": "x" * 10_000}).encode() + b",\n") * 1000
    given = [b'{"version": 1,\n"data": [\n', *([rows] * 16), b'{"a": 1}]}']
    assert sum(map(len, given)) > 150 << 20
    assert reading(tmp_path, ["-"], given, most_mb=150) == {"-": [16_001, [], ""]}
