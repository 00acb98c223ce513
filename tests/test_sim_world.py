"""The simulated world without sockets: what it samples, counts, bills, refuses and breaks."""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from eyas.families.base import Loaded
from eyas.sim import Action, Faults, Outage, Reply, Scenario, World, load
from eyas.sim.scenarios.kimi import PROVIDERS

MODEL = "moonshotai/kimi-k2.5"
KEY = {"authorization": "Bearer sk-or-v1-test"}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}  # fmt: skip
CLEAN = replace(load("clean"), length_median=120.0, drift=0.0)
MakeWorld = Callable[..., tuple[World, "Play"]]


class Play:
    """Plays replies on a clock that only it moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self, reply: Reply, steps: int | None = None) -> tuple[bytes, Action | None]:
        """The body and what ended it; after so many steps the client goes away, and after a HANG too."""
        self.now += reply.wait
        out = list[bytes]()
        for delay, action in reply.steps:
            self.now += delay
            if isinstance(action, Action):
                (reply.cancelled if action is Action.HANG else reply.delivered)()
                return b"".join(out), action
            if steps is not None and len(out) == steps:
                reply.cancelled()
                return b"".join(out), None
            out.append(action)
        raise AssertionError("a reply must end")


@pytest.fixture
def make(kimi: Loaded) -> MakeWorld:
    """A world and its player."""

    def made(scenario: Scenario = CLEAN, seed: int = 1) -> tuple[World, Play]:
        play = Play()
        return World(scenario, seed, kimi.vocab, lambda: play.now, kimi.count_prompt), play

    return made


def ask(world: World, content: str = "Say hi", headers: Mapping[str, str] = KEY, **more: Any) -> Reply:
    """A chat request, streamed unless told otherwise."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "stream": True} | more
    return world.handle("POST", "/api/v1/chat/completions", headers, json.dumps(body).encode())


def events(body: bytes) -> list[dict[str, Any]]:
    """The chunks of a stream."""
    lines = (line[6:] for line in body.split(b"\n\n") if line.startswith(b"data: "))
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def pieces(body: bytes, channel: str) -> list[str]:
    """The pieces of one channel."""
    deltas = (event["choices"][0]["delta"] for event in events(body) if event["choices"])
    return [delta[channel] for delta in deltas if delta.get(channel)]


def usage(body: bytes) -> dict[str, Any]:
    """The usage of a stream."""
    return next(event["usage"] for event in events(body) if "usage" in event)


def only(tag: str, **more: Any) -> dict[str, Any]:
    """A provider block that pins one endpoint."""
    return {"provider": {"only": [tag], "allow_fallbacks": False}} | more


def test_usage_agrees_with_the_ids_at_every_provider(make: MakeWorld, kimi: Loaded) -> None:
    """Cost is prompt and completion tokens at the listed price, exactly; the books hold the ids that were counted."""
    for provider in PROVIDERS:
        world, play = make()
        raw, end = play(ask(world, **only(provider.tag)))
        entry = next(iter(world.books.entries.values()))
        said, ids = usage(raw), entry.ids()
        assert end is Action.END
        assert said["completion_tokens"] == len(ids) + provider.think_sampled - (not provider.stop_counted)
        rendered = kimi.count_prompt([{"role": "user", "content": "Say hi"}], [], True)
        assert said["prompt_tokens"] == rendered - provider.think_sampled
        cost = said["prompt_tokens"] * Decimal(provider.prompt) + said["completion_tokens"] * Decimal(
            provider.completion
        )
        assert entry.counts.cost == cost * 10**9
        assert b'"cost":' + f"{cost.normalize():f}".encode() + b"," in raw
        assert (entry.status, entry.provider) == ("full", provider.name)


