"""What each endpoint or server did: answers, money, times, and what a strict export makes of its answers (pure)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from eyas.ledger import MILLION, usd
from eyas.report.document import Endpoint, Spread
from eyas.standing import Attempt
from eyas.state import State
from eyas.survey.judged import OfTag


@dataclass(slots=True)
class _Times:
    """Times of the answers of one endpoint: seconds to the first token, seconds in all, tokens a second."""

    first: list[float] = field(default_factory=list[float])
    whole: list[float] = field(default_factory=list[float])
    speed: list[float] = field(default_factory=list[float])

    def add(self, attempt: Attempt) -> None:
        """Take in an answer; one that was imported took no time."""
        ended = attempt.settled
        if ended is None or not ended.seconds:
            return
        self.whole.append(ended.seconds)
        if ended.first_token is not None:
            self.first.append(ended.first_token)
        writing = ended.seconds - (ended.first_token or 0.0)
        if ended.tokens and writing > 0:
            self.speed.append(ended.tokens / writing)


@dataclass(slots=True)
class _Sums:
    """What one endpoint did in all runs; `cost` is nano-dollars."""

    name: str = ""
    answers: int = 0
    tokens: int = 0
    cost: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    times: _Times = field(default_factory=_Times)


def endpoints(states: Sequence[State], judged: Mapping[str, OfTag]) -> list[Endpoint]:
    """Every endpoint that was asked, those with the most answers first.

    Args:
        states: where the runs stand.
        judged: what a strict export makes of the answers, by tag.
    """
    sums: defaultdict[str, _Sums] = defaultdict(_Sums)
    for state in states:
        for tag, known in state.providers.items():
            found = sums[tag]
            found.name = known.name or found.name
            found.answers += known.answers
            found.tokens += known.output_tokens
            found.cost += known.cost
            found.failures.update({kind.value: count for kind, count in known.failures.items()})
        for attempt in state.attempts.values():
            if attempt.answered:
                sums[attempt.tag].times.add(attempt)
    ranked = sorted(sums.items(), key=lambda item: (-item[1].answers, item[0]))
    return [_endpoint(tag, found, judged.get(tag) or OfTag()) for tag, found in ranked]


def _endpoint(tag: str, sums: _Sums, judged: OfTag) -> Endpoint:
    return Endpoint(
        tag=tag,
        name=sums.name,
        answers=sums.answers,
        output_tokens=sums.tokens,
        supervised_tokens=judged.supervised,
        usd=usd(sums.cost),
        usd_per_m_output=per_million(sums.cost, sums.tokens),
        usd_per_m_supervised=per_million(sums.cost, judged.supervised),
        first_token_seconds=spread(sums.times.first),
        seconds=spread(sums.times.whole),
        tokens_per_second=spread(sums.times.speed),
        failures=dict(sorted(sums.failures.items())),
        labels=dict(judged.labels),
    )


def per_million(nano: int, tokens: int) -> float | None:
    """US dollars a million tokens, rounded up to a nano-dollar; None where there are none."""
    return usd(-(-nano * MILLION // tokens)) if tokens else None


def spread(values: Sequence[float]) -> Spread:
    """The median and the 95th percentile."""
    if not values:
        return Spread(p50=None, p95=None)
    p50, p95 = (round(float(each), 3) for each in np.percentile(values, (50, 95)))
    return Spread(p50=p50, p95=p95)
