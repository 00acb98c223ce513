"""Routes, sampling, what changed, and I4: a resumed run owes exactly what is not ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.config import RunConfig, parse
from eyas.errors import UsageError
from eyas.events import AnyEvent, Intent, PromptAdded, PromptRemoved, SessionOpened, Settled
from eyas.ledger import cost_of, prompt_upper, reservation
from eyas.plan import GATEWAY, change, owed, routes, sampling
from eyas.state import State, fold
from eyas.types import Endpoint, FailureKind, Prices, Prompt, Verdict, Work

TOML = """
[run]
dir = "r"
[target]
model = "moonshotai/kimi-k2.5"
temperature = 0.9
[budget]
usd = 10
[providers]
routing = "{routing}"
[[datasets]]
name = "A"
source = "a"
samples = 2
[[datasets]]
name = "B"
source = "b"
temperature = 0.2
top_p = 0.5
"""
PRESET = {"temperature": 1.0, "top_p": 0.95}


def config(routing: str = "pinned") -> RunConfig:
    """Two datasets; A asks each prompt twice."""
    return parse(TOML.format(routing=routing), Path("RUN.toml"))


def endpoint(tag: str, prompt: int, completion: int, **more: Any) -> Endpoint:
    """An endpoint at so many nano-dollars a million."""
    return Endpoint("moonshotai/kimi-k2.5", tag, tag.split("/", maxsplit=1)[0], tag, Prices(prompt, completion), **more)


def prompt(dataset: str, number: int) -> Prompt:
    """A prompt."""
    return Prompt(f"{number:016x}", dataset, ({"role": "user", "content": str(number)},))


def test_routes_are_cheapest_first_one_a_tag() -> None:
    """Pinned: output weighs four times input; twins share a route at the dearer price; each block names its tag only."""
    dear, cheap = endpoint("dear/int4", 1, 9_000), endpoint("cheap/int4", 4_000, 1_000)
    twins = [endpoint("twin/int4", 2_000, 1_000), endpoint("twin/int4", 1_000, 5_000)]
    found = routes(config(), [dear, *twins, cheap])
    assert [route.tag for route in found] == ["cheap/int4", "twin/int4", "dear/int4"]
    assert found[1].prices == Prices(2_000, 5_000)
    assert found[1].endpoints == tuple(twins)
    for route in found:
        assert route.block["only"] == [route.tag]
        assert route.block["max_price"]["completion"] * 10**9 == pytest.approx(route.prices.completion)


def test_the_gateway_is_one_route_bound_by_the_dearest() -> None:
    """Where OpenRouter picks, every allowed tag is named and a reservation covers whichever serves."""
    both = [endpoint("a/int4", 1_000, 9_000), endpoint("b/int4", 4_000, 1_000)]
    (route,) = routes(config("gateway"), both)
    assert (route.tag, route.prices) == (GATEWAY, Prices(4_000, 9_000))
    assert route.block["only"] == ["a/int4", "b/int4"]
    assert route.block["allow_fallbacks"] is True
    for each in both:
        assert cost_of(each.prices, prompt_upper(500), 700) <= reservation(route.prices, 500, 700)


def test_without_an_endpoint_nothing_starts() -> None:
    """The error says how to see why each is excluded."""
    with pytest.raises(UsageError, match=r"eyas providers moonshotai/kimi-k2\.5"):
        routes(config(), [])


def test_barred_siblings_are_ignored_on_the_route_of_a_bare_tag() -> None:
    """A bare tag means all of its provider's endpoints to the API."""
    (route,) = routes(config(), [endpoint("x", 1, 1)], [endpoint("x/fp4", 1, 1)])
    assert route.block["ignore"] == ["x/fp4"]


def test_a_route_serves_what_one_of_its_endpoints_takes() -> None:
    """The margin of the prompt count is part of the size."""
    (route,) = routes(config(), [endpoint("x", 1, 1, context=1000), endpoint("x", 1, 1, context=2000, max_output=100)])
    assert route.serves(100, 800, tools=False)
    assert not route.serves(200, 800, tools=False), "200 of ours may be 274 of theirs"
    assert route.serves(1700, 100, tools=False)


