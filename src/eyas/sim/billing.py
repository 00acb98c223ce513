"""What an answer costs and what the account may still spend: exact integers of nano-dollars (pure)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from decimal import Decimal
from typing import Literal

import msgspec

from eyas.sim.counting import Surplus
from eyas.sim.providers import Provider
from eyas.sim.scenarios import Scenario
from eyas.sim.text import Answer
from eyas.types import NANO


class Counts(msgspec.Struct, frozen=True):
    """Tokens as the provider counts them, and their cost in nano-dollars."""

    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    prompt_cost: int = 0
    completion_cost: int = 0

    @property
    def cost(self) -> int:
        """Nano-dollars in all."""
        return self.prompt_cost + self.completion_cost


def count(provider: Provider, answer: Answer, prompt: int, produced: int, surplus: Surplus | None = None) -> Counts:
    """The provider's count and price of `produced` sampled tokens.

    Args:
        provider: who counts.
        answer: what was sampled.
        prompt: tokens of the prompt with `<think>` among them.
        produced: how many ids were sampled.
        surplus: what another tokenizer counts on top; None: it counts with the model's own.
    """
    reasoned = min(produced, answer.count("reasoning"))
    sampled = bool(reasoned) and provider.think_sampled
    whole = produced >= answer.size and answer.finish != "length"
    completion = produced + sampled - (whole and not provider.stop_counted)
    ended = bool(reasoned) and produced > reasoned
    if surplus is not None:
        more = {"reasoning": 0, "content": 0, "name": 0, "arguments": 0, "special": 0}
        for part in answer.upto(produced):
            more[part.channel] += surplus(part.ids) if part.channel != "special" else 0
        completion += sum(more.values())
        reasoned += more["reasoning"]
    estimate = reasoned + (reasoned // 22 if reasoned % 2 else -(reasoned // 22))
    reasoning = {"with_end": reasoned + ended, "exact": reasoned, "estimate": estimate}[provider.reasoning_count]
    shown = prompt - sampled
    return Counts(shown, completion, reasoning, shown * provider.prompt_nano, completion * provider.completion_nano)


def dollars(amount: int) -> str:
    """An exact decimal of dollars for a JSON body, without an exponent."""
    text = f"{Decimal(amount).scaleb(-9):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class Refusal(msgspec.Struct, frozen=True):
    """Why the account cannot pay: status, message, `limit_source`, `reason`, and when to come back (seconds)."""

    status: int
    message: str
    source: str
    reason: str | None = None
    retry_after: int | None = None


Spending = Literal["key", "balance"]


class Purse:
    """The account's balance, the keys' limits and the budget of requests in flight."""

    def __init__(self, scenario: Scenario, now: Callable[[], float]) -> None:
        self._scenario = scenario
        self._now = now
        self._held: dict[str, int] = {}
        self._settling: deque[tuple[float, int]] = deque()
        self._in_flight = 0
        self.spent = 0
        self.spent_by_key: dict[str, int] = {}

    def remaining(self, key: str, of: Spending) -> int | None:
        """Nano-dollars left of the balance or of the key's limit; None is no limit."""
        limit = self._scenario.balance_usd if of == "balance" else self._scenario.key_limit_usd
        spent = self.spent if of == "balance" else self.spent_by_key.get(key, 0)
        return None if limit is None else round(limit * NANO) - spent

    def refuse(self, key: str, provider: Provider, prompt: int, max_tokens: int) -> Refusal | None:
        """Why a request with this estimate must not start, or None."""
        estimate = prompt * provider.prompt_nano + max_tokens * provider.completion_nano
        limit, balance = self.remaining(key, "key"), self.remaining(key, "balance")
        if limit is not None and limit < estimate:
            status = self._scenario.key_limit_status
            return Refusal(
                status, "Key limit exceeded (total limit). Manage it in your settings.", "openrouter_key_limit"
            )
        if balance is not None and balance < estimate:
            afford = max(0, balance - prompt * provider.prompt_nano) // (provider.completion_nano or 1)
            message = (
                f"This request requires more credits, or fewer max_tokens. You requested up to {max_tokens} tokens, "
                f"but can only afford {afford}. To increase, visit your settings and add more credits"
                if balance > 0
                else "Insufficient credits. Add more to keep making requests."
            )
            return Refusal(402, message, "openrouter_credits")
        return self._over_budget(estimate)

    def _over_budget(self, estimate: int) -> Refusal | None:
        if self._scenario.in_flight_budget_usd is None:
            return None
        budget = round(self._scenario.in_flight_budget_usd * NANO)
        if estimate > budget:
            message = "This request is estimated above your in-flight budget. Lower max_tokens."
            return Refusal(402, message, "openrouter_credits", "weight_exceeds_budget")
        now = self._now()
        while self._settling and self._settling[0][0] <= now:
            self._in_flight -= self._settling.popleft()[1]
        return in_flight_refusal(2) if self._in_flight + estimate > budget else None

    def hold(self, flight: str, provider: Provider, prompt: int, max_tokens: int) -> None:
        """Hold the estimate of a request that starts."""
        self._held[flight] = prompt * provider.prompt_nano + max_tokens * provider.completion_nano
        self._in_flight += self._held[flight]

    def settle(self, flight: str, key: str, cost: int) -> None:
        """Replace the hold by the cost, which goes on counting in flight for a while."""
        self._in_flight += cost - self._held.pop(flight, 0)
        self._settling.append((self._now() + self._scenario.settle_seconds, cost))
        self.spent += cost
        self.spent_by_key[key] = self.spent_by_key.get(key, 0) + cost


def in_flight_refusal(retry_after: int) -> Refusal:
    """The transient 402: running and just finished requests fill the budget."""
    message = "Your in-flight spending budget is used up by running requests. Retry shortly."
    return Refusal(402, message, "openrouter_in_flight_budget", "in_flight_budget_exhausted", retry_after)