def test_text_keeps_or_loses_what_the_provider_keeps_or_loses(make: MakeWorld, kimi: Loaded) -> None:
    """Whitespace, the trailing-space artefact, and pieces that are tokens where they are meant to be."""
    for provider in PROVIDERS:
        world, play = make()
        raw, _ = play(ask(world, **only(provider.tag)))
        entry = next(iter(world.books.entries.values()))
        for channel in ("reasoning", "content"):
            sampled = kimi.vocab.decode(entry.ids(channel))
            shown = "".join(pieces(raw, channel))
            sampled += " " * (provider.trailing_space and channel == "reasoning")
            stripped = {"none": sampled, "leading": sampled.lstrip(), "both": sampled.strip()}[provider.strip]
            assert shown == stripped
            if provider.cut == "token" and provider.strip == "none":
                assert sum(len(kimi.vocab.encode(piece)) == 1 for piece in pieces(raw, channel)) > 0.8 * len(
                    entry.ids(channel)
                )


def test_whole_answer_says_what_the_stream_says(make: MakeWorld) -> None:
    """Not streamed: whitespace first, then one body with the same text and counts."""
    world, play = make()
    for tag in ("chutes/int4", "modelrun/fp8", "siliconflow/int4", "atlas-cloud/int4"):
        streamed, _ = play(ask(world, tools=[TOOL], **only(tag)))
        raw, end = play(ask(world, tools=[TOOL], stream=False, **only(tag)))
        answer = json.loads(raw)
        message = answer["choices"][0]["message"]
        assert raw.startswith(b"\n         \n\n")
        assert end is Action.END
        assert message["reasoning"] == "".join(pieces(streamed, "reasoning"))
        assert (message["content"] or "") == "".join(pieces(streamed, "content"))
        assert answer["usage"] == usage(streamed)
        joined = ["".join(c["function"]["arguments"] for piece in pieces(streamed, "tool_calls") for c in piece if c["index"] == i)
                  for i in range(len(message.get("tool_calls", [])))]  # fmt: skip
        assert [call["function"]["arguments"] for call in message.get("tool_calls", [])] == joined


def test_outage_moves_requests_elsewhere(make: MakeWorld) -> None:
    """While a provider is away it answers 503, and a request that may fall back goes to the next."""
    world, play = make(replace(CLEAN, outages=(Outage("chutes/int4", 10.0, 20.0),)))
    play.now += 12
    assert ask(world, **only("chutes")).status == 503
    moved = ask(world, provider={"only": ["chutes", "inceptron"], "sort": "price"})
    assert world.books.entries[moved.generation_id or ""].provider == "Inceptron"
    play.now += 10
    assert ask(world, **only("chutes")).status == 200


def test_same_seed_same_bytes(make: MakeWorld) -> None:
    """A world replays; another seed or another sample of the same body does not repeat it."""
    rough = replace(load("rough"), length_median=80.0)
    runs = []
    for seed in (1, 1, 2):
        world, play = make(rough, seed)
        runs.append([play(ask(world, f"question {number % 20}")) for number in range(60)])
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert runs[0][0] != runs[0][20]


def test_refusals(make: MakeWorld) -> None:
    """No key, a wrong key, a bad body, another model, no endpoint, too long a prompt."""
    world, play = make(replace(CLEAN, keys=("good",)))
    good = {"authorization": "Bearer good"}
    assert ask(world, headers={}).status == 401
    assert ask(world).status == 401
    assert world.handle("POST", "/api/v1/chat/completions", good, b"{").status == 400
    assert ask(world, headers=good, model="a/b").status == 400
    assert ask(world, headers=good, max_tokens=262_144, **only("novita")).status == 404
    assert ask(world, headers=good, max_tokens=262_140, **only("inceptron")).status == 400
    none = ask(world, headers=good, max_tokens=65_536, **only("chutes"))
    error = json.loads(play(none)[0])["error"]
    assert (none.status, error["metadata"]["requested_providers"]) == (404, ["chutes"])
    assert "moonshotai" in error["metadata"]["available_providers"]
    assert world.books.billed == 0


def test_slots_are_taken_and_freed(make: MakeWorld) -> None:
    """A full provider answers 429 with its name; its slot comes back at the end, or later where it runs on alone."""
    world, play = make(replace(CLEAN, slots=1))
    first = ask(world, **only("inceptron"))
    full = ask(world, **only("inceptron"))
    error = json.loads(play(full)[0])["error"]
    assert (full.status, error["metadata"]["provider_name"]) == (429, "Inceptron")
    assert ask(world, provider={"only": ["inceptron", "chutes"]}).status == 200
    play(first, steps=8)
    assert ask(world, **only("inceptron")).status == 429
    play.now += 3600
    assert ask(world, **only("inceptron")).status == 200


