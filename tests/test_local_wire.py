"""What is asked of engines and what is read of them, against the stand-ins that speak their documented wire."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.backends.answers import answer, failure_of
from eyas.backends.base import Ask, Wire
from eyas.backends.ids import NO_IDS
from eyas.backends.llamacpp import LLAMACPP
from eyas.backends.local import Dialect, Local, root_of, tag_of
from eyas.backends.openai import OPENAI
from eyas.backends.sglang import SGLANG, SGLANG_CHAT
from eyas.backends.vllm import VLLM, VLLM_CHAT
from eyas.families import Loaded
from eyas.sim.engines.base import Streams, Told
from eyas.tokens.engine import ENGINE_TEXT, read_ids
from eyas.types import Billed, Completion, Failure, FailureKind, Finish, Outcome, Prompt
from tests import enginekit as kit

QUESTION = ({"role": "user", "content": "What is 6 times 7? \u4f60\u597d \U0001f642"},)
PROMPT = Prompt("0" * 16, "B3", QUESTION)
TAG = "127.0.0.1:1"
WITH_IDS = [("vllm", VLLM), ("vllm", VLLM_CHAT), ("sglang", SGLANG), ("sglang", SGLANG_CHAT), ("llamacpp", LLAMACPP)]
NAMES = [f"{name}-{'ids' if dialect.takes_ids else 'chat'}" for name, dialect in WITH_IDS]


def backend(dialect: Dialect, **more: Any) -> Local:
    """One replica of it."""
    return Local(dialect, {TAG: f"http://{TAG}"}, kit.MODEL, **more)


def ask(kimi: Loaded, dialect: Dialect, most: int = 400, **more: Any) -> Ask:
    """How a work is asked."""
    ids = tuple(kimi.prompt_ids(QUESTION, (), True)) if dialect.takes_ids else ()
    fields = {"sampling": {"temperature": 1.0, "top_p": 0.95}, "stream": dialect.streams, **more}
    return Ask(most, prompt_ids=ids, stops=kimi.stops, **fields)


def heard(kimi: Loaded, name: str, dialect: Dialect, asked: Ask, **settings: Any) -> tuple[int, bytes]:
    """Status and body of a stand-in's reply."""
    local = backend(dialect)
    request = local.chat(local.body(PROMPT, asked), TAG)
    server = kit.engine(name, kimi, **settings)
    reply = kit.post(server, request.url.removeprefix(f"http://{TAG}"), json.loads(request.body))
    return reply.status, reply.body


