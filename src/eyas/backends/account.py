"""What the API says of the account: the key's own limit, and the balance. Source: https://openrouter.ai/docs/api-reference/limits."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from eyas.errors import ApiError
from eyas.ledger import nano_dollars


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key's own limit and use, nano-dollars; None: it has no limit, or the API does not say.

    Attributes:
        label: how the account names the key; never the key.
        limit, remaining: what it may spend in all, and from now on.
        usage: what it spent so far, by the API's books; they may lag.
        free_tier: the account never bought credits.
        management: it manages other keys and cannot buy answers.
        expires_at: ISO 8601, empty for never.
    """

    label: str = ""
    limit: int | None = None
    remaining: int | None = None
    usage: int | None = None
    free_tier: bool = False
    management: bool = False
    expires_at: str = ""


@dataclass(frozen=True, slots=True)
class Credits:
    """The account's credits, nano-dollars: bought in all, and used."""

    total: int
    used: int

    @property
    def balance(self) -> int:
        """What is left."""
        return self.total - self.used


class _Key(msgspec.Struct):
    label: str | None = None
    limit: Decimal | None = None
    limit_remaining: Decimal | None = None
    usage: Decimal | None = None
    is_free_tier: bool | None = None
    is_management_key: bool | None = None
    is_provisioning_key: bool | None = None
    expires_at: str | None = None


class _Credits(msgspec.Struct):
    total_credits: Decimal
    total_usage: Decimal


def read_key(data: Any) -> KeyInfo:
    """The `data` of GET /key.

    Raises:
        ApiError: it has another shape.
    """
    try:
        key = msgspec.convert(data, _Key, strict=False)
    except msgspec.ValidationError as error:
        raise ApiError(f"the API describes the key in a way that eyas does not know ({error}): update eyas") from None
    return KeyInfo(
        label=key.label or "",
        limit=_nano(key.limit),
        remaining=_nano(key.limit_remaining),
        usage=_nano(key.usage),
        free_tier=bool(key.is_free_tier),
        management=bool(key.is_management_key or key.is_provisioning_key),
        expires_at=key.expires_at or "",
    )


def read_credits(data: Any) -> Credits:
    """The `data` of GET /credits, which only a management key may ask for.

    Raises:
        ApiError: it has another shape.
    """
    try:
        found = msgspec.convert(data, _Credits, strict=False)
    except msgspec.ValidationError as error:
        raise ApiError(
            f"the API describes its credits in a way that eyas does not know ({error}): update eyas"
        ) from None
    return Credits(_floor(found.total_credits), nano_dollars(found.total_usage))


def _nano(value: Decimal | None) -> int | None:
    return None if value is None else _floor(value)


def _floor(value: Decimal) -> int:
    """Rounded down: what may be spent is never overstated. A limit overspent is below zero."""
    return int((value * 1_000_000_000).to_integral_value(rounding="ROUND_FLOOR"))