def test_a_client_that_goes_away_stops_the_bill_where_it_does(make: MakeWorld) -> None:
    """Chutes bills what was sent, Inceptron to the end; the end of the one that runs on lies ahead."""
    world, play = make()
    for tag in ("chutes", "inceptron"):
        play(ask(world, **only(tag)), steps=25)
    stopped, ran_on = world.books.entries.values()
    assert stopped.status == ran_on.status == "cancelled"
    assert 0 < stopped.counts.completion == stopped.sent < stopped.total
    assert ran_on.produced == ran_on.total
    assert ran_on.ended is not None
    assert ran_on.ended > play.now
    assert world.purse.spent == stopped.counts.cost + ran_on.counts.cost


def test_generation_is_found_after_its_delay(make: MakeWorld) -> None:
    """404 at first, the exact cost later."""
    world, play = make()
    reply = ask(world)
    target = f"/api/v1/generation?id={reply.generation_id}"
    raw, _ = play(reply)
    assert world.handle("GET", target, KEY).status == 404
    play.now += CLEAN.generation_delay
    data = json.loads(play(world.handle("GET", target, KEY))[0])["data"]
    assert data["total_cost"] == usage(raw)["cost"]
    assert data["native_tokens_completion"] == usage(raw)["completion_tokens"]
    assert world.handle("GET", target, {"authorization": "Bearer other"}).status == 404


def test_response_cache(make: MakeWorld) -> None:
    """The identical body comes back for nothing, also when the client of the first left; not before it is finished."""
    world, play = make()
    cached = KEY | {"x-openrouter-cache": "true"}
    first = ask(world, headers=cached, **only("inceptron"))
    play(first, steps=12)
    early = ask(world, headers=cached, **only("inceptron"))
    play(early, steps=1)
    play.now += 200
    again = ask(world, headers=cached, **only("inceptron"))
    raw, end = play(again)
    assert (first.headers["X-OpenRouter-Cache-Status"], early.headers["X-OpenRouter-Cache-Status"]) == ("MISS", "MISS")
    assert (again.headers["X-OpenRouter-Cache-Status"], end) == ("HIT", Action.END)
    assert again.headers["X-OpenRouter-Cache-Source-Id"] in (first.generation_id, early.generation_id)
    assert usage(raw)["total_tokens"] == usage(raw)["cost"] == 0
    source = world.books.entries[again.headers["X-OpenRouter-Cache-Source-Id"]]
    assert world.books.entries[again.generation_id or ""].ids() == source.ids()
    assert ask(world, **only("inceptron")).headers.get("X-OpenRouter-Cache-Status") is None
    play.now += 400
    assert ask(world, headers=cached, **only("inceptron")).headers["X-OpenRouter-Cache-Status"] == "MISS"


def test_account_limits(make: MakeWorld) -> None:
    """Balance, key limit and the budget of requests in flight refuse by their own names."""
    sources = {}
    for field, amount in (("balance_usd", 0.001), ("key_limit_usd", 0.001), ("in_flight_budget_usd", 0.02)):
        world, play = make(replace(CLEAN, **{field: amount}))
        replies = [ask(world, max_tokens=4000, **only("chutes")) for _ in range(4)]
        last = json.loads(play(replies[-1])[0])["error"]["metadata"]
        sources[field] = (replies[-1].status, last["limit_source"], "Retry-After" in replies[-1].headers)
    assert sources == {
        "balance_usd": (402, "openrouter_credits", False),
        "key_limit_usd": (403, "openrouter_key_limit", False),
        "in_flight_budget_usd": (402, "openrouter_in_flight_budget", True),
    }