def outcome(dialect: Dialect, body: bytes, *cuts: int) -> Outcome:
    """What a reader makes of a body, cut anywhere."""
    stream, places = answer(dialect.wire), [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    for start, end in itertools.pairwise(places):
        stream.feed(body[start:end])
    stream.end()
    return stream.outcome()


@pytest.mark.parametrize(("name", "dialect"), WITH_IDS, ids=NAMES)
def test_every_engine_gives_the_same_ids_and_texts(kimi: Loaded, name: str, dialect: Dialect) -> None:
    """One prompt and one seed: ids, texts, counts and finish are those of vLLM, whoever answers and whoever renders."""
    _, first = heard(kimi, "vllm", VLLM, ask(kimi, VLLM))
    want = read_ids(outcome(VLLM, first), kimi, thinking=True)  # type: ignore[arg-type]  # it is a Completion
    status, body = heard(kimi, name, dialect, ask(kimi, dialect))
    came = outcome(dialect, body)
    assert status == 200
    assert isinstance(came, Completion)
    found = read_ids(came, kimi, thinking=True) if dialect.takes_ids else came
    for field in ("token_ids", "reasoning", "content", "finish"):
        assert getattr(found, field) == getattr(want, field), field
    assert found.usage is not None
    assert want.usage is not None
    assert found.usage.completion_tokens == len(want.token_ids or ())
    assert found.usage.prompt_tokens == len(kimi.prompt_ids(QUESTION, (), True))
    assert ENGINE_TEXT not in found.extra


@pytest.mark.parametrize(("name", "dialect"), WITH_IDS, ids=NAMES)
@pytest.mark.parametrize("most", [1, 7, 30])
def test_an_answer_that_reaches_max_tokens_has_so_many_ids(
    kimi: Loaded, name: str, dialect: Dialect, most: int
) -> None:
    """It finished by length, and no stop token is made up."""
    _, body = heard(kimi, name, dialect, ask(kimi, dialect, most))
    came = outcome(dialect, body)
    assert isinstance(came, Completion)
    read = read_ids(came, kimi, thinking=True)
    assert (read.finish, len(read.token_ids or ())) == (Finish.LENGTH, most)


@pytest.mark.parametrize(
    ("name", "dialect"), [w for w in WITH_IDS if w[1].takes_ids], ids=["vllm", "sglang", "llamacpp"]
)
def test_a_stop_token_that_is_left_out_is_put_back(kimi: Loaded, name: str, dialect: Dialect) -> None:
    """Ids with and without it read as the same answer."""
    bodies = [heard(kimi, name, dialect, ask(kimi, dialect), told=each)[1] for each in (Told.ALL, Told.NO_STOP)]
    with_it, without = (read_ids(outcome(dialect, body), kimi, thinking=True) for body in bodies)  # type: ignore[arg-type]
    assert with_it.token_ids == without.token_ids
    assert with_it.token_ids is not None
    assert with_it.token_ids[-1] == kimi.stop


@pytest.mark.parametrize("streams", list(Streams))
def test_a_stream_of_sglang_reads_alike_whether_it_repeats_itself(kimi: Loaded, streams: Streams) -> None:
    """Segments and all so far add up to the same answer."""
    _, body = heard(kimi, "sglang", SGLANG, ask(kimi, SGLANG), streams=streams)
    _, whole = heard(kimi, "sglang", SGLANG, ask(kimi, SGLANG, stream=False))
    streamed, plain = outcome(SGLANG, body), outcome(SGLANG, whole)
    assert isinstance(streamed, Completion)
    assert isinstance(plain, Completion)
    assert (streamed.token_ids, streamed.content) == (plain.token_ids, plain.content)


@given(st.lists(st.integers(0, 100_000), max_size=12))
def test_bytes_may_come_cut_anywhere(cuts: list[int]) -> None:
    """An event is never lost or taken twice."""
    chunks = [{"choices": [{"text": "ab\u00e9", "token_ids": [number, 7]}]} for number in range(9)]
    last = {"choices": [{"text": "", "token_ids": [5], "finish_reason": "stop"}], "usage": {"completion_tokens": 19}}
    body = b"".join(b"data: %s\n\n" % msgspec.json.encode(each) for each in [*chunks, last]) + b"data: [DONE]\n\n"
    assert outcome(VLLM, body, *cuts) == outcome(VLLM, body)


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_text_without_ids_is_no_answer(kimi: Loaded, name: str) -> None:
    """A server too old for ids never becomes a silent change to rebuilt ones."""
    dialect = {"vllm": VLLM, "sglang": SGLANG}[name]
    _, body = heard(kimi, name, dialect, ask(kimi, dialect), told=Told.NONE)
    came = outcome(dialect, body)
    assert isinstance(came, Failure)
    assert (came.kind, came.detail, came.billed) == (FailureKind.EMPTY, NO_IDS, Billed.NO)


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (VLLM, b'data: {"choices":[{"text":"a","token_ids":[1]}]}\n\n'),
        (SGLANG, b'data: {"text":"a","output_ids":[1],"meta_info":{"completion_tokens":1}}\n\ndata: [DONE]\n\n'),
        (LLAMACPP, b""),
        (LLAMACPP, b"<html>"),
        (VLLM, b'data: {"choices":[{"text":"a","token_ids":[1],"finish_reason":"abort"}]}\n\n'),
    ],
)
def test_what_breaks_off_is_lost_and_costs_nothing(dialect: Dialect, body: bytes) -> None:
    """Nothing is kept of a part: it is asked again."""
    came = outcome(dialect, body)
    assert isinstance(came, Failure)
    assert (came.kind, came.billed) == (FailureKind.LOST, Billed.NO)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, b'{"error":{"message":"too long","type":"BadRequestError","code":400}}', FailureKind.REFUSED),
        (400, b'{"object":"error","message":"too long","code":400}', FailureKind.REFUSED),
        (422, b'{"detail":[{"msg":"field required"}]}', FailureKind.REFUSED),
        (401, b'{"error":"Unauthorized"}', FailureKind.KEY),
        (503, b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}', FailureKind.RATE_LIMIT),
        (500, b"Internal Server Error", FailureKind.LOST),
        (402, b'{"error":{"message":"odd","code":402}}', FailureKind.REFUSED),
    ],
)
def test_refusals_of_engines_cost_nothing(status: int, body: bytes, kind: FailureKind) -> None:
    """Each envelope that an engine has is read, and none is a bill."""
    failure = failure_of(bills=False)(status, {}, body)
    assert (failure.kind, failure.billed) == (kind, Billed.NO)
    assert failure.detail


