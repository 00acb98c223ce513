"""Answers without text: they end when written ones do, count and cost the same; providers' limits and their batching."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from eyas.backends.stream import Stream
from eyas.errors import BrokenError
from eyas.families import Loaded
from eyas.sim import Capacity, Faults, Provider, Scenario, World
from eyas.sim.clock import now, play
from eyas.sim.light import Light, LightVocabulary, count_prompt, spell, spelled
from eyas.sim.played import PlayedTransport
from eyas.sim.slots import Buckets, Slots
from eyas.transport import Deadlines, Request
from eyas.types import Completion

PROVIDER = Provider(
    name="One", tag="one/int4", quantization="int4", prompt="0.0000005", completion="0.000002", tps=20.0, tps_sigma=0.0,
    cancel_stops=True,
)  # fmt: skip
PLAIN = Scenario(name="plain", providers=(PROVIDER,), ttft=1.0, length_median=5000.0, comments=0.0, keep_ids=False)
LIMIT = 300
"""Far below the lengths that are drawn, so that every answer has just as many tokens."""


def light(scenario: Scenario, seed: int = 0) -> World:
    """A world that plays no text."""
    return World(scenario, seed, LightVocabulary(), now, count_prompt, Light())


def body(number: int, **more: Any) -> bytes:
    """A request for one answer."""
    message = {"role": "user", "content": spell(f"A/{number}", 50)}
    return json.dumps(
        {"model": PLAIN.model, "messages": [message], "stream": True, "max_tokens": LIMIT, **more}
    ).encode()


async def ask(transport: PlayedTransport, data: bytes) -> tuple[float, Any]:
    """When an answer had ended, and what came of it."""
    stream = Stream()
    request = Request("POST", "http://sim/api/v1/chat/completions", {"Authorization": "Bearer sk"}, data)
    async with transport.open(request, Deadlines()) as response:
        if response.status != 200:
            return now(), (response.status, response.headers.get("retry-after"))
        await response.read(stream.feed)
    stream.end()
    return now(), stream.outcome()


def asked(make: Callable[[], World], count: int) -> tuple[World, list[tuple[float, Any]]]:
    """So many answers asked for at once; times are from the start."""

    async def main() -> tuple[World, list[tuple[float, Any]]]:
        world, began = make(), now()
        transport = PlayedTransport(world.handle)
        tasks = [asyncio.ensure_future(ask(transport, body(number))) for number in range(count)]
        found = [await task for task in tasks]
        return world, [(at - began, outcome) for at, outcome in found]

    return play(main)


@pytest.mark.parametrize("batching", [0.0, 4.0])
def test_a_light_answer_ends_when_a_written_one_does_and_costs_the_same(kimi: Loaded, batching: float) -> None:
    """Both take first token + tokens / speed, slower where the provider batches; counts and bills are equal."""
    scenario = replace(PLAIN, providers=(replace(PROVIDER, batching=batching),))
    written = asked(lambda: World(scenario, 0, kimi.vocab, now, lambda *_: 50), 6)
    counted = asked(lambda: light(scenario), 6)
    for (at, answer), (there, text) in zip(counted[1], written[1], strict=True):
        assert isinstance(answer, Completion)
        assert at == pytest.approx(there, rel=0.03)
        assert answer.usage.completion_tokens == text.usage.completion_tokens == LIMIT
    assert counted[0].books.billed == written[0].books.billed
    slowest = 1 + LIMIT / 20.0 * (1 + (6 / batching if batching else 0))
    assert max(at for at, _ in counted[1]) == pytest.approx(slowest, rel=0.5)


def test_how_far_a_light_answer_has_come_is_known_at_any_time() -> None:
    """Tokens follow the clock from the first one on, and stand still when the client goes away, which ends the bill."""

    async def main() -> list[int]:
        world = light(PLAIN)
        transport = PlayedTransport(world.handle)
        task = asyncio.ensure_future(ask(transport, body(1)))
        seen = list[int]()
        for _ in range(4):
            await asyncio.sleep(2.0)
            seen.append(world.sent(next(iter(world.books.entries))))
        task.cancel()
        await asyncio.sleep(5.0)
        entry = next(iter(world.books.entries.values()))
        assert entry.status == "cancelled"
        assert entry.produced == entry.counts.completion == world.sent(entry.id)
        return [*seen, entry.produced]

    first, second, third, fourth, last = play(main)
    assert 0 < first < second < third < fourth <= last + 1 < LIMIT
    assert third - second == pytest.approx(40, abs=1)


@pytest.mark.parametrize(
    "fault", ["cut_close", "cut_reset", "error_chunk", "finish_error", "hang", "stall", "no_usage"]
)
def test_faults_befall_light_answers_as_they_do_written_ones(fault: str) -> None:
    """A cut comes amid the tokens and counts what came; a stall only takes longer."""
    scenario = replace(PLAIN, faults=replace(Faults(), **{fault: 1.0}), stall_seconds=30.0)

    async def main() -> tuple[Any, World]:
        world = light(scenario)
        try:
            return (await ask(PlayedTransport(world.handle), body(1)))[1], world
        except BrokenError as error:
            return error, world

    _, world = play(main)
    (entry,) = world.books.entries.values()
    assert entry.fault == fault
    whole = fault in ("stall", "no_usage")
    assert (entry.sent == entry.total == LIMIT) == whole
    assert 0 < entry.sent <= LIMIT
    assert (entry.status == "full") == whole
    seconds = entry.ended - entry.accepted
    assert (seconds > 16 + 25) == (fault in ("stall", "hang"))


def test_a_full_or_hurried_provider_refuses_and_says_when_to_come_back() -> None:
    """Requests beyond its second's worth get 429 with Retry-After 1; beyond its slots, half of them the scenario's wait."""
    few = replace(PLAIN, providers=(replace(PROVIDER, per_second=3.0),))
    _, found = asked(lambda: light(few), 8)
    refused = [outcome for _, outcome in found if not isinstance(outcome, Completion)]
    assert refused == [(429, "1")] * 5
    full = replace(PLAIN, providers=(replace(PROVIDER, slots=4),), retry_after=(5, 5))
    _, found = asked(lambda: light(full), 24)
    refused = [outcome for _, outcome in found if not isinstance(outcome, Completion)]
    assert len(refused) == 20
    assert {wait for _, wait in refused} == {None, "5"}


def test_a_provider_may_have_fewer_slots_for_a_while() -> None:
    """From start to end of a capacity only its share of the slots is there."""
    scenario = replace(
        PLAIN, providers=(replace(PROVIDER, slots=10),), capacities=(Capacity("one/int4", 0.0, 60.0, 0.5),)
    )
    _, found = asked(lambda: light(scenario), 10)
    assert sum(isinstance(outcome, Completion) for _, outcome in found) == 5


def test_batching_slows_everyone_and_its_clock_never_goes_back() -> None:
    """With n answers each comes at 1 / (1 + n / batching) of its speed."""
    slots = Slots({"a": 2.0})
    assert slots.pace("a") == 1.0
    assert slots.take("a", 2, 0.0)
    assert slots.take("a", 2, 0.0)
    assert not slots.take("a", 2, 0.0)
    assert slots.pace("a") == 0.5
    assert slots.worked("a", 10.0) == pytest.approx(5.0)
    slots.free("a", 10.0)
    assert slots.worked("a", 16.0) == pytest.approx(5.0 + 6.0 / 1.5)
    assert slots.worked("b", 16.0) == 16.0


def test_a_bucket_has_the_burst_of_one_second() -> None:
    """It is full at first, fills by its rate, and never above it."""
    bucket = Buckets()
    assert [bucket.take("a", 2.0, 0.0) for _ in range(3)] == [True, True, False]
    assert bucket.take("a", 2.0, 0.5)
    assert [bucket.take("a", 2.0, 100.0) for _ in range(3)] == [True, True, False]
    assert all(bucket.take("b", 0.0, 0.0) for _ in range(100))


def test_a_text_says_how_many_tokens_it_stands_for() -> None:
    """The number behind the last colon; a text without one stands for none."""
    assert spelled(spell("A/1:2", 57)) == 57
    assert spelled("how are you?") == 0
    assert len(LightVocabulary().encode(spell("", 3))) == 3