FAULTS = {
    "rate_limit": (429, Action.END), "unavailable": (503, Action.END), "server_error": (None, Action.END),
    "budget_402": (402, Action.END), "html": (None, Action.END), "reset": (0, Action.RESET),
    "error_200": (200, Action.END), "early_cut": (200, None), "error_chunk": (200, Action.END),
    "finish_error": (200, Action.END), "empty_choices": (200, Action.END), "empty_answer": (200, Action.END),
    "cut_close": (200, Action.END), "cut_reset": (200, Action.RESET), "hang": (200, Action.HANG),
    "stall": (200, Action.END), "no_usage": (200, Action.END), "no_done": (200, Action.END),
    "misserved": (200, Action.END), "wrong_mode": (200, Action.END),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_reached(make: MakeWorld, fault: str) -> None:
    """Each fault shows on the wire as it should, is counted, and costs what it should."""
    status, end = FAULTS[fault]
    world, play = make(replace(CLEAN, faults=Faults(**{fault: 1.0})))
    reply = ask(world, **only("chutes"))
    raw, ended = play(reply)
    assert status in (None, reply.status)
    assert end in (None, ended)
    assert world.books.faults == {fault: 1}
    entry = next(iter(world.books.entries.values()), None)
    complete = b'"finish_reason":"stop"' in raw and b'"usage"' in raw and raw.endswith(b"[DONE]\n\n")
    assert complete == (fault in ("stall", "misserved", "wrong_mode", "empty_answer"))
    if entry is None:
        assert fault in ("rate_limit", "unavailable", "server_error", "budget_402")
    elif fault in ("error_200", "finish_error", "empty_choices", "empty_answer", "html", "reset", "early_cut"):
        assert entry.counts.cost == 0
    else:
        assert entry.counts.cost > 0
    if fault == "misserved":
        assert events(raw)[0]["provider"] != "Chutes"
    if fault == "wrong_mode":
        assert not pieces(raw, "reasoning")


def test_faults_of_whole_answers_end_too(make: MakeWorld) -> None:
    """Every fault plays to its end without a stream as well."""
    for fault, (status, _) in FAULTS.items():
        world, play = make(replace(CLEAN, faults=Faults(**{fault: 1.0})))
        reply = ask(world, stream=False, **only("chutes"))
        raw, _ = play(reply)
        assert status in (None, reply.status)
        if fault in ("error_200", "error_chunk"):
            assert "error" in json.loads(raw)


def test_books_are_the_sum_of_what_was_said(make: MakeWorld) -> None:
    """Through a storm, what the usage blocks say of paid answers is what the books, the key and the purse say."""
    world, play = make(replace(load("storm"), length_median=60.0))
    said = 0
    for number in range(400):
        raw, _ = play(ask(world, f"question {number}"))
        said += sum(round(Decimal(str(event["usage"]["cost"])) * 10**9) for event in events(raw) if "usage" in event)
    unsaid = sum(entry.counts.cost for entry in world.books.entries.values()
                 if entry.status in ("cut", "cancelled") or entry.fault == "no_usage")  # fmt: skip
    assert said + unsaid == world.books.billed == world.purse.spent
    key = json.loads(play(world.handle("GET", "/api/v1/key", KEY))[0])["data"]
    assert round(key["usage"] * 10**9) == world.books.billed
    state = world.books.to_json(ids=True)
    assert state["in_flight"] == 0
    assert sum(row["billed_nano"] for row in state["entries"]) == state["billed_nano"]
    assert {"cut_reset", "error_200", "rate_limit"} <= set(state["faults"])


def test_rough_leaves_a_generation_id_behind_and_is_never_silent(make: MakeWorld) -> None:
    """No page, no reset before the headers, and no second of silence."""
    world, play = make(replace(load("rough"), length_median=300.0))
    for number in range(150):
        reply = ask(world, f"question {number}", provider={"quantizations": ["int4"], "sort": "price"})
        assert reply.status
        assert "html" not in reply.headers.get("Content-Type", "")
        for delay, action in reply.steps:
            assert delay <= 1.0 or number < 0
            if isinstance(action, Action):
                assert action is not Action.HANG
                reply.delivered()
                break
    assert play.now == 1000.0
