"""Answers cut on our side and finished on the provider's come back whole, for nothing, or not at all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

from msgspec.structs import replace

from eyas.engine.fetch import SURE_HITS, Fetches
from eyas.engine.recover import Repeat
from eyas.families import Loaded
from eyas.sim import Reply, Scenario, load
from eyas.sim import World as Sim
from eyas.types import Finish, Verdict
from tests.stage import Ending, Stage, counter
from tests.virtual import now, play

LONG = {"length_median": 300.0, "length_sigma": 0.3, "generation_delay": 1.0, "slots": 0}


def market() -> Scenario:
    """A clean market; of the providers asked none stops when a stream ends."""
    return replace(load("clean"), **LONG)


def killed_and_resumed(kimi: Loaded, *, cache: bool) -> tuple[Stage, Sim]:
    """A run of twice 20 prompts, 24 in flight, killed after 6 seconds, then run to its end and reconciled."""
    stage = Stage(
        kimi,
        prompts=20,
        in_flight=24,
        rng=random.Random(1),
        more={"target.max_tokens": 2000, "providers.ignore": ["chutes"]},
    )

    async def main() -> Sim:
        sim = Sim(market(), 3, kimi.vocab, now, counter(kimi))
        stage.sim = sim

        def handle(method: str, target: str, headers: Mapping[str, str], data: bytes = b"") -> Reply:
            known = {name: value for name, value in headers.items() if cache or "cache" not in name}
            return sim.handle(method, target, known, data)

        await stage.session(handle, Ending("pull", 6.0))
        await stage.session(handle)
        await asyncio.sleep(60)
        await stage.reconcile(handle)
        return sim

    return stage, play(main)


def test_what_a_kill_cut_comes_back_whole_and_costs_nothing_more(kimi: Loaded) -> None:
    """Providers ran on after the kill: every answer of the run is whole, and each generation is paid once."""
    stage, sim = killed_and_resumed(kimi, cache=True)
    fetched = [attempt for attempt in stage.state.attempts.values() if attempt.dropped]
    assert len(fetched) >= 5
    assert stage.ended() == {Verdict.DONE: 40}
    assert all(
        stage.state.attempt(known.answer or 0).settled.finish is Finish.STOP for known in stage.state.works.values()
    )
    paid = [entry for entry in sim.books.entries.values() if not entry.source]
    assert len(paid) == 40, "one generation a prompt"
    assert stage.state.money.settled == sim.books.billed
    assert stage.state.money.wasted == 0


def test_a_cache_that_keeps_nothing_is_hardly_asked(kimi: Loaded) -> None:
    """Where no lost answer comes back, no part that is kept is asked for again: it stays as it is."""
    stage, sim = killed_and_resumed(kimi, cache=False)
    assert stage.ended()[Verdict.PARTIAL] >= 5
    assert not any(attempt.dropped for attempt in stage.state.attempts.values())
    asked = [attempt.work for attempt in stage.state.attempts.values() if attempt.answered]
    assert len(asked) == len(set(asked)) == 40
    assert stage.state.money.settled == sim.books.billed


def test_fetches_start_after_sure_hits_and_never_outnumber_them() -> None:
    """Few at first, more with each that came back; after one that did not, none of that endpoint."""
    fetches = Fetches()
    fetches.ready.extend((None, Repeat(str(n), "t", fetch=True)) for n in range(20))  # pyright: ignore[reportArgumentType]
    for _ in range(SURE_HITS - 1):
        fetches.landed("t", hit=True, fetch=False)
        assert fetches.release() == []
    fetches.landed("t", hit=True, fetch=False)
    assert len(fetches.release()) == SURE_HITS
    assert fetches.release() == []
    fetches.landed("t", hit=True, fetch=True)
    assert len(fetches.release()) == 2
    fetches.ready.append((None, Repeat("other", "u", fetch=True)))  # pyright: ignore[reportArgumentType]
    fetches.landed("t", hit=False, fetch=True)
    assert [repeat.tag for _, repeat in fetches.release()] == ["u"]
