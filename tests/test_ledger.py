"""The books: amounts, costs, reservations, and I1 under any interleaving."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from eyas.errors import CapReached, LedgerError, UsageError
from eyas.ledger import (
    MILLION,
    Money,
    Quota,
    cost_of,
    nano_dollars,
    price_per_million,
    prompt_upper,
    reservation,
    usd,
)
from eyas.types import NANO, Prices

AMOUNTS = st.integers(0, 10**12)
PRICES = st.builds(Prices, st.integers(0, 10**11), st.integers(0, 10**11), st.integers(0, 10**7))
TOKENS = st.integers(0, 10**6)


@pytest.mark.parametrize(
    ("given_usd", "nano"),
    [
        ("100", 100 * NANO),
        (100.0, 100 * NANO),
        ("0", 0),
        ("0.000000001", 1),
        ("0.0000000011", 2),
        ("0.00023492", 234_920),
        (1.2e-05, 12_000),
        ("1e-30", 1),
        (Decimal("0.1"), NANO // 10),
        (0.1, NANO // 10),
    ],
)
def test_dollars_are_parsed_as_decimals_and_rounded_up(given_usd: str | float | Decimal, nano: int) -> None:
    """An amount is the decimal that it is written as; what is below a nano-dollar counts as a whole one."""
    assert nano_dollars(given_usd) == nano


@pytest.mark.parametrize("wrong", ["", "free", "-1", -0.5, float("nan"), float("inf"), "1,5"])
def test_what_is_no_amount_is_refused_with_a_remedy(wrong: str | float) -> None:
    """NaN, infinity, negative amounts and words never reach the books."""
    with pytest.raises(UsageError, match="give a"):
        nano_dollars(wrong)


def test_prices_per_token_become_integers_per_million() -> None:
    """Kimi's real price strings are exact in nano-dollars per million, odd ones are rounded up."""
    assert price_per_million("0.00000044") == 440_000_000
    assert price_per_million("0.00000225") == 2_250_000_000
    assert price_per_million(2.2e-06) == 2_200_000_000
    assert price_per_million("0.0000000000000001") == 1
    for wrong in ("", "n/a", "-0.1", "NaN"):
        with pytest.raises(UsageError):
            price_per_million(wrong)


@given(st.decimals(0, 10**6, allow_nan=False, allow_infinity=False, places=15))
def test_rounding_is_never_down_and_less_than_one(amount: Decimal) -> None:
    """The integer is the smallest one that is not below the amount."""
    with localcontext(prec=60):
        exact = amount * NANO
        assert nano_dollars(amount) == int(exact.to_integral_value(ROUND_CEILING))
        assert 0 <= nano_dollars(amount) - exact < 1


@given(PRICES, TOKENS, TOKENS)
def test_cost_is_exact_and_rounded_up_once(prices: Prices, prompt: int, completion: int) -> None:
    """Both sides are added before they are rounded, and the request's fee is on top."""
    exact = prompt * prices.prompt + completion * prices.completion
    cost = cost_of(prices, prompt, completion) - prices.request
    assert 0 <= cost * MILLION - exact < MILLION


def test_a_recorded_bill_is_met_exactly() -> None:
    """21 + 202 tokens at $0.44 and $2.2 a million cost $0.00045364, as OpenRouter billed them."""
    prices = Prices(price_per_million("0.00000044"), price_per_million("0.0000022"))
    assert cost_of(prices, 21, 202) == nano_dollars("0.00045364")
    assert usd(cost_of(prices, 21, 202)) == 0.00045364


@given(PRICES, TOKENS, TOKENS, st.data())
def test_a_reservation_bounds_every_bill_within_its_limits(
    prices: Prices, prompt: int, most: int, data: st.DataObject
) -> None:
    """Whatever a provider counts up to our margin and max_tokens, the reservation covers it."""
    counted = data.draw(st.integers(0, prompt_upper(prompt)))
    sampled = data.draw(st.integers(0, most))
    assert cost_of(prices, counted, sampled) <= reservation(prices, prompt, most)


@given(TOKENS)
def test_the_prompt_margin_is_64_tokens_and_5_percent(tokens: int) -> None:
    """Never below the promised margin, and not much above it."""
    assert 0 <= prompt_upper(tokens) - tokens * 1.05 - 64 < 1.001


def test_money_operations_move_what_they_say() -> None:
    """Reserve, settle, hold, resolve and correct, each seen alone."""
    money = Money(cap=100).reserve(60)
    assert (money.reserved, money.free, money.fits(40), money.fits(41)) == (60, 40, True, False)
    with pytest.raises(CapReached):
        money.reserve(41)
    assert money.settle(60, 10) == Money(cap=100, settled=10)
    assert money.settle(60, 10, wasted=True) == Money(cap=100, settled=10, wasted=10)
    assert money.settle(60, 70) == Money(cap=100, settled=70), "a bill above its reservation is booked in full"
    held = money.hold(60)
    assert held == Money(cap=100, unknown=60)
    assert held.free == 40, "an unknown outcome keeps its whole reservation"
    assert held.resolve(60, 5, wasted=True) == Money(cap=100, settled=5, wasted=5)
    assert Money(settled=9, wasted=9).correct(9, 4, wasted=True) == Money(settled=4, wasted=4)
    assert Money().reserve(10**15).free is None, "without a cap everything fits"
    assert Money(cap=10).force(25).free == -15, "a lowered cap does not undo what was sent"
    assert money.with_cap(None).fits(10**18)


