"""Six wrong ledgers, each wrong in a way that such ledgers are: the suite sees every one, and so proves something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from eyas import ledger, state
from eyas.errors import LedgerError
from eyas.events import Intent, Settled
from eyas.families import Loaded
from eyas.ledger import Money
from eyas.state import State
from eyas.types import Prices
from tests.test_ledger_machine import Ledger
from tests.test_simulation import KINDS, draw, live

CAUGHT = (AssertionError, LedgerError, KeyError, BaseExceptionGroup)
SEEDS = tuple(KINDS.index(kind) + rounds * len(KINDS) for rounds in (0, 1) for kind in ("cap", "kill", "rough"))
STEPS = settings(max_examples=60, stateful_step_count=30, deadline=None, database=None, derandomize=True,
                 phases=(Phase.generate,), report_multiple_bugs=False)  # fmt: skip

Patch = pytest.MonkeyPatch


def no_reserve(patch: Patch) -> None:
    """What is sent takes nothing; only what came back counts."""
    patch.setattr(Money, "reserve", lambda money, amount: money)
    patch.setattr(Money, "force", lambda money, amount: money)
    patch.setattr(Money, "settle", _released_nothing)
    patch.setattr(Money, "hold", lambda money, reserved: replace(money, unknown=money.unknown + reserved))


def late_reserve(patch: Patch) -> None:
    """The reservation is taken when the outcome is there, not before the send."""
    begin, end = state._APPLY[Intent], state._APPLY[Settled]

    def late_begin(known: State, event: Intent) -> None:
        money = known.money
        begin(known, event)
        known.money = money

    def late_end(known: State, event: Settled) -> None:
        known.money = known.money.force(known.attempt(event.attempt).reserved)
        end(known, event)

    patch.setitem(state._APPLY, Intent, late_begin)
    patch.setitem(state._APPLY, Settled, late_end)


def wrong_price(patch: Patch) -> None:
    """Answers are reserved at the price of prompts."""
    right = ledger.cost_of
    patch.setattr(ledger, "cost_of", lambda prices, *tokens: right(Prices(prices.prompt, prices.prompt), *tokens))


def forgotten_release(patch: Patch) -> None:
    """What was settled stays reserved."""
    patch.setattr(Money, "settle", _released_nothing)


def double_settle(patch: Patch) -> None:
    """An outcome is booked twice, and a second one is taken."""
    end = state._APPLY[Settled]

    def twice(known: State, event: Settled) -> None:
        attempt = known.attempt(event.attempt)
        for _ in range(2):
            if attempt.settled is not None:
                known.money = known.money.force(attempt.reserved)
            attempt.settled = None
            end(known, event)

    patch.setitem(state._APPLY, Settled, twice)


def check_then_act(patch: Patch) -> None:
    """A request may start if what is settled leaves room, whatever flies."""
    patch.setattr(Money, "fits", lambda money, amount: money.cap is None or amount <= money.cap - money.settled)


MUTANTS = (no_reserve, late_reserve, wrong_price, forgotten_release, double_settle, check_then_act)


def _released_nothing(money: Money, reserved: int, cost: int, *, wasted: bool = False) -> Money:
    return replace(money, settled=money.settled + cost, wasted=money.wasted + cost * wasted)


def any_order(kimi: Loaded) -> None:
    """The books in any order of events."""
    run_state_machine_as_test(Ledger, settings=STEPS)


def whole_runs(kimi: Loaded) -> None:
    """Whole runs in simulated time: small caps, kills, ordinary faults."""
    for seed in SEEDS:
        live(draw(seed, most=40), kimi)
    case = draw(KINDS.index("clean"), most=40)
    live(replace(case, settings=case.settings | {"usd": 0.002, "in_flight": 40}), kimi)


@pytest.mark.parametrize("check", [any_order, whole_runs])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_ledger_is_seen(mutant: Callable[[Patch], None], check: Callable[[Any], None], kimi: Loaded) -> None:
    """Both the state machine and the simulated runs fail under each wrong ledger."""
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        with pytest.raises(CAUGHT):
            check(kimi)


@pytest.mark.parametrize("check", [any_order, whole_runs])
def test_the_right_ledger_passes(check: Callable[[Any], None], kimi: Loaded) -> None:
    """The same checks hold for the ledger as it is."""
    check(kimi)
