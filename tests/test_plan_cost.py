"""Dollars under quotas: the founding story, bounds, and how they move with quota and price."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.config import RunConfig
from eyas.ledger import nano_dollars, reservation
from eyas.plan import routes
from eyas.plan.cost import ROOM, Costs, costs
from eyas.plan.estimate import Source
from eyas.plan.facts import ladder
from eyas.plan.scenarios import MARGIN, Ground, cuts, largest, scenarios
from tests import plankit
from tests.plankit import config, endpoint, estimate, facts, ground, market, wall

MILLION = 1_000_000
NANO = 10**9


def test_ten_million_a_set_do_not_fit_and_seven_do() -> None:
    """The founding story: six sets, $100, $2.20 a million: $132 is too much, $105.60 too, $92.40 fits and is chosen."""
    found = {
        each.output_tokens: each
        for each in scenarios(ground(config()), wall(), (5 * MILLION, 7 * MILLION, 8 * MILLION, 10 * MILLION))
    }
    assert [quota for quota, each in found.items() if each.fits] == [5 * MILLION, 7 * MILLION]
    assert [quota for quota, each in found.items() if each.chosen] == [7 * MILLION]
    # Output alone; prompts of 120 tokens at $0.10 are a third of a dollar more.
    assert found[7 * MILLION].costs.expected / NANO == pytest.approx(92.40, abs=0.4)
    assert found[10 * MILLION].left is not None
    assert found[10 * MILLION].left / NANO == pytest.approx(-32, abs=0.6)
    most = largest(ground(config()), wall())
    assert most is not None
    assert 7 * MILLION <= most < 7.3 * MILLION


def test_eight_million_are_chosen_where_they_fit() -> None:
    """At $2.00 a million 8 M a set are $96, within the cap but not with the margin; at $1.90 they are chosen."""
    for price, quota in ((2.00, 7), (1.90, 8)):
        of = config()
        found = scenarios(ground(of, market(of, endpoint("p", 0.0, price))), wall(), (7 * MILLION, 8 * MILLION))
        assert [each.output_tokens for each in found if each.chosen] == [quota * MILLION]
        assert all(each.fits for each in found)


def test_the_lower_of_all_walls_counts() -> None:
    """What the run has spent, the key's limit and the balance each lower what fits."""
    of = ground(config())
    for money in (wall(spent=10 * NANO), wall(balance=90 * NANO), dataclasses.replace(wall(), key=90 * NANO)):
        assert money.left == 90 * NANO
        assert [each.fits for each in scenarios(of, money, (6 * MILLION, 7 * MILLION))] == [True, False]


def test_worst_is_what_strict_reserves() -> None:
    """Without a quota worst covers a full reservation of every work on the dearest endpoint, and not much more."""
    of = config()
    sellers = (endpoint("a", 0.5, 2.0), endpoint("b", 0.3, 3.0))
    made = ground(of, market(of, *sellers))
    for each in made.facts.values():
        each.groups = {(0, 1): each.groups[0,]}
    dearest = reservation(plankit.market(of, endpoint("c", 0.5, 3.0)).rungs[0].prices, 120, 16_384)
    full = 6 * 20_000 * dearest
    assert full <= made.costs(None, own=False).worst <= full * 1.001


def test_an_endpoint_carries_so_much_and_the_rest_goes_to_the_next() -> None:
    """Before a run has shown it the cheapest takes the first thousand; what a run has shown goes before that."""
    of = config()
    sellers = [endpoint(tag, 0.1, price) for tag, price in (("a", 2.0), ("b", 2.2), ("c", 2.5))]
    assert market(of, *sellers).shares((0, 1, 2)) == [0.5, 0.5, 0.0]
    assert market(config(in_flight=ROOM), *sellers).shares((0, 1, 2)) == [1.0, 0.0, 0.0]
    assert market(of, *sellers, a=300, c=100).shares((0, 1, 2)) == [0.75, 0.0, 0.25]
    assert market(of, *sellers, a=300, c=100).shares((1,)) == [1.0]


def test_a_gateway_is_told_apart_by_tag() -> None:
    """Where OpenRouter picks, each endpoint is a rung of its own, but all reserve at the dearest price."""
    of = config()
    gateway = of.model_copy(update={"providers": of.providers.model_copy(update={"routing": "gateway"})})
    rungs = ladder(routes(gateway, [endpoint("b", 0.1, 3.0), endpoint("chutes", 0.1, 2.0)]))
    assert [rung.tag for rung in rungs] == ["chutes", "b"]
    assert {rung.route.prices.completion for rung in rungs} == {3 * NANO}
    assert not any(rung.stops for rung in rungs), "one of them bills an ended stream in full"


def _total(of: Ground, quota: int | None) -> Costs:
    quotas = dict.fromkeys(of.facts, quota)
    return costs(of.facts, of.estimates, of.market, quotas)


