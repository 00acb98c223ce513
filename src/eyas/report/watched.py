"""The predicted end of a run that another process carries on, from its journal alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eyas.config import RunConfig
from eyas.forecast import Lengths, Times
from eyas.report.end import End, Stream, end
from eyas.state import Attempt, State, count_stranded
from eyas.types import Verdict

_NEIGHBOURS = 200


def outlook(state: State, config: RunConfig, now: float) -> End | None:
    """When the session that runs will be over; `now` is wall seconds. None: not known yet."""
    most = {each.name: config.max_tokens(each.name) for each in config.datasets}
    lengths, times = {name: Lengths(tokens) for name, tokens in most.items()}, Times()
    for work, known in state.works.items():
        if known.verdict is not Verdict.DONE or work.dataset not in lengths or known.answer is None:
            continue
        lengths[work.dataset].add(known.tokens)
        settled = state.attempts[known.answer].settled
        if settled is not None and settled.seconds:
            times.add(work.dataset, settled.seconds)
    return end(state, lengths, times, _streams(state, most, now), count_stranded(state), config.budget.mode)


def _streams(state: State, most: Mapping[str, int], now: float) -> Iterator[Stream]:
    """What flies. The journal does not say how far each has come: as far as answers are wont to since it began."""
    answers = [each for each in state.providers.values() if each.seconds]  # what was imported took no time
    speed = sum(each.output_tokens for each in answers) / max(1.0, sum(each.seconds for each in answers))
    for attempt in state.left_open():
        seconds, name = max(0.0, now - _began(state, attempt, now)), attempt.work.dataset
        yield Stream(name, int(min(seconds * speed, most.get(name, 1) - 1)), seconds)


def _began(state: State, attempt: Attempt, now: float) -> float:
    """About when it was sent: as one that was sent just before or after it and has ended."""
    for step in range(1, _NEIGHBOURS):
        for number in (attempt.id + step, attempt.id - step):
            other = state.attempts.get(number)
            if other is not None and other.settled is not None and other.settled.seconds:
                return max(state.opened, other.settled.at - other.settled.seconds)
    return now