def test_a_refusal_in_a_stream_is_one() -> None:
    """SGLang answers a bad streamed request with status 200 and an error in it."""
    event = {
        "error": {"message": "The input (900 tokens) is longer than the context", "type": "BadRequest", "code": 400}
    }
    came = outcome(SGLANG, b"data: %s\n\ndata: [DONE]\n\n" % msgspec.json.encode(event))
    assert isinstance(came, Failure)
    assert came.kind is FailureKind.REFUSED


def test_bodies_hold_what_bounds_and_shapes_an_answer(kimi: Loaded) -> None:
    """max_tokens and sampling go by each engine's own names; llama.cpp's own cuts of the distribution are undone."""
    bodies = {name: json.loads(backend(dialect).body(PROMPT, ask(kimi, dialect, 9))) for name, dialect in WITH_IDS}
    assert bodies["sglang"]["max_tokens"] == 9  # the chat, last of its name
    assert bodies["llamacpp"]["n_predict"] == 9
    assert bodies["llamacpp"] | {"top_k": 0, "min_p": 0.0, "temperature": 1.0, "top_p": 0.95} == bodies["llamacpp"]
    native = json.loads(backend(SGLANG).body(PROMPT, ask(kimi, SGLANG, 9)))
    assert native["sampling_params"]["max_new_tokens"] == 9
    assert native["sampling_params"]["stop_token_ids"] == list(kimi.stops)
    chat = json.loads(backend(OPENAI).body(PROMPT, ask(kimi, OPENAI, 9, thinking=False)))
    assert chat["chat_template_kwargs"] == {"thinking": False, "enable_thinking": False}
    assert chat["messages"] == list(QUESTION)


def test_more_of_the_users_joins_what_is_asked(kimi: Loaded) -> None:
    """extra_body keeps the tables that it only adds to."""
    more = backend(SGLANG, extra_body={"sampling_params": {"top_k": 5}, "priority": 1})
    body = json.loads(more.body(PROMPT, ask(kimi, SGLANG, 9)))
    assert (body["sampling_params"]["top_k"], body["sampling_params"]["max_new_tokens"], body["priority"]) == (5, 9, 1)


@pytest.mark.parametrize(
    ("url", "tag", "root"),
    [
        ("http://127.0.0.1:8000/v1", "127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("https://gpu.example/llm/v1", "gpu.example:443", "https://gpu.example/llm"),
        ("http://gpu.example", "gpu.example:80", "http://gpu.example"),
    ],
)
def test_an_address_names_a_replica(url: str, tag: str, root: str) -> None:
    """With or without the /v1 that clients want."""
    assert (tag_of(url), root_of(url)) == (tag, root)


def test_a_reader_process_is_told_the_form_by_name() -> None:
    """Every form has a reader, and it starts with nothing."""
    for wire in Wire:
        fresh = answer(wire)
        assert (fresh.tokens, fresh.started, fresh.done) == (0, False, False)
