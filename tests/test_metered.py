"""Metered admission: likely costs and a margin instead of full reservations, and a stop-loss before the cap."""

from __future__ import annotations

import pytest

from eyas.engine.admit import Admitted, Candidate, Flying, Pool, Quotas
from eyas.engine.attempt import Meter
from eyas.engine.metered import Metered
from eyas.engine.pace import Pace
from eyas.events import Intent, PromptAdded, SessionOpened
from eyas.forecast import Lengths
from eyas.ledger import nano_dollars, reservation
from eyas.plan import Route
from eyas.providers.cancel import stops
from eyas.state import State
from eyas.types import Endpoint, Prices, Prompt, Work

PRICES = Prices(500_000_000, 2_000_000_000)
MOST = 10_000
FULL = reservation(PRICES, 100, MOST)


def _endpoint(provider: str) -> Endpoint:
    return Endpoint("m", provider, provider.lower(), f"{provider.lower()}/int4", PRICES)


CHUTES, MOONSHOT = (Route(each.tag, (each,), PRICES, {}) for each in (_endpoint("Chutes"), _endpoint("Moonshot AI")))


def _candidate(number: int) -> Candidate:
    return Candidate(Work("A", f"{number:016x}"), Prompt(f"{number:016x}", "A", ()), 100)


def _metered(usd: float, finished: int = 0, tokens: int = 200) -> Metered:
    """A run with so many answers behind it, all of so many tokens."""
    state, lengths = State(), Lengths(MOST)
    state.apply(SessionOpened(at=0.0, model="m", cap=nano_dollars(usd), quotas={"A": None}, waste_limit=None))
    state.apply(PromptAdded(at=0.0, dataset="A", prompt_id="0" * 16, tokens=100))
    for _ in range(finished):
        lengths.add(tokens)
    quotas = Quotas(state, {"A": lengths})
    quotas.refresh({})
    return Metered(state, Pool(), quotas, (CHUTES, MOONSHOT), Pace(5000), lambda _: MOST)


def _admit(policy: Metered, route: Route, most: int) -> list[Flying]:
    """Requests admitted one after the other, as the engine does it."""
    flying: list[Flying] = []
    for number in range(1, most + 1):
        admitted = Admitted(_candidate(number), route, FULL)
        if not policy.covers(admitted):
            break
        policy.reserve(FULL)
        policy.state.apply(
            Intent(at=0.0, attempt=number, work=admitted.candidate.work, number=1, tag=route.tag, prices=PRICES,
                   reserved=FULL)
        )  # fmt: skip
        flying.append(Flying(number, admitted, 0))
    return flying


@pytest.mark.parametrize(
    ("name", "ends"), [("Chutes", True), ("DeepInfra", True), ("Moonshot AI", False), ("X", False)]
)
def test_who_stops_billing_is_listed(name: str, ends: bool) -> None:
    """Only providers on the API's list stop billing when a stream ends; all others are taken to run on."""
    assert stops(_endpoint(name)) is ends


def test_nothing_known_means_full_reservations() -> None:
    """Before any answer has finished, no more is admitted than strict would admit."""
    assert len(_admit(_metered(usd=0.5), CHUTES, 1000)) == nano_dollars(0.5) // FULL


def test_short_answers_let_many_more_fly() -> None:
    """Where 3000 answers had 200 tokens of a possible 10,000, far more fly than full reservations would let."""
    assert len(_admit(_metered(usd=0.5, finished=3000), CHUTES, 1000)) > 20 * (nano_dollars(0.5) // FULL)


def test_those_who_run_on_are_reserved_in_full() -> None:
    """A provider whose bill does not end with the stream is never metered."""
    assert len(_admit(_metered(usd=0.5, finished=3000), MOONSHOT, 1000)) == nano_dollars(0.5) // FULL


def test_the_margin_shrinks_what_is_admitted() -> None:
    """What is expected stays below the cap by the margin, at every admission."""
    policy = _metered(usd=0.5, finished=3000)
    flying = _admit(policy, CHUTES, 1000)
    expected = sum(policy._cost(each, cautious=False)[0] for each in flying)
    assert 0.5 * nano_dollars(0.5) < expected < nano_dollars(0.5)


def test_the_youngest_streams_end_when_more_is_coming_than_fits() -> None:
    """Answers that turn out longer than foreseen are ended, youngest first, until what is expected fits again."""
    policy = _metered(usd=0.5, finished=3000)
    flying = _admit(policy, CHUTES, 1000)
    assert policy.watch(flying, 1.0) == []
    grown = [each._replace(tokens=400 if each.attempt % 2 else 3) for each in flying]
    policy.quotas.refresh({"A": [each.tokens for each in grown]})
    ended = policy.watch(grown, 2.0)
    assert ended
    assert ended == sorted(ended, reverse=True)


def test_all_streams_end_at_the_cap() -> None:
    """When what was streamed reaches the cap nothing goes on, whatever was foreseen; what has no token yet may land."""
    policy = _metered(usd=0.5, finished=3000)
    flying = _admit(policy, CHUTES, 1000)
    grown = [each._replace(tokens=2000 if each.attempt > 1 else 0) for each in flying]
    assert sorted(policy.watch(grown, 1.0)) == [each.attempt for each in flying[1:]]


def test_pieces_are_counted_as_the_tokens_that_they_were() -> None:
    """A route that sends several tokens a piece is known by its settled answers; pieces are never fewer than tokens."""
    meter = Meter()
    assert meter.guess(10) == 10
    meter.learn(10, 45)
    assert meter.guess(10) == 45
    meter.learn(100, 5)
    assert meter.guess(10) == 10
