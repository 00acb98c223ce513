"""The books: dollars and token quotas, pure, in integers.

All money is nano-dollars (1 USD = 10**9). A `Money` is a value: every operation gives a new one or raises, so that a
wrong book never exists. Invariant I1: settled + reserved + unknown <= cap, as long as no bill exceeds its reservation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal, InvalidOperation

from eyas.errors import CapReached, LedgerError, UsageError
from eyas.types import NANO, Prices

MILLION = 1_000_000


def nano_dollars(usd: str | float | Decimal) -> int:
    """US dollars as nano-dollars, rounded up.

    Raises:
        UsageError: not a finite, non-negative amount.
    """
    try:
        amount = Decimal(str(usd))
    except InvalidOperation as error:
        raise UsageError(f"{usd!r} is not an amount of US dollars: give a number such as 100.0") from error
    if not amount.is_finite() or amount < 0:
        raise UsageError(f"{usd!r} is not an amount of US dollars: give a finite number, 0 or more")
    return int((amount * NANO).to_integral_value(ROUND_CEILING))


def price_per_million(usd_per_token: str | float | Decimal) -> int:
    """A price as the endpoint list gives it (USD a token) as nano-dollars per million tokens, rounded up.

    Raises:
        UsageError: not a finite, non-negative amount.
    """
    try:
        return nano_dollars(Decimal(str(usd_per_token)) * MILLION)
    except InvalidOperation as error:
        raise UsageError(f"{usd_per_token!r} is not a price in US dollars a token: check [target] base_url") from error


def usd(nano: int) -> float:
    """Nano-dollars as US dollars, for people and JSON only: nothing is computed with it."""
    return nano / NANO


def cost_of(prices: Prices, prompt_tokens: int, completion_tokens: int) -> int:
    """Nano-dollars for that many tokens, rounded up once."""
    tokens = prompt_tokens * prices.prompt + completion_tokens * prices.completion
    return -(-tokens // MILLION) + prices.request


def prompt_upper(tokens: int) -> int:
    """Upper bound of what a provider may count for a prompt that we count as `tokens`: 64 tokens and 5 % on top.

    Chat templates of serving stacks differ by separators, a re-serialised tool declaration, or a short system turn.
    """
    return tokens + 64 + -(-tokens // 20)


def reservation(prices: Prices, prompt_tokens: int, max_tokens: int) -> int:
    """The most that one request can cost, nano-dollars: our prompt count with its margin, and all of max_tokens."""
    return cost_of(prices, prompt_upper(prompt_tokens), max_tokens)


@dataclass(frozen=True, slots=True)
class Money:
    """Where the dollars stand. `settled` includes `wasted`; `unknown` is held for outcomes not known yet; `leased` for workers.

    `cap` is None for a run that costs no dollars (a local engine).
    """

    cap: int | None = None
    settled: int = 0
    wasted: int = 0
    reserved: int = 0
    unknown: int = 0
    leased: int = 0

    @property
    def committed(self) -> int:
        """What can be spent already: settled + reserved + unknown + leased."""
        return self.settled + self.reserved + self.unknown + self.leased

    @property
    def free(self) -> int | None:
        """What a new reservation may take; None without a cap. Negative only after a bill above its reservation."""
        return None if self.cap is None else self.cap - self.committed

    def fits(self, amount: int) -> bool:
        """Whether a reservation of `amount` stays below the cap."""
        return self.free is None or amount <= self.free

    def reserve(self, amount: int) -> Money:
        """Take `amount` for a request about to be sent.

        Raises:
            CapReached: it does not fit below the cap.
            LedgerError: a negative amount.
        """
        if amount < 0:
            raise LedgerError(f"a reservation of {amount} nano-dollars")
        if not self.fits(amount):
            raise CapReached(f"{amount} nano-dollars do not fit: {self.free} are free below the cap")
        return replace(self, reserved=self.reserved + amount)

    def force(self, amount: int) -> Money:
        """Take `amount` that a journal says was taken, whatever the cap is now (it may have been lowered)."""
        return replace(self, reserved=self.reserved + amount)

    def settle(self, reserved: int, cost: int, *, wasted: bool = False) -> Money:
        """End a reservation with its cost, which may exceed it: what was billed is booked in full."""
        self._holds(self.reserved, reserved)
        return replace(
            self,
            reserved=self.reserved - reserved,
            settled=self.settled + cost,
            wasted=self.wasted + (cost if wasted else 0),
        )

    def hold(self, reserved: int) -> Money:
        """The outcome is not known: the whole reservation stays, as unknown."""
        self._holds(self.reserved, reserved)
        return replace(self, reserved=self.reserved - reserved, unknown=self.unknown + reserved)

    def resolve(self, held: int, cost: int, *, wasted: bool = False) -> Money:
        """An unknown outcome became known, or was written off, at `cost`."""
        self._holds(self.unknown, held)
        return replace(
            self,
            unknown=self.unknown - held,
            settled=self.settled + cost,
            wasted=self.wasted + (cost if wasted else 0),
        )

    def correct(self, before: int, after: int, *, wasted: bool = False) -> Money:
        """A settled cost turned out to be another one."""
        self._holds(self.settled, before)
        change = after - before
        return replace(self, settled=self.settled + change, wasted=self.wasted + (change if wasted else 0))

    def lease(self, amount: int) -> Money:
        """Set `amount` apart for a worker.

        Raises:
            CapReached: it does not fit below the cap.
            LedgerError: a negative amount.
        """
        return replace(self.reserve(amount), reserved=self.reserved, leased=self.leased + amount)

    def released(self, before: Lease, after: Lease) -> Money:
        """The same books where a lease changed: what it still holds is set apart."""
        self._holds(self.leased, before.left)
        return replace(self, leased=self.leased - before.left + after.left)

    def write_off(self, lease: Lease) -> Money:
        """What is left of a lease is taken as spent for nothing: nobody can say any more that it was not."""
        left = lease.left
        books = self.released(lease, Lease())
        return replace(books, settled=books.settled + left, wasted=books.wasted + left)

    def found(self, lease: Lease, change: int) -> tuple[Money, Lease]:
        """Money of a lease that was written off came to light: so much of it was spent, and is not booked twice."""
        known = min(change, lease.lost)
        books = replace(self, settled=self.settled - known, wasted=self.wasted - known)
        return books, replace(lease, lost=lease.lost - known)

    def with_cap(self, cap: int | None) -> Money:
        """The same books under another cap."""
        return replace(self, cap=cap)

    @staticmethod
    def _holds(have: int, amount: int) -> None:
        if not 0 <= amount <= have:
            raise LedgerError(f"{amount} nano-dollars are to be released, {have} are held")


@dataclass(frozen=True, slots=True)
class Lease:
    """What a worker may spend: `granted`, less what it gave back; `used` of it is settled, reserved or unknown.

    `lost` is what was written off and has not come to light since.
    """

    granted: int = 0
    used: int = 0
    lost: int = 0

    @property
    def left(self) -> int:
        """What it may still reserve. A bill above its reservation may have used more than was granted."""
        return max(0, self.granted - self.used)

    def grant(self, amount: int) -> Lease:
        """So much more; raises LedgerError if it is negative."""
        if amount < 0:
            raise LedgerError(f"a grant of {amount} nano-dollars")
        return replace(self, granted=self.granted + amount)

    def give_back(self, amount: int) -> Lease:
        """So much less; raises LedgerError if it is not left."""
        if not 0 <= amount <= self.left:
            raise LedgerError(f"{amount} nano-dollars are given back of a lease that has {self.left} left")
        return replace(self, granted=self.granted - amount)

    def use(self, change: int) -> Lease:
        """What its requests hold and cost became so much more, or less."""
        return replace(self, used=self.used + change)


@dataclass(frozen=True, slots=True)
class Quota:
    """Output tokens of one dataset: `limit` usable tokens wanted (None: all prompts), `kept` so far."""

    limit: int | None = None
    kept: int = 0

    @property
    def met(self) -> bool:
        """Whether enough was kept: 99.5 % of the limit, so that a run does not wait minutes for a last half answer."""
        return self.limit is not None and self.kept * 1000 >= self.limit * 995

    def keep(self, tokens: int) -> Quota:
        """Count tokens of a done or partial answer."""
        return replace(self, kept=self.kept + tokens)

    def with_limit(self, limit: int | None) -> Quota:
        """The same count under another limit."""
        return replace(self, limit=limit)

    def admits(self, in_flight: float, one_more: float) -> bool:
        """Whether one more answer is wanted, given the tokens that are foreseen from what is in flight.

        A quota is never judged by kept tokens alone: what flies is on its way to it. One more is wanted while less than
        half of it would lie above the limit, so that the error is centred; and while nothing flies, until it is met.
        """
        if self.limit is None:
            return True
        return not self.met and (in_flight == 0 or self.kept + in_flight + one_more / 2 <= self.limit)
