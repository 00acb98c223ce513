"""decide(outcome, ...) -> Decision: the table "What happened, and what is done" of the design, as one pure function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from eyas.config import RunConfig
from eyas.ledger import cost_of, nano_dollars
from eyas.types import (
    Billed,
    Completion,
    Failure,
    FailureKind,
    Finish,
    Outcome,
    Prices,
    StopReason,
    Usage,
    Verdict,
)

MOST_TRIES = 3
"""Attempts at one work that fail for free, and those whose outcome stays unknown."""
MOST_LOST_FREE = 10
"""Attempts at one work that are lost where nothing is billed: servers of the user's die and come back."""


class Effect(Enum):
    """What an outcome says of the endpoint (or of the account) beside the work."""

    NONE = "none"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    BUDGET = "budget"
    AVOID = "avoid"
    ASIDE = "aside"
    MISSERVED = "misserved"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user decided. `keep_from` is tokens, `waste_limit` nano-dollars (None: no bound)."""

    keep_from: int = 64
    on_length: str = "keep"
    waste_limit: int | None = None


def policy_of(config: RunConfig) -> Policy:
    """What the config says of waste, partial answers and `length`."""
    cap = None if config.budget.usd is None else nano_dollars(config.budget.usd)
    limit = None if cap is None else int(cap * config.budget.waste)
    return Policy(config.budget.keep_from, config.budget.on_length, limit)


@dataclass(frozen=True, slots=True)
class Case:
    """What is known of the attempt: tries of its work before it, its price bound, tokens that came, money wasted so far.

    `misserved` says why the answer is not the one that was asked for; empty if it is.
    """

    tries: int
    lost: int
    prices: Prices
    tokens: int = 0
    wasted: int = 0
    misserved: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done: the work's verdict, the cost booked (None: unknown, the reservation is held), tokens kept."""

    verdict: Verdict
    cost: int | None
    kind: FailureKind | None = None
    tokens: int = 0
    counted: bool = True
    effect: Effect = Effect.NONE
    retry_after: float | None = None
    stop: StopReason | None = None
    detail: str = ""


def decide(outcome: Outcome, case: Case, policy: Policy) -> Decision:
    """What an outcome means for the work, the books and the endpoint."""
    if isinstance(outcome, Failure):
        return _failed(outcome, case, policy)
    if case.misserved:
        return _misserved(outcome, case, policy)
    return _cut(outcome, case, policy) if outcome.cut is not None else _complete(outcome, case, policy)


def _complete(answer: Completion, case: Case, policy: Policy) -> Decision:
    cost = _cost(answer.usage, case.prices, bool(answer.generation_id))
    if answer.finish is Finish.LENGTH and policy.on_length == "redo" and _may_waste(case, policy) and _tries_left(case):
        return Decision(
            Verdict.AGAIN, cost, FailureKind.LENGTH, effect=Effect.ACCEPTED, detail="asked again: max_tokens ran out"
        )
    tokens = answer.usage.completion_tokens if answer.usage else case.tokens
    return Decision(Verdict.DONE, cost, tokens=tokens, effect=Effect.ACCEPTED)


def _misserved(answer: Completion, case: Case, policy: Policy) -> Decision:
    cost = _cost(answer.usage, case.prices, bool(answer.generation_id))
    again = _may_waste(case, policy) and _tries_left(case)
    verdict = Verdict.AGAIN if again else Verdict.FAILED
    return Decision(verdict, cost, FailureKind.MISSERVED, effect=Effect.MISSERVED, detail=case.misserved)


def _cut(answer: Completion, case: Case, policy: Policy) -> Decision:
    detail = answer.cut.detail if answer.cut else ""
    cost = _cost(answer.usage, case.prices, bool(answer.generation_id)) if answer.usage or case.prices.free else None
    if case.tokens >= policy.keep_from:
        return Decision(
            Verdict.PARTIAL, cost, FailureKind.CUT, tokens=case.tokens, effect=Effect.ACCEPTED, detail=detail
        )
    verdict = Verdict.AGAIN if _may_waste(case, policy) else Verdict.FAILED
    return Decision(verdict, cost, FailureKind.CUT, counted=False, effect=Effect.ACCEPTED, detail=detail)


def _failed(failure: Failure, case: Case, policy: Policy) -> Decision:
    kind, detail = failure.kind, failure.detail
    match kind:
        case FailureKind.CONNECT:
            return _unpunished(failure, Effect.UNREACHABLE)
        case FailureKind.RATE_LIMIT:
            return _unpunished(failure, Effect.REJECTED)
        case FailureKind.IN_FLIGHT_BUDGET:
            return _unpunished(failure, Effect.BUDGET)
        case FailureKind.NO_ENDPOINT:
            return _unpunished(failure, Effect.ASIDE)
        case FailureKind.KEY | FailureKind.CREDITS:
            return Decision(Verdict.AGAIN, 0, kind, counted=False, stop=StopReason.KEY, detail=detail)
        case FailureKind.REFUSED:
            return Decision(Verdict.REFUSED, 0, kind, detail=detail)
        case FailureKind.LOST:
            return _lost(failure, case, policy)
        case _:
            return _free_try(failure, case, policy)


def _lost(failure: Failure, case: Case, policy: Policy) -> Decision:
    """Nobody knows what became of it: the money is held, or, where nothing is billed, there is none."""
    if case.prices.free:
        verdict, cost = Verdict.AGAIN if case.lost + 1 < MOST_LOST_FREE else Verdict.FAILED, 0
    else:
        again = _may_waste(case, policy) and case.lost + 1 < MOST_TRIES
        verdict, cost = Verdict.AGAIN if again else Verdict.UNKNOWN, None
    return Decision(verdict, cost, failure.kind, counted=False, effect=Effect.AVOID, detail=failure.detail)


def _free_try(failure: Failure, case: Case, policy: Policy) -> Decision:
    """An error envelope or an empty answer: again, elsewhere if there is an elsewhere, at most three times."""
    cost = 0 if failure.billed is Billed.NO else _cost(failure.usage, case.prices, bool(failure.generation_id))
    if failure.billed is Billed.NO and failure.usage is not None:
        cost = failure.usage.cost or 0
    again = _tries_left(case) and (cost == 0 or _may_waste(case, policy))
    verdict = Verdict.AGAIN if again else Verdict.FAILED
    return Decision(verdict, cost, failure.kind, effect=Effect.AVOID, detail=failure.detail)


def _unpunished(failure: Failure, effect: Effect) -> Decision:
    return Decision(
        Verdict.AGAIN,
        0,
        failure.kind,
        counted=False,
        effect=effect,
        retry_after=failure.retry_after,
        detail=failure.detail,
    )


def _tries_left(case: Case) -> bool:
    return case.tries + 1 < MOST_TRIES


def _may_waste(case: Case, policy: Policy) -> bool:
    return policy.waste_limit is None or case.wasted <= policy.waste_limit


def _cost(usage: Usage | None, prices: Prices, can_look_up: bool) -> int | None:
    """What the answer says that it cost; without that, unknown until looked up, or by its counts where it cannot be."""
    if usage is not None and usage.cost is not None:
        return usage.cost
    if prices.free:
        return 0
    if can_look_up or usage is None:
        return None
    return cost_of(prices, usage.prompt_tokens, usage.completion_tokens)
