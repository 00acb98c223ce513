"""Answers as they come over the wire: recorded ones, cut anywhere, and every odd form that has been seen."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.backends import errors
from eyas.backends.chunk import Choice, Chunk, Delta
from eyas.backends.stream import Stream
from eyas.ledger import nano_dollars
from eyas.types import Billed, Completion, Failure, FailureKind, Finish, Outcome, Pieces, ToolCall, Usage

EXCHANGES = {
    p.stem: json.loads(p.read_text()) for p in sorted((Path(__file__).parent / "data/recorded").glob("*.json"))
}
STREAMED = [name for name in EXCHANGES if "stream" in name]
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 5,
    "cost": 0.0001,
    "completion_tokens_details": {"reasoning_tokens": 2},
}
TEXT = "Grüße 🦅\u2028 ok"


def read(*parts: bytes, broken: str | None = None) -> Outcome:
    """What a reader makes of bytes that come in these parts."""
    stream = Stream()
    for part in parts:
        stream.feed(part)
    stream.end()
    return stream.outcome(broken)


def answer(*parts: bytes, broken: str | None = None) -> Completion:
    """The same, where an answer must come of it."""
    outcome = read(*parts, broken=broken)
    assert isinstance(outcome, Completion), outcome
    return outcome


def chunk(finish: str | None = None, usage: Any = None, **texts: Any) -> dict[str, Any]:
    """One chunk of a stream."""
    made = {"id": "gen-1", "provider": "P", "model": "m", "choices": [{"delta": texts, "finish_reason": finish}]}
    return made if usage is None else made | {"usage": usage}


def sse(*chunks: Any, done: bool = True, form: bytes = b"data: %s\n\n") -> bytes:
    """A stream of these chunks."""
    return b"".join(form % json.dumps(each).encode() for each in chunks) + form % b"[DONE]" * done


def expected(name: str) -> dict[str, Any]:
    """What a recorded exchange says, read in another way: whole JSON documents and their fields."""
    body = EXCHANGES[name]["body"]
    whole = not body.startswith(":")
    lines = [body] if whole else [line[6:] for line in body.splitlines() if line.startswith("data: {")]
    found: dict[str, Any] = {"reasoning": [], "content": [], "calls": {}, "finish": None, "usage": None}
    for each in map(json.loads, lines):
        found["usage"] = each.get("usage") or found["usage"]
        found |= {"id": each["id"], "provider": each["provider"], "model": each["model"]}
        choice = each["choices"][0]
        found["finish"] = choice["finish_reason"] or found["finish"]
        said = choice["message"] if whole else choice["delta"]
        for channel in ("reasoning", "content"):
            found[channel] += [said[channel]] if said.get(channel) else []
        for call in said.get("tool_calls", ()):
            known = found["calls"].setdefault(call["index"], {"id": "", "name": "", "arguments": []})
            known["id"] += call.get("id", "")
            known["name"] += call["function"].get("name", "")
            known["arguments"] += [call["function"]["arguments"]] if call["function"].get("arguments") else []
    return found


def agrees(name: str, outcome: Outcome) -> None:
    """An outcome is what the recorded exchange holds."""
    if name.startswith("errors_raised"):
        assert isinstance(outcome, Failure)
        assert (outcome.kind, outcome.billed, outcome.status) == (FailureKind.RATE_LIMIT, Billed.NO, 429)
        assert outcome.provider == "Google"
        return
    assert isinstance(outcome, Completion)
    want = expected(name)
    usage, calls = want["usage"], [want["calls"][index] for index in sorted(want["calls"])]
    assert outcome.reasoning == "".join(want["reasoning"])
    assert outcome.content == "".join(want["content"])
    assert outcome.tool_calls == tuple(ToolCall(c["id"], c["name"], "".join(c["arguments"])) for c in calls)
    assert outcome.finish is Finish(want["finish"])
    reasoning, cached = usage["completion_tokens_details"]["reasoning_tokens"], usage["prompt_tokens_details"]
    counts = (usage["prompt_tokens"], usage["completion_tokens"], reasoning, cached["cached_tokens"])
    assert outcome.usage == Usage(*counts, nano_dollars(str(usage["cost"])))
    assert (outcome.generation_id, outcome.provider, outcome.model) == (want["id"], want["provider"], want["model"])
    assert (outcome.cut is not None) == (name == "stream_error-0")
    lengths = [tuple(map(len, want[channel])) for channel in ("reasoning", "content")]
    arguments = tuple(tuple(map(len, c["arguments"])) for c in calls)
    assert outcome.pieces == (Pieces(*lengths, arguments) if name in STREAMED else None)
    assert outcome.extra == {}


@pytest.mark.parametrize("name", EXCHANGES)
def test_every_recorded_exchange_is_read_right(name: str) -> None:
    """Text, calls, finish, usage, cost, ids and pieces, whole and byte by byte; keep-alive whitespace and comments too."""
    body = EXCHANGES[name]["body"].encode()
    agrees(name, read(body))
    agrees(name, read(*(body[place : place + 1] for place in range(len(body)))))
    if name.startswith("errors_raised"):
        agrees(name, errors.from_response(429, {}, body))


@pytest.mark.parametrize("name", EXCHANGES)
@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(0, 40_000), max_size=60))
def test_where_the_bytes_are_cut_does_not_matter(name: str, cuts: list[int]) -> None:
    """Any chunking of a recorded body gives the same outcome."""
    body = EXCHANGES[name]["body"].encode()
    places = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    agrees(name, read(*(body[low:high] for low, high in pairwise(places))))


def test_the_recorded_stream_error_is_cut_text() -> None:
    """Error with finish null and usage, after two chunks that said `length`: the text stays, the error says why it ends."""
    outcome = answer(EXCHANGES["stream_error-0"]["body"].encode())
    assert outcome.cut is not None
    assert (outcome.cut.kind, outcome.cut.billed) == (FailureKind.CUT, Billed.YES)
    assert "Token limit reached" in outcome.cut.detail


PARTS = st.sampled_from(["reasoning", "content"]).flatmap(
    lambda name: st.tuples(st.just(name), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6))
)


@given(st.lists(PARTS, max_size=30), st.data())
def test_pieces_and_drafts_join_to_the_text(parts: list[tuple[str, str]], data: st.DataObject) -> None:
    """Lengths of pieces cut the text where it was streamed; drafts taken at any moments join to the whole of it."""
    stream, drafts = Stream(), []
    for channel, text in parts:
        stream.feed(sse(chunk(**{channel: text}), done=False))
        if data.draw(st.booleans()):
            drafts.append(stream.draft())
    stream.feed(sse(chunk("stop"), chunk("stop", USAGE)))
    drafts.append(stream.draft())
    assert stream.draft() is None, "nothing came since"
    stream.end()
    outcome = stream.outcome()
    texts = {name: [text for channel, text in parts if channel == name] for name in ("reasoning", "content")}
    if parts:
        assert isinstance(outcome, Completion)
        assert outcome.pieces == Pieces(*(tuple(map(len, texts[name])) for name in ("reasoning", "content")))
    kept = [draft for draft in drafts if draft is not None]
    for name in ("reasoning", "content"):
        assert "".join(getattr(draft, name) for draft in kept) == "".join(texts[name])
        assert [n for draft in kept for n in getattr(draft.pieces, name)] == list(map(len, texts[name]))


def test_drafts_carry_tool_calls_as_far_as_they_came() -> None:
    """Calls stand whole in each draft, arguments verbatim."""
    stream = Stream()
    call = {"index": 0, "id": "functions.x:0", "function": {"name": "x", "arguments": ""}}
    stream.feed(sse(chunk(tool_calls=[call]), done=False))
    for piece in ('{"a"', ": 1.0"):
        stream.feed(sse(chunk(tool_calls=[{"index": 0, "function": {"arguments": piece}}]), done=False))
        draft = stream.draft()
        assert draft is not None
    assert draft.tool_calls == (ToolCall("functions.x:0", "x", '{"a": 1.0'),)
    assert draft.pieces.arguments == ((4, 5),)


GOOD = (chunk(reasoning="Hm"), chunk(content=TEXT), chunk("stop"), chunk("stop", USAGE))


@pytest.mark.parametrize(
    "body",
    [
        sse(*GOOD),
        sse(*GOOD[:3], {"id": "gen-1", "choices": [], "usage": USAGE}),
        sse(*GOOD[:2], chunk("stop", USAGE)),
        sse(*GOOD, form=b"data:%s\n\n"),
        sse(*GOOD, form=b"data: %s\r\n\r\n"),
        sse(*GOOD, form=b": OPENROUTER PROCESSING\n\ndata: %s\n: x\n\n: y\n\n"),
        sse(*GOOD, form=b"event: message\nid: 7\nretry: 5\ndata: %s\n\n"),
        sse(*GOOD).rstrip(b"\n"),
        sse(*GOOD).replace(b'"reasoning": "Hm"', b'"reasoning_content": "Hm"'),
        sse(*GOOD).replace(b'"reasoning": "Hm"', b'"reasoning": null, "reasoning_details": [{"text": "Hm"}]'),
        sse(*GOOD).replace(b'"reasoning": "Hm"', b'"reasoning": "Hm", "reasoning_details": [{"text": "Hm"}]'),
    ],
)
def test_legal_forms_of_a_stream_read_alike(body: bytes) -> None:
    """Doubled finish, usage with or without choices, comments anywhere, no space, CRLF, other names for the reasoning."""
    for outcome in (answer(body), answer(*(bytes([byte]) for byte in body))):
        assert (outcome.reasoning, outcome.content, outcome.finish) == ("Hm", TEXT, Finish.STOP)
        assert outcome.usage == Usage(7, 5, 2, 0, 100_000)
        assert outcome.pieces == Pieces((2,), (len(TEXT),))
        assert (outcome.cut, outcome.extra) == (None, {})


def test_an_answer_without_done_or_usage_is_whole_all_the_same() -> None:
    """finish_reason and text make an answer; what is missing is told: usage None, `no_done`."""
    bare = answer(sse(*GOOD[:3], done=False))
    assert (bare.cut, bare.usage, bare.extra) == (None, None, {"no_done": True})
    assert answer(sse(*GOOD), broken="reset").cut is None, "a reset after the end takes nothing away"
    assert answer(sse(*GOOD[:2], chunk("weird", USAGE))).finish is Finish.OTHER
    spent = answer(sse(GOOD[0], chunk("length", USAGE)))
    assert (spent.reasoning, spent.content, spent.finish, spent.cut) == ("Hm", "", Finish.LENGTH, None)
    for cost in ("NaN", "Infinity", -1, "-0.5"):
        odd = answer(sse(*GOOD[:3], chunk("stop", USAGE | {"cost": cost})))
        assert odd.usage == Usage(7, 5, 2, 0, None), "nonsense for a cost is none, and raises nothing"


def test_text_without_an_end_is_cut() -> None:
    """A stream that ends, breaks or turns to garbage after text keeps it; what it costs is unknown until looked up."""
    for body, broken, says in (
        (sse(*GOOD[:2], done=False), None, "without a finish_reason"),
        (sse(*GOOD[:2]), None, "without a finish_reason"),
        (sse(*GOOD[:2], done=False), "silence", "silence"),
        (sse(*GOOD[:2], done=False) + b"data: {oops\n\n", None, "not a chat completion"),
    ):
        outcome = answer(body, broken=broken)
        assert outcome.cut is not None
        assert (outcome.cut.kind, outcome.cut.billed) == (FailureKind.CUT, Billed.UNKNOWN)
        assert says in outcome.cut.detail
        assert outcome.content == TEXT


ERROR = {"id": "gen-1", "provider": "P", "error": {"code": 502, "message": "Provider returned error"}}


@pytest.mark.parametrize(
    ("body", "kind", "billed"),
    [
        (sse(ERROR), FailureKind.UPSTREAM, Billed.NO),
        (sse(ERROR, done=False), FailureKind.UPSTREAM, Billed.NO),
        (b": OPENROUTER PROCESSING\n\n" + sse(ERROR | {"error": {"code": 429}}), FailureKind.RATE_LIMIT, Billed.NO),
        (sse(ERROR | {"error": {"code": "server_error"}}), FailureKind.UPSTREAM, Billed.NO),
        (sse(ERROR | {"error": {"code": "429"}}), FailureKind.RATE_LIMIT, Billed.NO),
        (sse(ERROR | {"error": "no luck"}), FailureKind.UPSTREAM, Billed.NO),
        (sse(chunk("error", USAGE) | {"error": {"code": 504}}), FailureKind.UPSTREAM, Billed.NO),
        (json.dumps(ERROR).encode(), FailureKind.UPSTREAM, Billed.NO),
        (b"\n         \n" * 9 + json.dumps(ERROR).encode(), FailureKind.UPSTREAM, Billed.NO),
        (b'{"choices": []}', FailureKind.EMPTY, Billed.NO),
        (sse({"choices": [], "usage": {"completion_tokens": 0}}), FailureKind.EMPTY, Billed.NO),
        (sse(chunk("stop", {"completion_tokens": 0, "cost": 0})), FailureKind.EMPTY, Billed.NO),
        (sse(chunk("stop", {"completion_tokens": 0, "cost": 0.1})), FailureKind.EMPTY, Billed.YES),
        (sse(chunk("stop", USAGE, content="")), FailureKind.EMPTY, Billed.YES),
        (sse(chunk("stop")), FailureKind.EMPTY, Billed.UNKNOWN),
        (b"", FailureKind.LOST, Billed.UNKNOWN),
        (b": OPENROUTER PROCESSING\n\n", FailureKind.LOST, Billed.UNKNOWN),
        (b"\n         \n" * 3, FailureKind.LOST, Billed.UNKNOWN),
        (b"<html>502 Bad Gateway</html>", FailureKind.LOST, Billed.UNKNOWN),
        (b'{"id": "gen-1", "choi', FailureKind.LOST, Billed.UNKNOWN),
    ],
)
def test_a_body_without_text_is_a_failure_of_its_kind(body: bytes, kind: FailureKind, billed: Billed) -> None:
    """Errors first or only, in any envelope, empty answers, empty and garbled bodies, whole or byte by byte."""
    for outcome in (read(body), read(*(bytes([byte]) for byte in body))):
        assert isinstance(outcome, Failure)
        assert (outcome.kind, outcome.billed) == (kind, billed)
    assert read(b"", broken="reset") == Failure(FailureKind.LOST, Billed.UNKNOWN, "reset")


def test_an_error_after_tokens_keeps_them() -> None:
    """A finish "error", an error in the choice or a top-level one: the text stays, and usage tells what it cost."""
    for last in (chunk("error", USAGE), chunk(None, USAGE) | {"error": {"message": "idle"}}):
        outcome = answer(sse(*GOOD[:2], last))
        assert outcome.cut is not None
        assert outcome.cut.billed is Billed.YES
    choice = {"choices": [{"message": {"content": "x"}, "finish_reason": "error", "error": {"code": 500}}]}
    outcome = answer(json.dumps(choice).encode())
    assert outcome.cut is not None
    assert (outcome.content, outcome.cut.billed) == ("x", Billed.UNKNOWN)


def listed(*tokens: str | bytes, **more: Any) -> dict[str, Any]:
    """A chunk's logprobs; a token that is text has no bytes, as some servers say null."""
    entries = [{"token": t, "bytes": None} if isinstance(t, str) else {"token": "?", "bytes": list(t)} for t in tokens]
    return {"content": entries, **more}


