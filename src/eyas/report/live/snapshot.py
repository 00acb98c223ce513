"""The figures of a live view at one moment, from the State, what was heard lately, and the pulse of the process. Pure.

Its cost does not depend on how large the run is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eyas.ledger import usd
from eyas.providers.throughput import own
from eyas.report import who, workers
from eyas.report.end import End
from eyas.report.live.pulse import Flying, Lane, Pulse
from eyas.report.live.recent import SPAN, Recent, Seen
from eyas.state import State
from eyas.types import STRICT, FailureKind, Label, StopReason, Verdict

REFUSALS = frozenset({FailureKind.RATE_LIMIT, FailureKind.IN_FLIGHT_BUDGET})
"""Kinds of errors that only say that there is no room just now: 429, 503, 529, and the account's in-flight budget."""
ENDS = (Verdict.REFUSED, Verdict.FAILED, Verdict.UNKNOWN)
"""Works that ended without an answer."""
NOBODY = Lane(0, 0)
"""An endpoint that is not asked now."""


class Purse(NamedTuple):
    """Where the dollars stand, in US dollars; `settled` includes `wasted`; `leased` is set apart for workers; no cap is None."""

    settled: float
    reserved: float
    unknown: float
    leased: float
    wasted: float
    cap: float | None


class Share(NamedTuple):
    """Answers that may be exported (strict), out of what was paid or answered. None: nothing was yet."""

    strict: float | None
    wasted: float | None
    cut: float | None


class Set(NamedTuple):
    """One dataset: output tokens kept, in flight and wanted (None: an answer to every prompt), works answered, lost, and all."""

    name: str
    kept: int
    flying: Flying
    limit: int | None
    answered: int
    lost: int
    works: int


class Server(NamedTuple):
    """One endpoint: its lane, whether it is asked now, and what it did; errors and refusals are those of the last minute."""

    tag: str
    lane: Lane
    asked: bool
    answers: int
    tokens: int
    usd: float
    tokens_per_second: float | None
    errors: int
    refusals: int
    failures: int


class Worker(NamedTuple):
    """One worker of a run over many machines: its lane, what became of it (empty: it is at work), and what it did.

    `leased` is what it may still spend, US dollars.
    """

    name: str
    lane: Lane
    left: str
    answers: int
    tokens: int
    usd: float
    leased: float


class Delay(NamedTuple):
    """Seconds to the first token: median and 95th percentile."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a live view shows.

    Attributes:
        standing: running, complete, partial or stopped.
        reason: why the last session ended; None while one runs, or where it was killed.
        stopping: why nothing more is started, empty while something is.
        pulse: what the process says of itself; None where none does.
        now, seconds: the moment (seconds since 1970), and how long this session has gone on.
        end: the predicted end of the session; None while not known.
        purse: None for a run without dollars.
        tokens_per_second: output tokens over the last minute; of a session that is over, over all of it.
        errors: by kind, in the last minute; they hold the refusals.
        seen: the last errors, the newest first.
    """

    model: str
    standing: str
    reason: StopReason | None
    stopping: str
    pulse: Pulse | None
    sessions: int
    now: float
    seconds: float
    end: End | None
    purse: Purse | None
    share: Share
    sets: tuple[Set, ...]
    servers: tuple[Server, ...]
    crew: tuple[Worker, ...]
    local: bool
    tokens: int
    tokens_per_second: float | None
    first: Delay | None
    errors: Mapping[FailureKind, int]
    labels: Mapping[Label, int]
    alarms: Sequence[str]
    seen: Sequence[Seen]

    @property
    def running(self) -> bool:
        """Whether a process carries the run now."""
        return self.standing == "running"

    @property
    def refused(self) -> int:
        """Refusals in the last minute."""
        return sum(count for kind, count in self.errors.items() if kind in REFUSALS)

    @property
    def failed(self) -> int:
        """Other errors in the last minute."""
        return sum(self.errors.values()) - self.refused


