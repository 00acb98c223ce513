"""The endpoint list and the account, read again while a run goes on: who may still be asked, and whether the money lasts.

An endpoint that is gone, down, served otherwise or dearer than its route was admitted at is set aside, and comes back when
a later list shows it fine. Nothing here stops a run: a list that cannot be read is said once, and read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eyas.backends.openrouter import OpenRouter
from eyas.engine.account import Account, read_account
from eyas.engine.inputs import list_endpoints
from eyas.engine.settle import Books
from eyas.errors import ApiError, EyasError
from eyas.events import Alarm
from eyas.ledger import Money, usd
from eyas.plan import Route
from eyas.providers.choose import Verdict, matches, provider_block
from eyas.providers.rules import Rule
from eyas.types import NANO, Prices

PATIENCE = 6
"""Re-reads in a row that a run waits for when each of its endpoints is set aside; then it ends with works owed."""

MUCH = 0.25
"""The share by which a shortfall must change to be said again; and no less than LITTLE of the cap."""
LITTLE = 0.05

GONE = "gone"
DEARER = "dearer"


class Objection(NamedTuple):
    """Why an endpoint is asked no more: what kind of reason (a Rule, or one of the two above), and in words."""

    kind: str
    reason: str


def objections(route: Route, found: Sequence[Verdict]) -> dict[str, Objection]:
    """By tag, why endpoints of a route may not be asked for now; `found` are the verdicts on a fresh list."""
    return {
        tag: objection
        for tag in dict.fromkeys(endpoint.tag for endpoint in route.endpoints)
        if (objection := _objection(tag, route, found)) is not None
    }


def _objection(tag: str, route: Route, found: Sequence[Verdict]) -> Objection | None:
    own = [verdict for verdict in found if verdict.endpoint.tag == tag]
    if not own:
        return Objection(GONE, "it is no longer in the endpoint list")
    for verdict in own:
        if not verdict.use:
            return Objection(verdict.rule, verdict.reason)
        if _dearer(verdict.endpoint.prices, route.prices):
            return Objection(DEARER, _rise(verdict.endpoint.prices, route.prices))
    ignored = route.block.get("ignore", ())
    for verdict in found:
        endpoint = verdict.endpoint
        reached = matches(endpoint, tag) and not any(matches(endpoint, name) for name in ignored)
        if reached and not verdict.use and verdict.rule is not Rule.STATUS:
            return Objection(Rule.TAG, f"requests to {tag} now reach {endpoint.tag} too: {verdict.reason}")
    return None


def _dearer(now: Prices, bound: Prices) -> bool:
    return now.prompt > bound.prompt or now.completion > bound.completion or now.request > bound.request


def _rise(now: Prices, bound: Prices) -> str:
    prices = " ".join(f"${price / NANO:g}" for price in (now.prompt, now.completion))
    admitted = " ".join(f"${price / NANO:g}" for price in (bound.prompt, bound.completion))
    return f"it now costs {prices} per M tokens (in, out), the run admitted it at {admitted}; a new start takes the new price"


def shortfall(account: Account, money: Money) -> int:
    """Nano-dollars that the run may still spend and the account does not hold; 0 where it does, or nobody knows."""
    if account.spendable is None or money.free is None:
        return 0
    return max(0, money.free + money.reserved - account.spendable)


def much(short: int, said: int, cap: int) -> bool:
    """Whether a shortfall differs from the one that was said by so much that it is worth another sentence."""
    return short > 0 and abs(short - said) > max(MUCH * said, LITTLE * cap if said else 0)


@dataclass(slots=True)
class Reread:
    """What one session learns anew of its market. `out` are the endpoints that a list objects to now, by tag."""

    books: Books
    out: dict[str, Objection] = field(default_factory=dict[str, Objection])
    _aside: set[str] = field(default_factory=set[str])
    _blocks: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    _told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    _short: int = 0
    _idle: int = 0

    @property
    def _until(self) -> str:
        return "the endpoint list shows it fine again" if self.books.setting.backend.bills else "it answers again"

    async def watch(self) -> None:
        """Read both again and again, until cancelled."""
        while True:
            await asyncio.sleep(self.books.setting.config.reread_seconds)
            await self._endpoints()
            if isinstance(self.books.setting.backend, OpenRouter):
                await self._account(self.books.setting.backend)

    def block(self, route: Route) -> Mapping[str, Any]:
        """The `provider` object that requests on a route carry now."""
        return self._blocks.get(route.tag, route.block)

    def hopeful(self) -> bool:
        """Whether an endpoint that a list objects to may yet come back, so that a run without any other waits."""
        return bool(self.out) and self._idle < PATIENCE

    def apply(self, found: Sequence[Verdict]) -> None:
        """Set aside what a fresh list objects to, and take back what it no longer does."""
        pace, routes = self.books.pace, self.books.setting.served.routes
        self.out = {}
        for route in routes:
            against = objections(route, found)
            self.out |= against
            self._narrow(route, found)
            if all(endpoint.tag in against for endpoint in route.endpoints):
                self._aside.add(route.tag)
                pace.set_aside(route.tag, next(iter(against.values())).reason, for_good=False)
            elif route.tag in self._aside:
                self._aside.discard(route.tag)
                pace.take_back(route.tag)
            for tag, (kind, reason) in against.items():
                self._say(tag, kind, f"{tag} is asked no more until {self._until}: {reason}")
        idle = all(pace.window(route.tag).aside for route in routes)
        self._idle = self._idle + 1 if idle else 0

    def _narrow(self, route: Route, found: Sequence[Verdict]) -> None:
        """Where OpenRouter picks among several endpoints, leave out those that may not answer now."""
        self._blocks.pop(route.tag, None)
        left = [endpoint for endpoint in route.endpoints if endpoint.tag not in self.out]
        if left and len(left) < len(route.endpoints):
            barred = [verdict.endpoint for verdict in found if not verdict.use]
            self._blocks[route.tag] = provider_block(left, self.books.setting.config.providers, barred)

    async def _endpoints(self) -> None:
        setting = self.books.setting
        try:
            offer = await list_endpoints(setting.config, setting.backend, self.books.world.transport)
            if not offer.verdicts:
                raise ApiError("it names no endpoint at all")
        except EyasError as error:
            self._failed("the endpoint list", error)
            return
        self.apply(offer.verdicts)

    async def _account(self, backend: OpenRouter) -> None:
        try:
            account = await read_account(backend, self.books.world.transport)
        except EyasError as error:
            self._failed("what the key may spend", error)
            return
        money = self.books.state.money
        short = shortfall(account, money)
        if much(short, self._short, money.cap or 0):
            self._short = short
            self._alarm(_too_little(account, money))

    def _failed(self, what: str, error: EyasError) -> None:
        every = self.books.setting.config.reread_seconds
        self._say(
            what, "", f"{what} could not be read again, the run goes on without and tries in {every:g} s: {error}"
        )

    def _say(self, what: str, kind: str, detail: str) -> None:
        if (what, kind) not in self._told:
            self._told.add((what, kind))
            self._alarm(detail)

    def _alarm(self, detail: str) -> None:
        self.books.emit(Alarm(at=self.books.world.wall(), detail=detail))
        self.books.last_error = detail


def _too_little(account: Account, money: Money) -> str:
    spendable, wanted = account.spendable or 0, (money.free or 0) + money.reserved
    balance = account.credits is not None and spendable >= account.credits.balance
    what = "the account's balance is" if balance else "the key's limit leaves"
    return (
        f"{what} ${usd(spendable):.2f}, the run may still spend ${usd(wanted):.2f}: it will end when the former is spent; "
        f"{'add credits' if balance else 'raise the limit of the key'}, or resume later"
    )
