"""Mixing: tokens of several datasets come in the proportion of their weights, whatever their answers' lengths."""

from __future__ import annotations

import heapq
import random

import pytest

from eyas.engine.admit import Admitted, Candidate, Pool, Quotas, Strict
from eyas.engine.pace import Pace
from eyas.events import Intent, PromptAdded, SessionOpened, Settled
from eyas.forecast import Lengths
from eyas.plan import Route
from eyas.state import State
from eyas.types import Endpoint, Prices, Prompt, Verdict, Work
from tests.test_config import LEAST, read

MOST = 8192
MEDIANS = {"A": 200, "B": 1500, "C": 600}


def opened(prompts: int) -> tuple[State, Pool]:
    """A run of so many prompts over the sets, and all of them waiting."""
    state = State()
    state.apply(SessionOpened(at=0, model="m", cap=None, quotas=dict.fromkeys(MEDIANS), waste_limit=None))
    works = [Work(name, f"{n:016x}") for n in range(prompts // len(MEDIANS)) for name in MEDIANS]
    for work in works:
        state.apply(PromptAdded(at=0, dataset=work.dataset, prompt_id=work.prompt_id, tokens=10))
    return state, Pool.of(Candidate(work, Prompt(work.prompt_id, work.dataset, ()), 10) for work in works)


def bought(shares: dict[str, float], prompts: int, tokens: int, seed: int) -> dict[str, int]:
    """Tokens by dataset when so many are bought, 300 requests in flight; lengths are log-normal, a set's own."""
    rng = random.Random(seed)
    state, pool = opened(prompts)
    endpoint = Endpoint(
        model="m",
        provider="P",
        slug="p",
        tag="p/int4",
        quantization="int4",
        prices=Prices(1, 1),
        context=10**6,
        max_output=MOST,
    )
    quotas = Quotas(state, {name: Lengths(MOST) for name in MEDIANS}, shares)
    routes = (Route("p/int4", (endpoint,), endpoint.prices, {}),)
    admission = Strict(state, pool, quotas, routes, Pace(300), lambda _: MOST)
    flying: list[tuple[float, int, int, Work]] = []
    attempt, now, came = 0, 0.0, 0
    quotas.refresh({})
    while came < tokens:
        while len(flying) < 300 and isinstance(found := admission.next(now), Admitted):
            attempt += 1
            work = found.candidate.work
            state.apply(Intent(at=now, attempt=attempt, work=work, number=1, tag="p/int4", prices=endpoint.prices,
                               reserved=found.reserved))  # fmt: skip
            length = min(MOST, round(rng.lognormvariate(0, 0.9) * MEDIANS[work.dataset]) + 1)
            heapq.heappush(flying, (now + length, attempt, length, work))
        now, number, length, work = heapq.heappop(flying)
        state.apply(Settled(at=now, attempt=number, verdict=Verdict.DONE, cost=1, tokens=length))
        quotas.lengths[work.dataset].add(length)
        came += length
        so_far: dict[str, list[int]] = {}
        if number % 20 == 0:
            for ends, _, whole, other in flying:
                so_far.setdefault(other.dataset, []).append(max(0, round(whole - (ends - now))))
            quotas.refresh(so_far)
    for _, number, length, _ in flying:
        state.apply(Settled(at=now, attempt=number, verdict=Verdict.DONE, cost=1, tokens=length))
    return {name: state.datasets[name].quota.kept for name in MEDIANS}


@pytest.mark.parametrize("weights", [{"A": 1.0, "B": 1.0, "C": 1.0}, {"A": 1.0, "B": 6.0, "C": 3.0}])
def test_tokens_come_in_the_proportion_of_the_weights(weights: dict[str, float]) -> None:
    """10 000 prompts, answers of very different lengths: each set's share of the tokens is within 1 % of what is wanted."""
    kept = bought(weights, 10_000, 2_000_000, seed=1)
    total, whole = sum(kept.values()), sum(weights.values())
    for name, weight in weights.items():
        assert abs(kept[name] / total - weight / whole) < 0.01, kept


def test_shares_are_quotas_else_weights_else_none() -> None:
    """Quotas come first, weights where they differ; without either the sets take turns by the order of the run."""
    more = '[[datasets]]\nname = "B"\nsource = "s"\n'
    assert read(LEAST + more).shares == {}
    assert read(LEAST + more + "weight = 3\n").shares == {"A": 1.0, "B": 3.0}
    assert read(LEAST.replace("usd = 1", "usd = 1\noutput_tokens = 7") + more + "output_tokens = 9").shares == {
        "A": 7.0,
        "B": 9.0,
    }
