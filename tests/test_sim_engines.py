"""Stand-ins against the shapes that are documented, and what they say against what they sampled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eyas.families import Loaded
from eyas.sim.engines import Modes, Streams, Told
from tests import enginekit as kit
from tests.vocabularies import bound

SAMPLES = json.loads((Path(__file__).parent / "data" / "engines" / "samples.json").read_text())
NATIVE = ["vllm", "sglang", "llamacpp"]
CHAT = "/v1/chat/completions"
TOOL = {"type": "function", "function": {"name": "find_paper", "parameters": {"type": "object", "properties": {}}}}


def prompt(loaded: Loaded, text: str = "What is it?", thinking: bool = True) -> list[int]:
    """The ids of a question."""
    return loaded.prompt_ids([{"role": "user", "content": text}], (), thinking)


def chat(text: str = "What is it?", **more: Any) -> dict[str, Any]:
    """The same question as a chat request."""
    return {"model": kit.MODEL, "messages": [{"role": "user", "content": text}], **more}


def fits(value: Any, sample: Any, at: str = "") -> None:
    """The same keys and kinds of values, at every depth; null in the sample stands for any."""
    if isinstance(sample, dict):
        assert isinstance(value, dict), at
        assert set(value) == set(sample), at
        for key in sample:
            fits(value[key], sample[key], f"{at}.{key}")
    elif isinstance(sample, list):
        assert isinstance(value, list), at
        assert bool(value) == bool(sample), at
        for each in value:
            fits(each, sample[0], f"{at}[]")
    elif sample is not None:
        assert isinstance(value, type(sample)), f"{at}: {value!r}"


def said(name: str, events: list[Any], *, cumulative: bool = False) -> tuple[str, list[int]]:
    """Text and ids of a stream's events or of a whole answer."""
    if name == "vllm":
        choices = [choice for event in events for choice in event["choices"]]
        texts, ids = [each["text"] for each in choices], [each["token_ids"] for each in choices]
    elif name == "sglang":
        kept = events[-1:] if cumulative else events
        texts, ids = [each["text"] for each in kept], [each["output_ids"] for each in kept]
    else:
        texts, ids = [each["content"] for each in events], [each["tokens"] for each in events]
    return "".join(texts), [number for some in ids for number in some]


def text_of(name: str, loaded: Loaded, ids: list[int]) -> str:
    """The text that a server gives with such ids: without the stop token; llama.cpp has no text for any special."""
    silent = set(loaded.vocab.specials.values()) if name == "llamacpp" else {loaded.stop}
    return loaded.vocab.decode([number for number in ids if number not in silent])


def test_the_native_forms_have_the_documented_shapes(kimi: Loaded) -> None:
    """First event, last event, whole answer and refusal of each wire."""
    ids = prompt(kimi)
    for name in NATIVE:
        server, path = kit.engine(name, kimi), kit.PATHS[name]
        events = kit.post(server, path, kit.by_ids(name, ids, 9999, stream=True)).events
        fits(events[0], SAMPLES["vllm_chunk" if name == "vllm" else f"{name}_event"]["sample"])
        last = {"vllm": "vllm_usage", "sglang": "sglang_whole", "llamacpp": "llamacpp_whole"}[name]
        sample = SAMPLES[last]["sample"] | ({"tokens": []} if name == "llamacpp" else {})
        fits(events[-1], sample)
        whole = kit.post(server, path, kit.by_ids(name, ids, 9999, stream=False))
        fits(whole.json, SAMPLES[f"{name}_whole"]["sample"])
        refused = kit.post(server, path, kit.by_ids(name, [kimi.vocab.size + 1000], 9999, stream=False))
        assert refused.status == 400
        fits(refused.json, SAMPLES[f"{name}_error"]["sample"])


