"""Packed files: any number of members, and a clear error with file and position where they break."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.prompts.source import unpack
from eyas.prompts.source.row import BrokenSource
from eyas.prompts.source.unpack import packing_of, unpacked
from tests.reading import data, read, until_error


def zst(content: bytes) -> bytes:
    """One Zstandard frame."""
    return zstandard.ZstdCompressor().compress(content)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "Zstandard": zst,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}
NOISE = random.Random(0)
LINES = b"".join(b'{"n": %d, "x": "%x"}\n' % (n, NOISE.getrandbits(400)) for n in range(20_000))
by_packing = pytest.mark.parametrize("name", PACK)


@by_packing
@settings(deadline=None, max_examples=40)
@given(
    parts=st.lists(st.binary(max_size=300), min_size=1, max_size=5), cuts=st.integers(1, 50), piece=st.integers(1, 40)
)
def test_members_come_back_whole(name, parts, cuts, piece):
    """Any contents in any number of members, read and unpacked in pieces of any size, come back as one."""
    raw = b"".join(PACK[name](part) for part in parts)
    packing = packing_of(raw)
    assert packing is not None
    assert packing.name == name
    chunks = (raw[at : at + cuts] for at in range(0, len(raw), cuts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpack, "_PIECE", piece)
        got = list(unpacked(chunks, packing))
    assert b"".join(got) == b"".join(parts)
    assert all(len(one) <= piece for one in got)


@by_packing
def test_rows_of_packed_files(tmp_path, name):
    """Lines in several members, one of them empty, are read by content whatever the file is called."""
    raw = b"".join(PACK[name](part) for part in (b'{"a": 1}\n{"a', b"", b'": 2}\n'))
    assert data(read(tmp_path, raw, "set.json")) == [{"a": 1}, {"a": 2}]


@by_packing
def test_cut_file_names_place_and_rows(tmp_path, name):
    """A file cut in its second member gives the rows before the cut, and says where it ends and how many they were."""
    first, second = PACK[name](LINES), PACK[name](LINES)
    got, error = until_error(tmp_path, first + second[: len(second) * 2 // 3])
    assert len(data(got)) >= 20_000
    assert f"set.jsonl: its {name} data break off at byte {len(first) + len(second) * 2 // 3:,}" in error
    assert f"the member that starts at byte {len(first) + 1:,}" in error
    assert f"({len(got)} rows were read before that)" in error


@by_packing
def test_what_follows_the_last_member_is_an_error(tmp_path, name):
    """Garbage behind the packed data is named with its place, after all rows."""
    packed = PACK[name](LINES)
    got, error = until_error(tmp_path, packed + b"and something else")
    assert len(got) >= 20_000
    assert f"{name} data are damaged or followed by something else between bytes {len(packed) + 1:,} and" in error


@by_packing
def test_changed_bytes_are_an_error(tmp_path, name):
    """Flipped bytes amid the data never give other rows in silence."""
    packed = bytearray(PACK[name](LINES))
    packed[len(packed) // 2] ^= 0x55
    got, error = until_error(tmp_path, bytes(packed) if name != "Zstandard" else checked(LINES))
    assert f"its {name} data" in error
    assert len(got) <= 20_001


def checked(content: bytes) -> bytes:
    """A Zstandard frame with a checksum that is wrong, as `zstd` writes one by default."""
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(content))
    packed[-1] ^= 0x55
    return bytes(packed)


@pytest.mark.parametrize("name", ["gzip", "xz"])
def test_zeros_may_fill_up_a_file(tmp_path, name):
    """Padding of zeros, as tapes and `xz` leave it, is no garbage."""
    assert data(read(tmp_path, PACK[name](b'{"a": 1}') + bytes(512))) == [{"a": 1}]


def test_skippable_frames_are_passed_over(tmp_path):
    """A Zstandard file that begins with a skippable frame, as pzstd's do, is read."""
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size"
    assert data(read(tmp_path, skipped + zst(b'{"a": 1}\n') + skipped + zst(b'{"a": 2}'))) == [{"a": 1}, {"a": 2}]


def test_a_window_that_needs_gigabytes_is_refused(tmp_path):
    """`zstd --long=31` and an xz dictionary of 1.5 GiB ask for more memory than is given: the remedy is named."""
    long = zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(window_log=28))
    frame = long.compressobj()
    assert "128 MiB of memory" in until_error(tmp_path, frame.compress(b'{"a": 1}') + frame.flush())[1]
    packed = bytearray(lzma.compress(b'{"a": 1}'))
    # The dictionary's size stands in the block header, in whose checksum it counts.
    packed[16] = 39
    packed[20:24] = zlib.crc32(packed[12:20]).to_bytes(4, "little")
    assert "128 MiB of memory" in until_error(tmp_path, bytes(packed))[1]


@by_packing
def test_packed_twice_is_named(tmp_path, name):
    """A packed file packed again, and columns packed as a whole, are one clear error each."""
    assert f"packed twice, by gzip and {name}" in until_error(tmp_path, PACK[name](gzip.compress(b"{}")))[1]
    assert f"is Parquet packed by {name}" in until_error(tmp_path, PACK[name](b"PAR1" + bytes(90)), "x.parquet.zst")[1]


def test_a_break_ends_what_is_unpacked():
    """The pieces before a break are given before it is raised."""
    packed = gzip.compress(LINES)[:-9]
    packing = packing_of(packed)
    assert packing is not None
    sink = io.BytesIO()
    with pytest.raises(BrokenSource):
        sink.writelines(unpacked(iter([packed]), packing))
    assert LINES.startswith(sink.getvalue())
    assert len(sink.getvalue()) > len(LINES) * 0.9