GUESSES = st.builds(estimate, st.floats(20, 16_000), st.floats(0, 1), source=st.sampled_from(Source))


def _ground(of: RunConfig, prices: list[float], works: int, guess: object, tokens: int) -> Ground:
    sellers = [endpoint(f"p{number}", 0.1 * price, price) for number, price in enumerate(prices)]
    made = {name: facts(of, name, works, tokens, serve=tuple(range(len(prices)))) for name in plankit.SETS[:2]}
    return Ground(of, made, dict.fromkeys(made, guess), market(of, *sellers))  # pyright: ignore[reportArgumentType]


CASE = {
    "prices": st.lists(st.floats(0.01, 20), min_size=1, max_size=3),
    "works": st.integers(0, 50_000),
    "guess": GUESSES,
    "tokens": st.integers(0, 5_000),
}


@settings(max_examples=60)
@given(**CASE, quotas=st.lists(st.integers(1, 10**8), min_size=2, max_size=2).map(sorted))
def test_more_tokens_never_cost_less(prices, works, guess, tokens, quotas) -> None:  # type: ignore[no-untyped-def]  # hypothesis
    """Low, expected, high and worst are in order, rise with the quota, and are bounded by answering every prompt."""
    of = _ground(config(), prices, works, guess, tokens)
    small, large, every = (_total(of, quota) for quota in (*quotas, None))
    for each in (small, large, every):
        assert 0 <= each.low <= each.expected <= each.high
        assert each.expected <= each.worst
    assert small.expected <= large.expected <= every.expected + 10
    assert small.worst <= large.worst
    assert small.low <= large.low + 10


@settings(max_examples=60)
@given(**CASE, factor=st.floats(1, 5), quota=st.none() | st.integers(1, 10**8))
def test_dearer_prices_never_cost_less(prices, works, guess, tokens, factor, quota) -> None:  # type: ignore[no-untyped-def]  # hypothesis
    """Whatever the quota, a market that is dearer by a factor costs at least as much."""
    cheap = _total(_ground(config(), prices, works, guess, tokens), quota)
    dear = _total(_ground(config(), [price * factor for price in prices], works, guess, tokens), quota)
    assert cheap.low <= dear.low + 10
    assert cheap.expected <= dear.expected
    assert cheap.worst <= dear.worst


def test_too_few_prompts_are_said() -> None:
    """A hundred prompts of 1,650 tokens do not fill a million; the quota then costs no more than all of them."""
    of = ground(config(MILLION), works=100)
    (made, *_) = of.costs().sets
    assert made.short
    assert made.load.tokens == pytest.approx(165_000, rel=0.01)
    assert of.costs().expected == pytest.approx(of.costs(None, own=False).expected, rel=0.01)


def test_what_the_run_has_is_not_bought_again() -> None:
    """Tokens kept lower what is to come; a met quota costs nothing."""
    of = ground(config(7 * MILLION))
    whole = of.costs().expected
    for each in of.facts.values():
        each.kept = 3_500_000
    assert of.costs().expected == pytest.approx(whole / 2, rel=0.01)
    for each in of.facts.values():
        each.kept = 7 * MILLION
    assert (of.costs().low, of.costs().expected, of.costs().worst) == (0, 0, 0)


def test_few_answers_leave_a_wide_band() -> None:
    """What common doubt there is adds over the sets; the doubt of each set's own answers averages out."""
    of = config()
    bands = {}
    for name, guess in (
        ("few", estimate(doubt=0.5)),
        ("many", estimate(doubt=0.02)),
        ("prior", estimate(doubt=0.5, source=Source.PRIOR)),
    ):
        made = ground(of, guess=guess).costs()
        bands[name] = (made.expected - made.low) / made.expected
    assert bands["many"] < 0.02
    assert 0.1 < bands["few"] < bands["prior"] / 2


def test_a_smaller_max_tokens_cuts_more() -> None:
    """The share of unfinished answers falls with max_tokens; their dollars with it, under the same quota."""
    of = ground(config(7 * MILLION))
    found = cuts(of, of.costs(), (2048, 4096, 8192, 16_384))
    assert [each.max_tokens for each in found] == [2048, 4096, 8192, 16_384]
    assert all(a.share > b.share and a.cost > b.cost for a, b in itertools.pairwise(found))
    assert found[0].expected == pytest.approx(nano_dollars(92.4), rel=0.01)


def test_the_margin_is_kept() -> None:
    """The largest quota that fits leaves 5 % of the money free."""
    of = ground(config())
    most = largest(of, wall())
    assert most is not None
    assert _total(of, most).expected <= (1 - MARGIN) * 100 * NANO < _total(of, most + 100_000).expected
    assert largest(of, wall(10_000.0)) is None
    assert largest(of, wall(0.01)) == 0
