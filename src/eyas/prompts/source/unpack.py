"""Unpacks gzip, Zstandard, xz and bzip2 of any number of members, a bounded piece at a time, and names where they break."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec
import zstandard

from eyas.prompts.source.row import BrokenSource

_PIECE = 1 << 20
_MEMORY = 128 << 20
"""Most bytes that a window or dictionary may take: what `zstd` and `xz -9` ask for without further options."""

_ZSTD_BYTES = 1024
"""Packed bytes given to Zstandard at a time: a block of 4 bytes may unfold to 128 KiB, so these to 32 MiB at most."""

_ERRORS = (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError, EOFError, ValueError)


class _Member(Protocol):
    """One member, stream or frame being unpacked, as lzma and bz2 of the standard library have it."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class Packing(msgspec.Struct, frozen=True):
    """A way of packing: its name, the bytes it starts with, and whether zeros may fill up the file behind it."""

    name: str
    magic: tuple[bytes, ...]
    member: Callable[[], _Member]
    padded: bool = False


def packing_of(head: bytes) -> Packing | None:
    """The packing of a file by its first bytes, or None."""
    return next((each for each in _PACKINGS if head.startswith(each.magic)), None)


def unpacked(chunks: Iterator[bytes], packing: Packing | None) -> Iterator[bytes]:
    """Gives what is packed, in pieces of a MiB at most; what is not packed as it comes.

    Raises:
        BrokenSource: the data break off, are damaged, are followed by something else or need too much memory.
    """
    if packing is None:
        yield from chunks
        return
    member: _Member | None = None
    given = began = 0
    for chunk in chunks:
        given += len(chunk)
        data = chunk
        while data or (member and not member.needs_input):
            if member is None:
                data = data.lstrip(b"\0") if packing.padded and began else data
                if not data:
                    break
                member, began = packing.member(), given - len(data) + 1
            try:
                piece = member.decompress(data, _PIECE)
            except _ERRORS as error:
                raise BrokenSource(_broken(packing, began, given, error)) from error
            yield from (piece[at : at + _PIECE] for at in range(0, len(piece), _PIECE))
            data, member = (member.unused_data, None) if member.eof else (b"", member)
    if member is not None:
        raise BrokenSource(
            f"its {packing.name} data break off at byte {given:,}, in the member that starts at byte {began:,}: "
            "fetch or write the file again"
        )


def _broken(packing: Packing, began: int, given: int, error: Exception) -> str:
    where = f"between bytes {began:,} and {given:,}"
    if "memory" in str(error).lower():
        return (
            f"its {packing.name} data {where} need more than {_MEMORY >> 20} MiB of memory to unpack: "
            "unpack the file and pack it with a smaller window (zstd without --long, xz -9 or less)"
        )
    return (
        f"its {packing.name} data are damaged or followed by something else {where} ({error}): "
        "fetch or write the file again"
    )


class _Gzip:
    """zlib's object in the manner of lzma's."""

    def __init__(self) -> None:
        self._object = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        piece = self._object.decompress(self._object.unconsumed_tail + data, max_length)
        # A full piece may have left output inside zlib with no input before it.
        self.needs_input = not self._object.unconsumed_tail and len(piece) < max_length
        return piece


class _Zstd:
    """Zstandard's object in the manner of lzma's: itself it has no most length."""

    def __init__(self) -> None:
        self._object = zstandard.ZstdDecompressor(max_window_size=_MEMORY).decompressobj()
        self._data, self._at = b"", 0

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def needs_input(self) -> bool:
        return self._at >= len(self._data)

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data + self._data[self._at :]

    def decompress(self, data: bytes, max_length: int) -> bytes:
        self._data, self._at = self._data[self._at :] + data, 0
        pieces: list[bytes] = []
        size = 0
        while size < max_length and not self.eof and not self.needs_input:
            some = self._data[self._at : self._at + _ZSTD_BYTES]
            self._at += len(some)
            pieces.append(self._object.decompress(some))
            size += len(pieces[-1])
        return b"".join(pieces)


_PACKINGS = (
    Packing("gzip", (b"\x1f\x8b",), _Gzip, padded=True),
    # A skippable frame, as pzstd writes one first, starts with any of sixteen bytes.
    Packing("Zstandard", (b"\x28\xb5\x2f\xfd", *(bytes([n]) + b"\x2a\x4d\x18" for n in range(0x50, 0x60))), _Zstd),
    Packing("xz", (b"\xfd7zXZ\0",), lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY), padded=True),
    Packing("bzip2", (b"BZh",), bz2.BZ2Decompressor),
)
