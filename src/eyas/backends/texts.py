"""The texts of an answer as they gather: by channel, with the lengths of the pieces that they came in."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import msgspec

from eyas.backends.chunk import TextChunk, Tool, decode_texts

NOTHING = (b"", b"null", b"[]")
"""What stands where no reasoning does."""


class Text:
    """One channel's text: what came together is joined, so that a piece costs four bytes and its characters."""

    __slots__ = ("drafted", "lengths", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.lengths: array[int] = array("I")
        self.drafted = (0, 0)

    def add(self, pieces: list[str]) -> None:
        """These pieces came."""
        self.parts.append("".join(pieces))
        self.lengths.extend(map(len, pieces))

    def draft(self) -> tuple[str, tuple[int, ...]]:
        """The text since the last draft, and the lengths of its pieces."""
        parts, lengths = self.drafted
        self.drafted = (len(self.parts), len(self.lengths))
        return "".join(self.parts[parts:]), tuple(self.lengths[lengths:])


class Call:
    """A tool call as far as it has come."""

    __slots__ = ("arguments", "id", "name", "pieces")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.pieces: list[int] = []

    def take(self, tool: Tool) -> int:
        """What a chunk has of it; gives the number of pieces that came, 0 or 1."""
        self.id = self.id or tool.id or ""
        if tool.function is None:
            return 0
        self.name = self.name or tool.function.name or ""
        arguments = tool.function.arguments
        if arguments is not None and not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        if not arguments:
            return 0
        self.arguments.append(arguments)
        self.pieces.append(len(arguments))
        return 1


class Texts(NamedTuple):
    """Pieces of reasoning and of content, token ids where an engine lists them, and the chunks that brought them."""

    reasoning: list[str]
    content: list[str]
    ids: list[int]
    chunks: list[TextChunk]


def texts(data: bytes) -> Texts | None:
    """What whole events bring that are nothing but text, decoded all at once; None if they are anything else."""
    if not (data.startswith(b"data: ") and data.endswith(b"\n\n")):
        return None
    try:
        chunks = decode_texts(data[6:].replace(b"\n\ndata: ", b"\n"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if data.count(b"\n") != 2 * len(chunks) or data.count(b"\n\ndata: ") != len(chunks) - 1:
        return None
    came = Texts([], [], [], chunks)
    for chunk in chunks:
        choice = chunk.choices[0]
        delta = choice.delta
        reasoning = delta.reasoning or delta.reasoning_content
        if reasoning:
            came.reasoning.append(reasoning)
        elif delta.reasoning_details and bytes(delta.reasoning_details) not in NOTHING:
            return None
        if delta.content:
            came.content.append(delta.content)
        if choice.token_ids:
            came.ids.extend(choice.token_ids)
    return came