def test_chat_has_the_documented_shapes(kimi: Loaded) -> None:
    """Chunks, whole answers and refusals; vLLM's first chunk carries the prompt's ids at its top."""
    server = kit.engine("openai", kimi)
    fits(kit.post(server, CHAT, chat(stream=True)).events[0], SAMPLES["openai_chunk"]["sample"])
    whole = kit.post(server, CHAT, chat()).json
    fits(whole, SAMPLES["openai_whole"]["sample"])
    refused = kit.post(server, CHAT, chat(model="other"))
    assert refused.status == 404
    fits(refused.json, SAMPLES["openai_error"]["sample"])
    vllm = kit.engine("vllm", kimi)
    events = kit.post(vllm, CHAT, chat(stream=True, return_token_ids=True)).events
    fits(events[0], SAMPLES["vllm_chat_first"]["sample"])
    assert events[0]["prompt_token_ids"] == prompt(kimi)
    choices = [event["choices"][0] for event in events[1:]]
    texts = {field: "".join(each["delta"].get(field) or "" for each in choices) for field in ("reasoning", "content")}
    assert texts == {"reasoning": whole["choices"][0]["message"]["reasoning_content"],
                     "content": whole["choices"][0]["message"]["content"]}  # fmt: skip
    assert [number for each in choices for number in each["token_ids"]] == kit.get(vllm, "/counts?ids=1")["answers"][0][
        "ids"
    ]


def test_one_prompt_has_one_answer_on_every_wire(kimi: Loaded) -> None:
    """The sampled ids depend on prompt and seed alone: not on the wire, on who renders, on streaming, on the limit."""
    found = list[list[int]]()
    for name in NATIVE:
        server = kit.engine(name, kimi, seed=3)
        for stream in (True, False):
            kit.post(server, kit.PATHS[name], kit.by_ids(name, prompt(kimi), 9999, stream=stream))
        kit.post(server, CHAT, chat())
        kit.post(server, kit.PATHS[name], kit.by_ids(name, prompt(kimi), 7, stream=True))
        found += [row["ids"] for row in kit.get(server, "/counts?ids=1")["answers"]]
    assert {tuple(ids[:7]) for ids in found} == {tuple(found[0][:7])}
    assert sorted({len(ids) for ids in found}) == [7, len(found[0])]
    other = kit.engine("vllm", kimi, seed=4)
    kit.post(other, CHAT, chat())
    assert kit.get(other, "/counts?ids=1")["answers"][0]["ids"] != found[0]


@pytest.mark.parametrize("name", NATIVE)
@settings(max_examples=25)
@given(
    text=st.text(min_size=1, max_size=20), most=st.integers(1, 300), stream=st.booleans(), interval=st.integers(1, 5)
)
def test_the_text_is_what_the_ids_say(
    kimi: Loaded, name: str, text: str, most: int, stream: bool, interval: int
) -> None:
    """Decoded ids are the text, whole or streamed; only a character that never became whole may be missing or replaced."""
    scenario = replace(kit.SHORT, drift=0.5)
    server = kit.engine(name, kimi, scenario, interval=interval, streams=Streams.INCREMENTAL)
    heard = kit.post(server, kit.PATHS[name], kit.by_ids(name, prompt(kimi, text), most, stream=stream))
    shown, ids = said(name, heard.events if stream else [heard.json])
    sampled = kit.get(server, "/counts?ids=1")["answers"][0]["ids"]
    wanted = text_of(name, kimi, sampled)
    assert shown == wanted or (len(sampled) == most and shown == wanted.rstrip("\ufffd"))
    if name != "llamacpp" or not stream:
        assert ids == sampled


def test_sglang_streams_all_so_far_or_what_is_new(kimi: Loaded) -> None:
    """Both ways end with the same text and ids; completion_tokens counts all in both."""
    bodies = kit.by_ids("sglang", prompt(kimi), 200, stream=True)
    both = {
        streams: kit.post(kit.engine("sglang", kimi, streams=streams), "/generate", bodies).events
        for streams in Streams
    }
    whole, pieces = both[Streams.CUMULATIVE], both[Streams.INCREMENTAL]
    assert said("sglang", whole, cumulative=True) == said("sglang", pieces)
    assert [len(each["output_ids"]) for each in whole] == [each["meta_info"]["completion_tokens"] for each in whole]
    assert {len(each["output_ids"]) for each in pieces} == {1}
    assert pieces[-1]["meta_info"]["completion_tokens"] == len(pieces)