def test_sampling_is_the_datasets_then_the_targets_then_the_familys() -> None:
    """And nothing that an endpoint of the route fixes; one that lists no parameters takes all."""
    (open_route,) = routes(config(), [endpoint("x", 1, 1)])
    assert sampling(config(), "A", PRESET, open_route) == {"temperature": 0.9, "top_p": 0.95}
    assert sampling(config(), "B", PRESET, open_route) == {"temperature": 0.2, "top_p": 0.5}
    assert sampling(config(), "A", {}, open_route) == {"temperature": 0.9}
    (fixed,) = routes(config(), [endpoint("x", 1, 1, parameters=("max_tokens", "top_p")), endpoint("x", 1, 1)])
    assert sampling(config(), "A", PRESET, fixed) == {"top_p": 0.95}


def test_what_the_sources_have_more_or_less() -> None:
    """New prompts are added, missing ones named, a dropped dataset counts as removed, order does not matter."""
    events: list[AnyEvent] = [SessionOpened(at=0.0, model="m", cap=None, quotas={"A": None, "C": None})]
    for name, number in (("A", 1), ("A", 2), ("C", 3)):
        events.append(PromptAdded(at=0.0, dataset=name, prompt_id=f"{number:016x}", tokens=5))
    found = change(fold(events), [prompt("B", 1), prompt("A", 2), prompt("A", 9)])
    assert found.added == (prompt("B", 1), prompt("A", 9))
    assert found.removed == (("A", f"{1:016x}"), ("C", f"{3:016x}"))
    gone = PromptRemoved(at=0.0, dataset="A", prompt_id=f"{1:016x}")
    assert change(fold([*events, gone]), [prompt("A", 2)]).removed == (("C", f"{3:016x}"),)
    assert change(State(), [prompt("A", 1)]).added == (prompt("A", 1),)


OUTCOMES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 1), st.none() | st.sampled_from(Verdict), st.booleans()), max_size=25
)


@given(OUTCOMES)
def test_a_resumed_run_owes_exactly_what_is_not_ended(outcomes: list[tuple[int, int, Verdict | None, bool]]) -> None:
    """I4: works without an end, each once, in the order of the prompts; new rows too; what is answered never again."""
    prompts = [prompt("A" if number % 2 else "B", number) for number in range(6)]
    state = fold([SessionOpened(at=0.0, model="m", cap=None, quotas={"A": None, "B": None})])
    answered: set[Work] = set()
    ended: dict[Work, bool] = {}
    for attempt, (number, sample, verdict, known) in enumerate(outcomes, 1):
        dataset = prompts[number].dataset
        work = Work(dataset, prompts[number].id, 0, sample if dataset == "A" else 0)
        state.apply(Intent(at=1.0, attempt=attempt, work=work, number=1, tag="p", prices=Prices(1, 1), reserved=9))
        if verdict is None:
            continue
        kind = None if verdict is Verdict.DONE else FailureKind.CUT
        state.apply(Settled(at=2.0, attempt=attempt, verdict=verdict, cost=5 if known else None, tokens=1, kind=kind))
        if verdict in (Verdict.DONE, Verdict.PARTIAL):
            answered.add(work)
        ended[work] = verdict is not Verdict.AGAIN
    found = [work for work, _ in owed(config(), state, prompts)]
    wanted = [Work(p.dataset, p.id, 0, n) for p in prompts for n in range(2 if p.dataset == "A" else 1)]
    assert found == [work for work in wanted if work not in answered and not ended.get(work, False)]
    assert all(p.id == work.prompt_id and p.dataset == work.dataset for work, p in owed(config(), state, prompts))
    assert [work for work, _ in owed(config(), state, prompts[::-1])] != found or len({w.prompt_id for w in found}) < 2
