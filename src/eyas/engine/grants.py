"""How much a worker is handed at once: enough to keep it busy, less and less towards the end. Pure; money is nano-dollars."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.ledger import Lease

PARTS = 4
"""A grant is at most what is left over so many times the workers, so that none of them holds what the others lack at the end."""


@dataclass(frozen=True, slots=True)
class Crew:
    """How many workers, how many requests each may have in flight, and how many prompts it is handed at once."""

    workers: int
    in_flight: int
    prompts: int


def share(wanted: int, left: int, workers: int, least: int = 1) -> int:
    """So much of what is wanted as one worker gets of what is left: not below `least`, where there is so much."""
    if wanted <= 0 or left < least:
        return 0
    return min(max(wanted, least), max(least, left // (PARTS * workers)), left)


def prompts(crew: Crew, waiting: int, left: int) -> int:
    """How many prompts a worker gets that has so many waiting, of so many that are left: none while half a lease waits."""
    if 2 * waiting >= crew.prompts:
        return 0
    return share(crew.prompts - waiting, left, crew.workers)


@dataclass(frozen=True, slots=True)
class Need:
    """What a worker has to do: works that wait there, requests that fly, and what one more request reserves at most."""

    waiting: int
    in_flight: int
    reservation: int


def money(crew: Crew, need: Need, lease: Lease, free: int) -> int:
    """How much more a worker may spend: so that all that waits may fly, as far as it may fly at once."""
    more = min(need.waiting, max(0, crew.in_flight - need.in_flight))
    return share(more * need.reservation - lease.left, free, crew.workers, need.reservation)
