"""Which provider takes a request: outages, requests a second, slots that come and go, and how fast it then works (pure)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from eyas.sim.providers import Provider
from eyas.sim.scenarios import Scenario
from eyas.sim.slots import Buckets, Slots


class Full(NamedTuple):
    """Nobody takes it. The last provider that was tried says why: `kind` as `refusals.upstream` has it, `fault` for the books."""

    kind: str
    provider: Provider
    fault: str


class Gate:
    """The doors of a world's providers; times are seconds of its clock."""

    def __init__(self, scenario: Scenario, now: Callable[[], float]) -> None:
        self._scenario = scenario
        self._now = now
        self._began = now()
        self._slots = Slots({each.tag: each.batching for each in scenario.providers if each.batching})
        self._buckets = Buckets()

    def admit(self, tried: Sequence[Provider]) -> Provider | Full:
        """The first provider that takes one more; it has one slot less then."""
        now, failed = self._now(), Full("", tried[0], "")
        for provider in tried:
            if any(o.tag == provider.tag and o.start <= now - self._began < o.end for o in self._scenario.outages):
                failed = Full("unavailable", provider, "outage")
            elif not self._buckets.take(provider.tag, provider.per_second, now):
                failed = Full("requests", provider, "per_second")
            elif self._slots.take(provider.tag, self._room(provider, now), now):
                return provider
            else:
                failed = Full("rate_limit", provider, "slots")
        return failed

    def free(self, tag: str, at: float) -> None:
        """Give a slot back at that time, now or later."""
        self._slots.free(tag, at)

    def pace(self, tag: str) -> Callable[[], float]:
        """Tells the share of its full speed at which that provider works now."""
        return partial(self._slots.pace, tag)

    def worked(self, tag: str) -> Callable[[], float]:
        """Tells the seconds of full speed that each answer of that provider has had by now."""
        return lambda: self._slots.worked(tag, self._now())

    def _room(self, provider: Provider, now: float) -> int | None:
        """Slots that it has now; None is no limit."""
        scenario = self._scenario
        slots = provider.slots if scenario.slots is None else scenario.slots
        if not slots:
            return None
        since = now - self._began
        shares = [
            each.share for each in scenario.capacities if each.tag == provider.tag and each.start <= since < each.end
        ]
        return int(slots * min(shares, default=1.0))