@pytest.mark.parametrize("name", NATIVE)
def test_the_stop_token_is_told_or_left_out_or_no_ids_at_all(kimi: Loaded, name: str) -> None:
    """It never stands in the text, and is always counted; an old server answers without the fields."""
    counts, sampled = set[int](), list[int]()
    for told in Told:
        server = kit.engine(name, kimi, told=told, streams=Streams.INCREMENTAL)
        for stream in (True, False):
            heard = kit.post(server, kit.PATHS[name], kit.by_ids(name, prompt(kimi), 9999, stream=stream))
            sampled = kit.get(server, "/counts?ids=1")["answers"][0]["ids"]
            assert sampled[-1] == kimi.stop
            events = heard.events if stream else [heard.json]
            counts.add(_counted(name, events[-1]))
            if told is Told.NONE:
                assert b"output_ids" not in heard.body
                assert b'"token_ids"' not in heard.body
                assert b'"tokens":[1' not in heard.body
                continue
            shown, ids = said(name, events)
            assert shown == text_of(name, kimi, sampled)
            assert ids == (sampled if told is Told.ALL else sampled[:-1])
    assert counts == {len(sampled)}


def _counted(name: str, last: Any) -> int:
    if name == "llamacpp":
        return last["tokens_predicted"]
    return last["usage"]["completion_tokens"] if name == "vllm" else last["meta_info"]["completion_tokens"]


def test_llama_cpp_loses_ids_of_broken_characters_in_a_stream_only(kimi: Loaded) -> None:
    """Where a character takes several tokens, the stream has all of the text and fewer ids; the whole answer has them all."""
    server, lost = kit.engine("llamacpp", kimi, replace(kit.SHORT, length_median=200.0)), 0
    for number in range(12):
        ids = prompt(kimi, f"Question {number}")
        streamed = said(
            "llamacpp", kit.post(server, "/completion", kit.by_ids("llamacpp", ids, 9999, stream=True)).events
        )
        whole = said(
            "llamacpp", [kit.post(server, "/completion", kit.by_ids("llamacpp", ids, 9999, stream=False)).json]
        )
        assert streamed[0] == whole[0]
        assert len(streamed[1]) <= len(whole[1])
        lost += len(whole[1]) - len(streamed[1])
    assert lost > 0


@pytest.mark.parametrize("family", ["kimi-k2.5", "qwen3", "glm-4.6", "deepseek-v3.1", "qwen3-instruct-2507", "gpt-oss"])
def test_the_mode_is_read_from_the_end_of_the_prompt(family: str, request: pytest.FixtureRequest) -> None:
    """As a model sees it: each family's prompts for thinking and for not thinking are told apart."""
    loaded = bound(family, request)
    modes = Modes(loaded)
    for thinking in (True, False):
        if modes.has(thinking):
            assert modes.of(prompt(loaded, "Why? <think>", thinking)) is thinking
    server = kit.engine("vllm", loaded)
    heard = kit.post(
        server, "/v1/completions", kit.by_ids("vllm", prompt(loaded, thinking=modes.default), 9999, stream=False)
    )
    shown, ids = said("vllm", [heard.json])
    assert ids[-1] == loaded.stop
    assert shown == text_of("vllm", loaded, ids)


def test_a_declared_tool_is_called_alike_in_ids_and_in_chat(kimi: Loaded) -> None:
    """The name comes out of the prompt; the family's own syntax is sampled, and a chat server gives the parsed call."""
    scenario = replace(kit.SHORT, tool_share=1.0)
    server = kit.engine("vllm", kimi, scenario)
    for stream in (False, True):
        heard = kit.post(server, CHAT, chat(tools=[TOOL], stream=stream, return_token_ids=True))
        events = heard.events if stream else [heard.json]
        choices = [event["choices"][0] for event in events]
        said_here = [each["delta" if stream else "message"] for each in choices]
        calls = [call for each in said_here for call in each.get("tool_calls") or ()]
        assert [call["function"]["name"] for call in calls] == ["find_paper"]
        assert json.loads(calls[0]["function"]["arguments"]).keys() == {"query", "limit"}
        assert choices[-1]["finish_reason"] == "tool_calls"
    ids = kimi.prompt_ids(chat()["messages"], [TOOL], True)
    heard = kit.post(server, "/v1/completions", kit.by_ids("vllm", ids, 9999, stream=False))
    assert "<|tool_call_begin|>functions.find_paper:0<|tool_call_argument_begin|>" in heard.json["choices"][0]["text"]
    assert heard.json["choices"][0]["finish_reason"] == "stop"


