"""What a user wants changed in a running session, and whether it can be: parsed, judged, put into words. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from eyas.config.sections import MOST_IN_FLIGHT
from eyas.engine.checkup import SPARE_FILES
from eyas.errors import UsageError
from eyas.plan import GATEWAY, Route
from eyas.providers.choose import matches

FORM = "give in_flight=N, drop=TAG or take=TAG, one or more of them"


class Wish(msgspec.Struct, frozen=True):
    """What to change. `in_flight` is None where it stays; `drop` and `take` name endpoints as [providers] ignore does."""

    in_flight: int | None = None
    drop: tuple[str, ...] = ()
    take: tuple[str, ...] = ()


class Standing(NamedTuple):
    """How a session stands: requests that may fly, files that may be open (None: any number), its ways to ask.

    `dropped` are the tags that the user took out of it, `aside` those that the run set aside, each with the reason.
    """

    in_flight: int
    files: int | None
    routes: Sequence[Route]
    dropped: frozenset[str]
    aside: Mapping[str, str]


class Change(NamedTuple):
    """How it stands afterwards, and what changed, a sentence each."""

    in_flight: int
    dropped: frozenset[str]
    said: tuple[str, ...]


def parse(words: Sequence[str]) -> Wish:
    """The wish that `in_flight=500 drop=TAG take=TAG` says, in any order; what is given twice adds up, in_flight may not.

    Raises:
        UsageError: a word is none of these.
    """
    found: dict[str, list[str]] = {"in_flight": [], "drop": [], "take": []}
    for word in words:
        key, _, value = word.partition("=")
        if key not in found or not value.strip():
            raise UsageError(f"{word!r} is nothing that a running session can change: {FORM}")
        found[key].append(value.strip())
    numbers = found["in_flight"]
    if len(numbers) > 1:
        raise UsageError(f"in_flight is given {len(numbers)} times: give it once")
    if numbers and not numbers[0].isdecimal():
        raise UsageError(f"in_flight={numbers[0]}: give a whole number from 1 to {MOST_IN_FLIGHT}")
    return Wish(int(numbers[0]) if numbers else None, tuple(found["drop"]), tuple(found["take"]))


def judge(wish: Wish, now: Standing) -> Change:
    """What a session becomes by a wish: all of it, or nothing.

    Raises:
        UsageError: it cannot be.
    """
    said: list[str] = []
    in_flight = now.in_flight if wish.in_flight is None else _in_flight(wish.in_flight, now)
    if wish.in_flight is not None:
        said.append(_became("in_flight", str(now.in_flight), str(in_flight)))
    dropped = set(now.dropped)
    for tag in _tags(wish.take, now):
        if tag not in dropped and tag in now.aside:
            raise UsageError(
                f"{tag} was not dropped, so it cannot be taken back; the run set it aside itself: {now.aside[tag]}"
            )
        said.append(_became(tag, "dropped" if tag in dropped else "asked", "asked"))
        dropped.discard(tag)
    for tag in _tags(wish.drop, now):
        said.append(_became(tag, "dropped" if tag in dropped else "asked", "dropped"))
        dropped.add(tag)
    if len(dropped) > len(now.dropped) and all(r.tag in dropped or r.tag in now.aside for r in now.routes):
        raise UsageError(
            f"without {', '.join(wish.drop)} no endpoint is left to ask: end the run with ^C if that is what you want"
        )
    return Change(in_flight, frozenset(dropped), tuple(said))


def _became(what: str, before: str, after: str) -> str:
    return f"{what}: {before} already" if before == after else f"{what}: {before} → {after}"


def _in_flight(wanted: int, now: Standing) -> int:
    if not 1 <= wanted <= MOST_IN_FLIGHT:
        raise UsageError(f"in_flight={wanted}: give a whole number from 1 to {MOST_IN_FLIGHT}")
    if now.files is not None and wanted > max(now.in_flight, now.files - SPARE_FILES):
        raise UsageError(
            f"in_flight={wanted} needs {wanted + SPARE_FILES} open files, the run may open {now.files}: give at most "
            f"{max(1, now.files - SPARE_FILES)}, or end the run, raise the limit (ulimit -Hn as root) and start it again"
        )
    return wanted


def _tags(names: Sequence[str], now: Standing) -> list[str]:
    """The tags that names mean, each once."""
    found: dict[str, None] = {}
    tags = [route.tag for route in now.routes]
    if names and tags == [GATEWAY]:
        raise UsageError(
            'with [providers] routing = "gateway" OpenRouter picks who answers: end the run with ^C, put the endpoint into '
            "[providers] ignore, and start it again"
        )
    for name in names:
        meant = [route.tag for route in now.routes if any(matches(endpoint, name) for endpoint in route.endpoints)]
        if not meant:
            raise UsageError(f"the run asks no endpoint named {name}: it asks {', '.join(tags)}")
        found |= dict.fromkeys(meant)
    return list(found)
