"""What the account may still spend, asked of the API: the wall behind the run's own cap."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.backends.account import Credits, KeyInfo, read_credits, read_key
from eyas.backends.openrouter import OpenRouter
from eyas.engine.inputs import ask
from eyas.errors import ApiError, KeyOrCreditsError, UsageError
from eyas.transport import Transport


@dataclass(frozen=True, slots=True)
class Account:
    """The key's own figures, and the account's credits where the key may read them (a management key only)."""

    key: KeyInfo
    credits: Credits | None

    @property
    def spendable(self) -> int | None:
        """The most that may still be spent, nano-dollars: the lower of the two walls; None where neither is known."""
        walls = [self.key.remaining, self.credits.balance if self.credits else None]
        known = [wall for wall in walls if wall is not None]
        return max(0, min(known)) if known else None


async def read_account(backend: OpenRouter, transport: Transport) -> Account:
    """Ask for the key's limit and the balance; an ordinary key knows only the first.

    Raises:
        KeyOrCreditsError: the key is refused.
        ApiError: the API does not answer, or in a shape that eyas does not know.
    """
    key = read_key(await ask("what it knows of the key", backend, transport, backend.about_key()))
    try:
        balance = read_credits(await ask("the balance", backend, transport, backend.credits()))
    except (ApiError, KeyOrCreditsError, UsageError):  # the last: an API without that page
        balance = None
    return Account(key, balance)