def test_logprobs_carry_the_bytes_of_every_sampled_token(kimi: Loaded) -> None:
    """A chat server that is asked for logprobs tells the whole raw form, stop token included."""
    server = kit.engine("openai", kimi)
    choice = kit.post(server, CHAT, chat(logprobs=True, top_logprobs=1)).json["choices"][0]
    sampled = kit.get(server, "/counts?ids=1")["answers"][0]["ids"]
    assert [bytes(row["bytes"]) for row in choice["logprobs"]["content"]] == [
        kimi.vocab.token_bytes(each) for each in sampled
    ]


def test_what_does_not_fit_the_context_is_refused_as_the_engine_does(kimi: Loaded) -> None:
    """Prompt and answer together count at vLLM and SGLang, whose stream refuses with status 200; llama.cpp cuts the answer."""
    ids = prompt(kimi)
    room = len(ids) + 10
    for name in ("vllm", "sglang"):
        server = kit.engine(name, kimi, context=room)
        assert kit.post(server, kit.PATHS[name], kit.by_ids(name, ids, 10, stream=False)).status == 200
        assert kit.post(server, kit.PATHS[name], kit.by_ids(name, ids, 11, stream=False)).status == 400
    amid = kit.post(server, "/generate", kit.by_ids("sglang", ids, 11, stream=True))
    assert (amid.status, amid.events[0]["error"]["code"]) == (200, 400)
    llama = kit.engine("llamacpp", kimi, context=room)
    cut = kit.post(llama, "/completion", kit.by_ids("llamacpp", ids, 9999, stream=False)).json
    assert (cut["stop_type"], cut["truncated"], cut["tokens_predicted"]) == ("limit", False, 10)
    full = kit.post(
        kit.engine("llamacpp", kimi, context=len(ids)), "/completion", kit.by_ids("llamacpp", ids, 5, stream=False)
    )
    assert (full.status, full.json["error"]["type"]) == (400, "exceed_context_size_error")


def test_each_says_of_itself_what_a_client_asks_before_it_starts(kimi: Loaded) -> None:
    """Model, context, version, slots, and the tokenizer that its users can check against theirs."""
    text, ids = "Hello <|im_end|>", kimi.vocab.encode_special("Hello <|im_end|>")
    vllm = kit.engine("vllm", kimi, context=4096)
    card = kit.get(vllm, "/v1/models")["data"][0]
    assert (card["id"], card["max_model_len"], kit.get(vllm, "/version")) == (kit.MODEL, 4096, {"version": "0.11.0"})
    assert kit.post(vllm, "/tokenize", {"prompt": text}).json["tokens"] == ids
    sglang = kit.engine("sglang", kimi, slots=7, streams=Streams.INCREMENTAL)
    assert kit.get(sglang, "/get_model_info")["model_path"] == kit.MODEL
    info = kit.get(sglang, "/server_info")
    assert (info["incremental_streaming_output"], info["max_running_requests"]) == (True, 7)
    llama = kit.engine("llamacpp", kimi, slots=3, context=2048)
    props = kit.get(llama, "/props")
    assert (props["default_generation_settings"]["n_ctx"], props["total_slots"]) == (2048, 3)
    assert kit.post(llama, "/tokenize", {"content": text}).json["tokens"] == ids
    assert kit.post(llama, "/tokenize", {"content": text, "parse_special": False}).json["tokens"] == kimi.vocab.encode(
        text
    )
    assert kit.post(llama, "/nowhere", {}).status == 404