def snapshot(recent: Recent, pulse: Pulse | None, now: float, standing: str, most_errors: int = 5) -> Snapshot:
    """The run at that moment (wall seconds); `standing` as `summary.standing` says it. Over, it is shown as it was at its end."""
    state, running = recent.state, standing == "running"
    now = now if running else recent.last
    seconds = max(0.0, now - state.opened) if state.sessions else 0.0
    failures = recent.failures.counts(now)
    errors = Counter[FailureKind]()
    for (_, kind), count in failures.items():
        errors[kind] += count
    kept = recent.tokens.counts(now)
    return Snapshot(
        model=state.model,
        standing=standing,
        reason=state.closed,
        stopping=pulse.stopping if pulse else "",
        pulse=pulse,
        sessions=state.sessions,
        now=now,
        seconds=seconds,
        end=pulse.end(now) if pulse else None,
        purse=None if who.free(state) else _purse(state),
        share=_share(recent),
        sets=tuple(_set(recent, name, pulse) for name in state.datasets),
        servers=_servers(state, pulse, failures, kept, min(SPAN, seconds)),
        crew=_crew(state, pulse, running=running),
        local=bool(own(state)),
        tokens=sum(each.quota.kept for each in state.datasets.values()),
        tokens_per_second=_speed(recent, pulse, sum(kept.values()), seconds, running=running),
        first=_delay(recent.first_tokens(now)),
        errors=errors,
        labels={label: recent.worth.labels[label] for label in Label if recent.worth.labels[label]},
        alarms=tuple(state.alarms[-1:]),
        seen=tuple(recent.errors(most_errors)),
    )


def _purse(state: State) -> Purse:
    money = state.money
    return Purse(
        settled=usd(money.settled),
        reserved=usd(money.reserved),
        unknown=usd(money.unknown),
        leased=usd(money.leased),
        wasted=usd(money.wasted),
        cap=None if money.cap is None else usd(money.cap),
    )


def _share(recent: Recent) -> Share:
    """Of the dollars paid; of the answers, where none are."""
    money, worth = recent.state.money, recent.worth
    cut = worth.cut / worth.answers if worth.answers else None
    if money.settled:
        return Share(worth.strict / money.settled, money.wasted / money.settled, cut)
    strict = sum(count for label, count in worth.labels.items() if label in STRICT)
    return Share(strict / worth.answers if worth.answers else None, None, cut)


def _set(recent: Recent, name: str, pulse: Pulse | None) -> Set:
    dataset = recent.state.datasets[name]
    ended = dataset.ended
    return Set(
        name,
        dataset.quota.kept,
        pulse.flying.get(name, Flying()) if pulse else Flying(),
        dataset.quota.limit,
        ended.get(Verdict.DONE, 0) + ended.get(Verdict.PARTIAL, 0),
        sum(ended.get(verdict, 0) for verdict in ENDS),
        recent.works(name),
    )


def _servers(
    state: State,
    pulse: Pulse | None,
    failures: Mapping[tuple[str, FailureKind], int],
    kept: Mapping[str, int],
    seconds: float,
) -> tuple[Server, ...]:
    """Endpoints asked now, the cheapest first and those not asked yet last, then those that were; the order rarely changes."""
    lanes = pulse.lanes if pulse else {}
    refusals, errors = Counter[str](), Counter[str]()
    for (tag, kind), count in failures.items():
        (refusals if kind in REFUSALS else errors)[tag] += count
    found: list[tuple[bool, float, Server]] = []
    for tag in state.providers.keys() | lanes.keys():
        known, lane = state.providers.get(tag), lanes.get(tag)
        asked = lane is not None and (not lane.aside or lane.in_flight > 0)
        speed = lane.tokens_per_second if lane else kept.get(tag, 0) / seconds if seconds else None
        server = Server(
            tag,
            lane or NOBODY,
            asked,
            known.answers if known else 0,
            known.output_tokens if known else 0,
            usd(known.cost) if known else 0.0,
            speed,
            errors[tag],
            refusals[tag],
            sum(known.failures.values()) if known else 0,
        )
        price = known.prices.completion if known and known.prices else math.inf
        found.append((not asked, price, server))
    return tuple(server for *_, server in sorted(found, key=lambda each: (each[0], each[1], each[2].tag)))


def _crew(state: State, pulse: Pulse | None, *, running: bool) -> tuple[Worker, ...]:
    """Those at work first, each by its number; after them those that left."""
    lanes = pulse.workers if pulse else {}
    found = [
        Worker(
            f"{number} {worker.node}".rstrip(),
            lanes.get(number, NOBODY),
            workers.words(worker, away=number not in lanes and (pulse is not None or not running)),
            worker.answers,
            worker.output_tokens,
            usd(worker.cost),
            usd(workers.leased(worker)),
        )
        for number, worker in state.workers.items()
    ]
    return tuple(sorted(found, key=lambda each: bool(each.left)))


def _speed(recent: Recent, pulse: Pulse | None, kept: int, seconds: float, *, running: bool) -> float | None:
    if pulse is not None:
        return pulse.tokens_per_second
    if not seconds:
        return None
    return kept / min(SPAN, seconds) if running else recent.session_tokens / seconds


def _delay(seconds: Sequence[float]) -> Delay | None:
    """Percentiles: the smallest value that so many of the values do not exceed."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    p50, p95 = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95))
    return Delay(p50, p95)