def with_logprobs(made: dict[str, Any], logprobs: Any) -> dict[str, Any]:
    """The chunk with this in its choice."""
    return made | {"choices": [made["choices"][0] | {"logprobs": logprobs}]}


def test_logprobs_give_the_bytes_of_every_token() -> None:
    """In the order in which they came, bytes before text, the reasoning's own list first; streamed, bytewise, whole."""
    body = sse(
        with_logprobs(chunk(reasoning=" Hm"), listed(b" H", "m")),
        with_logprobs(chunk(content="\U0001f985"), listed(b"\xf0\x9f", reasoning_content=listed("x")["content"])),
        with_logprobs(chunk(content="."), None),
        with_logprobs(chunk("stop"), listed(b"\xa6\x85", "<end>", reasoning=listed()["content"], refusal=None)),
        chunk("stop", USAGE),
    )
    for outcome in (answer(body), answer(*(bytes([byte]) for byte in body))):
        assert outcome.token_bytes == (b" H", b"m", b"x", b"\xf0\x9f", b"\xa6\x85", b"<end>")
    choice = {"message": {"content": "a b"}, "finish_reason": "stop", "logprobs": listed("a", b" b")}
    assert answer(json.dumps({"choices": [choice]}).encode()).token_bytes == (b"a", b" b")


