"""Lines of a stream: the same wherever the bytes are cut, linear in what comes, bounded in what is held."""

from __future__ import annotations

import json
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from eyas.backends import lines
from eyas.backends.lines import MOST_HELD, Block, Lines
from eyas.backends.stream import Stream
from eyas.types import Completion, Failure

GOOD = {"id": "gen-1", "choices": [{"delta": {"content": "well"}, "finish_reason": "stop"}]}
MIB = 1024 * 1024


@given(st.lists(st.sampled_from([b"", b"a", b"\r", b"data: x", b"\xff"]), max_size=20), st.data())
def test_lines_are_the_same_wherever_the_bytes_are_cut(parts: list[bytes], data: st.DataObject) -> None:
    """What is fed in pieces gives the lines of the whole."""
    whole = b"\n".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    reader, found = Lines(), list[bytes]()
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += reader.feed(whole[start:end])
    assert [*found, reader.end()] == [part.rstrip(b"\r") for part in whole.split(b"\n")]
    assert not reader.overlong


def test_a_line_without_end_is_dropped_and_the_next_one_read() -> None:
    """A line above the bound costs no memory, and says so; what comes after its end is a line again."""
    reader = Lines()
    tracemalloc.start()
    for _ in range(4 * MOST_HELD // MIB):
        assert reader.feed(b"x" * MIB) == []
    assert tracemalloc.get_traced_memory()[0] < 2 * MOST_HELD
    tracemalloc.stop()
    assert reader.overlong
    assert reader.feed(b"tail\nnext\n") == [b"", b"next"]


def test_many_small_pieces_of_one_long_line_are_not_joined_again_and_again() -> None:
    """The bytes held are kept apart until the line ends: nothing grows with the square of its length."""
    reader = Lines()
    for _ in range(10_000):
        reader.feed(b"y" * 100)
    assert len(reader._held) == 10_000  # the property itself
    assert reader.end() == b"y" * 1_000_000


def test_a_block_holds_its_lines_up_to_the_bound() -> None:
    """Over the bound a block is empty and says so, until it is taken."""
    block = Block()
    block.add(b"a")
    block.add(b"b")
    assert block
    assert block.take() == b"a\nb"
    for _ in range(20):
        block.add(b"z" * MIB)
    assert block.overlong
    assert not block


def test_garbage_without_end_before_an_answer_leaves_nothing_held() -> None:
    """Lines that are no events are bounded too, and once events come they are not kept at all."""
    stream = Stream()
    for _ in range(2 * MOST_HELD // MIB):
        stream.feed(b"<p>" + b"w" * (MIB - 4) + b"\n")
    stream.end()
    outcome = stream.outcome()
    assert isinstance(outcome, Failure)
    assert str(lines.MOST_HELD) in outcome.detail


def test_an_answer_among_garbage_is_read() -> None:
    """An overlong line in the middle of a stream does not lose the answer around it."""
    stream = Stream()
    event = b"data: " + json.dumps(GOOD).encode() + b"\n\n"
    for part in (b": " + b"c" * (MOST_HELD + 1), b"\n\n", event, b"data: [DONE]\n\n"):
        stream.feed(part)
    stream.end()
    outcome = stream.outcome()
    assert isinstance(outcome, Completion)
    assert outcome.content == "well"
