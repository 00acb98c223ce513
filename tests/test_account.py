"""What the API says of the account: limits are read to the nano-dollar, and never overstated."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from pydantic import SecretStr

from eyas.backends.account import KeyInfo, read_credits, read_key
from eyas.backends.openrouter import OpenRouter
from eyas.engine.account import Account, read_account
from eyas.errors import ApiError, KeyOrCreditsError
from eyas.families import Loaded
from eyas.sim import World, load
from tests.virtual import FakeTransport, now, play

NANO = 1_000_000_000


def test_a_keys_limit_is_read_and_rounded_down() -> None:
    """Ten digits after the point: what may be spent is never overstated; what is absent is not known."""
    found = read_key({"label": "sk-or-...", "limit": 100, "limit_remaining": 12.1234567899, "usage": 87.9, "new": [1]})
    assert (found.limit, found.remaining, found.usage) == (100 * NANO, 12_123_456_789, 87_900_000_000)
    assert read_key({}) == KeyInfo()
    assert read_key({"limit_remaining": -0.5}).remaining == -NANO // 2


@pytest.mark.parametrize("data", [None, [], {"limit": "much"}])
def test_a_key_described_otherwise_is_an_error(data: object) -> None:
    """A shape that is not known is said to be so."""
    with pytest.raises(ApiError, match="update eyas"):
        read_key(data)
    with pytest.raises(ApiError, match="update eyas"):
        read_credits(data)


@pytest.mark.parametrize(
    ("remaining", "balance", "spendable"), [(None, None, None), (5, None, 5), (None, 7, 7), (5, 3, 3), (-2, 3, 0)]
)
def test_the_lower_wall_counts(remaining: int | None, balance: int | None, spendable: int | None) -> None:
    """Of the key's limit and the account's balance the lower one holds."""
    balance_read = None if balance is None else read_credits({"total_credits": balance, "total_usage": 0})
    key = KeyInfo(remaining=None if remaining is None else remaining * NANO)
    found = Account(key, balance_read).spendable
    assert found == (None if spendable is None else spendable * NANO)


def asked_with(key: str, kimi: Loaded) -> Account:
    """What the simulator's account says to that key."""
    scenario = replace(load("clean"), management_keys=("boss",), key_limit_usd=9.0, balance_usd=4.0)

    async def main() -> Account:
        market = World(scenario, 0, kimi.vocab, now)
        backend = OpenRouter("https://api.test/api/v1", scenario.model, SecretStr(key))
        return await read_account(backend, FakeTransport(market.handle))

    return play(main)


def test_an_ordinary_key_knows_its_own_limit_only(kimi: Loaded) -> None:
    """The balance is for management keys; without it the key's limit is the wall."""
    assert asked_with("sk-1", kimi).credits is None
    assert asked_with("sk-1", kimi).spendable == 9 * NANO
    assert asked_with("boss", kimi).spendable == 4 * NANO


def test_a_refused_key_is_an_error(kimi: Loaded) -> None:
    """Without a key nothing is told."""
    with pytest.raises(KeyOrCreditsError):
        asked_with("", kimi)