def test_without_a_list_there_are_no_bytes() -> None:
    """Absent, null and empty lists are none."""
    for logprobs in (None, {}, {"content": None}, {"content": []}):
        assert answer(sse(GOOD[0], with_logprobs(GOOD[1], logprobs), *GOOD[2:])).token_bytes is None
    assert answer(sse(*GOOD)).token_bytes is None


@pytest.mark.parametrize(
    "logprobs",
    [7, [], "x", {"content": 7}, {"content": [7]}, {"content": [{"bytes": [256]}]}, {"content": [{"bytes": [-1]}]},
     {"content": [{"token": 5}]}, {"content": [{"bytes": "AB"}]}],
)  # fmt: skip
def test_an_odd_list_costs_no_text(logprobs: Any) -> None:
    """A list that cannot be read makes all lists of the answer useless, and nothing else."""
    outcome = answer(sse(with_logprobs(GOOD[0], listed("Hm")), with_logprobs(GOOD[1], logprobs), *GOOD[2:]))
    assert (outcome.reasoning, outcome.content, outcome.extra) == ("Hm", TEXT, {})
    assert outcome.token_bytes is None


KEYS = st.sampled_from([*msgspec.structs.asdict(Chunk()), *msgspec.structs.asdict(Choice()),
                        *msgspec.structs.asdict(Delta()), "function", "arguments", "cost", "code", "metadata"])  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(KEYS, JSON, max_size=6), max_size=4), st.binary(max_size=40), st.booleans())
def test_no_bytes_whatever_make_the_reader_raise(chunks: list[Any], noise: bytes, whole: bool) -> None:
    """Any JSON in any order, and any bytes, end in an outcome that can be journalled."""
    body = (
        b"".join(map(msgspec.json.encode, chunks))
        if whole
        else b"".join(b"data: %s\n\n" % msgspec.json.encode(c) for c in chunks)
    )
    for outcome in (read(body), read(body + noise), read(noise, body)):
        assert msgspec.json.decode(msgspec.json.encode(outcome), type=type(outcome)) == outcome
        assert outcome.usage is None or (outcome.usage.cost or 0) >= 0
