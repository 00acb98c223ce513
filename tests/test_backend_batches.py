"""Events that wait and are decoded together: nothing of an answer depends on it, and its beginning and end are seen at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.backends import stream as streams
from eyas.backends.stream import MOST_WAITING, Stream
from eyas.backends.texts import texts
from eyas.types import Completion
from tests.test_backend_stream import ERROR, JSON, KEYS, USAGE, chunk, read, sse

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
CALL = {"index": 0, "id": "functions.x:0", "function": {"name": "x", "arguments": '{"a"'}}
ODD = [
    b": OPENROUTER PROCESSING\n\n",
    b"\n",
    b"\n\n",
    b"data: {oops\n\n",
    b"data: null\n\n",
    b"data: [DONE]\n\n",
    b'data: {"choices": [{"delta": \ndata: {"content": "two lines"}}]}\n\n',
    b'data: {"choices": [{"delta": {"content": "a"}}]}\n{"choices": [{"delta": {"content": "no event"}}]}\n\n',
    b'data: {"choices": [{"delta": {"content": "crlf"}}]}\r\n\r\n',
    b'data:{"choices": [{"delta": {"content": "no blank"}}]}\n\n',
    b'event: x\ndata: {"choices": [{"delta": {"content": "named"}}]}\n\n',
    b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n',
    b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',
    b'data: {"choices": [{"delta": {"content": "0"}}, {"delta": {"content": "1"}}]}\n\n',
    b"data: " + json.dumps(ERROR).encode() + b"\n\n",
]
EVENTS = st.one_of(
    st.builds(lambda text: sse(chunk(reasoning=text), done=False), TEXTS),
    st.builds(lambda text: sse(chunk(content=text), done=False), TEXTS),
    st.builds(lambda text: sse(chunk(reasoning=None, reasoning_details=[{"text": text}]), done=False), TEXTS),
    st.builds(lambda text: sse(chunk(reasoning="r", reasoning_details=[{"text": text}]), done=False), TEXTS),
    st.builds(lambda made: b"data: " + json.dumps(made).encode() + b"\n\n", st.dictionaries(KEYS, JSON, max_size=4)),
    st.sampled_from([*ODD, sse(chunk(tool_calls=[CALL]), done=False), sse(chunk("stop", USAGE), done=False)]),
)
TEXT = sse(chunk(content="word"), done=False)


@given(st.lists(EVENTS, max_size=30), st.data())
def test_waiting_changes_nothing(events: list[bytes], data: st.DataObject) -> None:
    """Event by event, byte by byte, in any groups, with and without batches, whoever asks between: the outcome is one."""
    whole = b"".join(events)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(streams, "texts", lambda _: None)
        want = read(*(whole[place : place + 1] for place in range(len(whole))))
        assert read(*events) == want
    assert read(whole) == read(*events) == want
    stream = Stream()
    for event in events:
        cut = data.draw(st.integers(0, len(event)))
        stream.feed(event[:cut])
        stream.feed(event[cut:])
        if data.draw(st.booleans()):
            stream.draft()
    stream.end()
    assert stream.outcome() == want


@given(st.lists(EVENTS, max_size=30))
def test_pieces_are_counted_before_they_are_decoded(events: list[bytes]) -> None:
    """Between two drafts every whole event that waits counts as one piece; a draft counts right."""
    stream, counted = Stream(), Stream()
    for event in [TEXT, *events]:
        before = stream.tokens
        stream.feed(event)
        counted.feed(event)
        counted.draft()
        assert stream.started
        assert stream.done == counted.done, "the end is seen when it comes"
        assert stream.tokens == before + 1 or event != TEXT
    stream.draft()
    assert stream.tokens == counted.tokens


def test_an_event_of_two_lines_is_not_two_events() -> None:
    """A line without `data:` within an event, and an empty one after it, look like two events to who counts lines only."""
    odd = b'data: {"choices": [{"delta": {"content": "a"}}]}\n{"choices": [{"delta": {"content": "no event"}}]}\n\n\n'
    stream = Stream()
    for data in (TEXT, odd):
        stream.feed(data)
    stream.end()
    assert stream.tokens == 2
    assert "no event" not in str(stream.outcome())


def test_whole_events_wait_and_the_end_does_not() -> None:
    """The first text is decoded as it comes, what follows in one go: when it is asked for, is much, or ends the stream."""
    stream, decoded = Stream(), list[int]()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(streams, "texts", lambda data: decoded.append(data.count(b"\n\n")) or texts(data))
        stream.feed(TEXT)
        assert (stream.started, stream.tokens, decoded) == (True, 1, [])
        for _ in range(10):
            stream.feed(TEXT)
        assert (stream.tokens, decoded) == (11, [])
        stream.draft()
        assert decoded == [10]
        many = MOST_WAITING // len(TEXT) + 1
        for _ in range(many):
            stream.feed(TEXT)
        assert decoded == [10, many]
        stream.feed(sse())
        assert stream.done


def one(**fields: Any) -> bytes:
    """An event of one choice with these fields beside a text."""
    return sse({"id": "g", "choices": [{"delta": {"content": "x"}, **fields}]}, done=False)


@pytest.mark.parametrize(
    "event",
    [
        one(finish_reason="stop"),
        one(logprobs={"content": [{"token": "x"}]}),
        one(error={"code": 1}),
        sse(chunk(None, USAGE, content="x"), done=False),
        sse(chunk(tool_calls=[CALL]), done=False),
        sse(ERROR, done=False),
    ],
)
def test_only_text_is_taken_in_batches(event: bytes) -> None:
    """Whatever else an event holds is found in a batch, wherever it stands."""
    assert texts(TEXT * 3) is not None
    for place in range(4):
        assert texts(TEXT * place + event + TEXT * (3 - place)) is None


def test_a_name_that_comes_late_is_taken() -> None:
    """Provider and model are those of the first event that says them."""
    bare = sse({"choices": [{"delta": {"content": "a"}}]}, done=False)
    outcome = read(bare, bare, TEXT, sse(chunk("stop")))
    assert isinstance(outcome, Completion)
    assert (outcome.provider, outcome.model, outcome.generation_id) == ("P", "m", "gen-1")