@given(AMOUNTS, AMOUNTS)
def test_nothing_is_released_that_is_not_held(have: int, more: int) -> None:
    """Settling, holding, resolving or correcting more than there is, or a negative amount, is a defect and raises."""
    money = Money(settled=have, reserved=have, unknown=have)
    for release in (
        lambda amount: money.settle(amount, 0),
        money.hold,
        lambda amount: money.resolve(amount, 0),
        lambda amount: money.correct(amount, 0),
    ):
        for wrong in (have + more + 1, -1 - more):
            with pytest.raises(LedgerError):
                release(wrong)
    with pytest.raises(LedgerError):
        money.reserve(-1 - more)


class Books(RuleBasedStateMachine):
    """Any order of what can happen to attempts, a crash included, with bills that stay within their reservations."""

    flying = Bundle("flying")
    unknown = Bundle("unknown")
    settled = Bundle("settled")

    def __init__(self) -> None:
        super().__init__()
        self.cap = 10_000
        self.money = Money(cap=self.cap)
        self.journal: list[tuple[str, tuple[int, ...], bool]] = []
        self.paid = self.waste = 0

    def book(self, name: str, *amounts: int, wasted: bool | None = None) -> None:
        """Do it and note it, as the engine does with an event."""
        more = {} if wasted is None else {"wasted": wasted}
        self.money = getattr(self.money, name)(*amounts, **more)
        self.journal.append(("force" if name == "reserve" else name, amounts, bool(wasted)))

    @rule(target=flying, amount=st.integers(0, 4000))
    def reserve(self, amount: int) -> object:
        """A request starts, if it fits."""
        if not self.money.fits(amount):
            with pytest.raises(CapReached):
                self.money.reserve(amount)
            return multiple()
        self.book("reserve", amount)
        return amount

    @rule(target=settled, reserved=consumes(flying), share=st.floats(0, 1), wasted=st.booleans())
    def settle(self, reserved: int, share: float, wasted: bool) -> tuple[int, int, bool]:
        """Its bill is known at once."""
        cost = int(reserved * share)
        self.book("settle", reserved, cost, wasted=wasted)
        self.paid, self.waste = self.paid + cost, self.waste + cost * wasted
        return reserved, cost, wasted

    @rule(target=unknown, reserved=consumes(flying))
    def hold(self, reserved: int) -> int:
        """Its bill is not known."""
        self.book("hold", reserved)
        return reserved

    @rule(target=settled, held=consumes(unknown), share=st.floats(0, 1), wasted=st.booleans())
    def resolve(self, held: int, share: float, wasted: bool) -> tuple[int, int, bool]:
        """It was looked up, or written off."""
        cost = int(held * share)
        self.book("resolve", held, cost, wasted=wasted)
        self.paid, self.waste = self.paid + cost, self.waste + cost * wasted
        return held, cost, wasted

    @rule(target=settled, bill=consumes(settled), share=st.floats(0, 1))
    def correct(self, bill: tuple[int, int, bool], share: float) -> tuple[int, int, bool]:
        """The bill turns out lower: the API's generation says what was really charged."""
        reserved, before, wasted = bill
        after = int(before * share)
        self.book("correct", before, after, wasted=wasted)
        self.paid, self.waste = self.paid + after - before, self.waste + (after - before) * wasted
        return reserved, after, wasted

    @rule()
    def crash(self) -> None:
        """The process is killed; the books come back from the journal."""
        money = Money(cap=self.cap)
        for name, amounts, wasted in self.journal:
            more = {"wasted": wasted} if name in ("settle", "resolve", "correct") else {}
            money = getattr(money, name)(*amounts, **more)
        assert money == self.money
        self.money = money

    @invariant()
    def within_the_cap(self) -> None:
        """I1, and every settled dollar is one that was billed."""
        money = self.money
        assert money.committed <= self.cap
        assert min(money.settled, money.reserved, money.unknown, money.wasted) >= 0
        assert (money.settled, money.wasted) == (self.paid, self.waste)
        assert money.wasted <= money.settled


TestBooks = Books.TestCase


@given(st.integers(1, 10**9), st.integers(0, 10**9))
def test_a_quota_is_met_at_99_5_percent(limit: int, kept: int) -> None:
    """Half a percent is not waited for; without a limit a quota is never met."""
    assert Quota(limit).keep(kept).met == (kept * 1000 >= limit * 995)
    assert not Quota(None).keep(kept).met


def test_admission_foresees_what_flies() -> None:
    """One more is wanted while less than half of it would lie above the limit."""
    quota = Quota(1000, 500)
    assert quota.admits(in_flight=400, one_more=200)
    assert not quota.admits(in_flight=401, one_more=200)
    assert quota.admits(in_flight=0, one_more=10_000), "while nothing flies an unmet quota always wants one"
    assert not Quota(1000, 995).admits(0, 1), "a met quota wants nothing"
    assert Quota(None, 10**9).admits(10**9, 10**9)
    assert quota.with_limit(None).admits(10**9, 1)
    assert quota.with_limit(400).met


@given(st.integers(1, 10**6), st.lists(st.integers(1, 5000), min_size=1, max_size=300))
def test_answers_of_known_length_end_within_half_of_one(limit: int, answers: list[int]) -> None:
    """Admitting by the rule, in any sizes, overshoots the limit by at most half of the last answer."""
    in_flight, started = 0, []
    for tokens in answers:
        if Quota(limit).admits(in_flight, tokens):
            in_flight += tokens
            started.append(tokens)
    assert in_flight <= limit + max(started) / 2 or len(started) == 1
