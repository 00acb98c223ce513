"""What a live view needs beside the State, kept up with each event: the last minute, the last errors, what answers are worth.

An event costs the same however large the run is, and memory is bounded. Only the beginning looks at every attempt, once.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from eyas.events import AnyEvent, Corrected, Forgotten, Labelled, PromptAdded, PromptRemoved, SessionOpened, Settled
from eyas.state import Attempt, State
from eyas.types import STRICT, FailureKind, Finish, Label

SPAN = 60
"""Seconds of the last minute; it is kept by whole seconds."""
MOST_FIRST = 1000
FEWEST_FIRST = 20
"""Times to a first token: how many are remembered, and how many are told of though they are older than a minute."""
MOST_KINDS = 64
"""Kinds of errors, by endpoint, that are remembered."""
_TRIM = 20_000

K = TypeVar("K")


class Minute(Generic[K]):
    """How often things happened in the last SPAN whole seconds, the one that runs among them."""

    def __init__(self) -> None:
        self._bins: deque[tuple[int, Counter[K]]] = deque()
        self._total: Counter[K] = Counter()

    def add(self, at: float, key: K, count: int = 1) -> None:
        """It happened at that time (seconds); one before the last is taken to have happened with it."""
        second = int(at)
        if not self._bins or second > self._bins[-1][0]:
            self._bins.append((second, Counter()))
            self._forget(second)
        self._bins[-1][1][key] += count
        self._total[key] += count

    def counts(self, now: float) -> Counter[K]:
        """How often each happened, until `now`."""
        self._forget(int(now))
        return +self._total

    def _forget(self, second: int) -> None:
        while self._bins and self._bins[0][0] <= second - SPAN:
            self._total.subtract(self._bins.popleft()[1])


class Seen(NamedTuple):
    """An error as it came last: when (seconds since 1970), its endpoint, what kind, in words, and how often so far."""

    at: float
    tag: str
    kind: FailureKind
    detail: str
    times: int


@dataclass(slots=True)
class Worth:
    """What answers are: how many, by label, cut at max_tokens; nano-dollars of those with a strict label."""

    answers: int = 0
    cut: int = 0
    strict: int = 0
    labels: Counter[Label] = field(default_factory=Counter[Label])

    def add(self, state: State, attempt: Attempt, sign: int) -> None:
        """Add (1) or take off (-1) what an attempt is worth as the state has it now."""
        if not attempt.answered or attempt.settled is None:
            return
        self.answers += sign
        self.cut += sign * (attempt.settled.finish is Finish.LENGTH)
        label = state.labels.get(attempt.id)
        if label is not None:
            self.labels[label] += sign
            self.strict += sign * (attempt.cost or 0) * (label in STRICT)


class Recent:
    """A State and what was heard of it lately. Every event goes through `take`, once.

    Attributes:
        state: the run; `take` applies events to it.
        worth: what its answers are.
        failures: (endpoint, kind) of what went wrong in the last minute.
        tokens: output tokens kept in the last minute, by endpoint.
        session_tokens: output tokens kept since the last session began.
        last: the time of the last event, seconds since 1970.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.worth = Worth()
        self.failures: Minute[tuple[str, FailureKind]] = Minute()
        self.tokens: Minute[str] = Minute()
        self.session_tokens = 0
        self.last = state.opened
        self._works: dict[str, int] = {}
        self._first: deque[tuple[float, float]] = deque(maxlen=MOST_FIRST)
        self._seen: OrderedDict[tuple[str, FailureKind], Seen] = OrderedDict()

    @classmethod
    def of(cls, state: State) -> Recent:
        """Of a run that was read before: one look at every attempt."""
        found, late = cls(state), _Late()
        for attempt in state.attempts.values():
            settled = attempt.settled
            if settled is not None:
                found.worth.add(state, attempt, 1)
                found.session_tokens += settled.tokens if settled.at >= state.opened else 0
                late.add(settled, attempt.tag)
        for settled, tag in late.in_order():
            found._ended(settled, tag)
        return found

    def take(self, event: AnyEvent) -> None:
        """Apply an event to the state and note what it tells."""
        state, self.last = self.state, max(self.last, event.at)
        match event:
            case Settled():
                attempt = state.attempts.get(event.attempt)
                known = None if attempt is None else state.works.get(attempt.work)
                former = () if known is None or known.answer is None else (known.answer,)
                self._weigh(event, (event.attempt, *former))
                self.session_tokens += event.tokens
                self._ended(event, state.attempts[event.attempt].tag)
            case Labelled() | Corrected():
                self._weigh(event, (event.attempt,))
            case Forgotten():
                state.apply(event)
                self.worth = Recent.of(state).worth
                self._works.clear()
            case SessionOpened():
                state.apply(event)
                self.session_tokens = 0
                self._works.clear()
            case PromptAdded() | PromptRemoved():
                state.apply(event)
                self._works.pop(event.dataset, None)
            case _:
                state.apply(event)

    def _weigh(self, event: AnyEvent, numbers: tuple[int, ...]) -> None:
        """Apply an event that may change what those attempts are worth."""
        touched = [self.state.attempts[number] for number in numbers if number in self.state.attempts]
        for attempt in touched:
            self.worth.add(self.state, attempt, -1)
        self.state.apply(event)
        for attempt in touched:
            self.worth.add(self.state, attempt, 1)

    def _ended(self, event: Settled, tag: str) -> None:
        self.last = max(self.last, event.at)
        if event.tokens:
            self.tokens.add(event.at, tag, event.tokens)
        if event.first_token is not None:
            self._first.append((event.at, event.first_token))
        if event.kind is not None:
            self.failures.add(event.at, (tag, event.kind))
            former = self._seen.pop((tag, event.kind), None)
            times = 1 + (former.times if former else 0)
            self._seen[tag, event.kind] = Seen(event.at, tag, event.kind, event.detail, times)
        if len(self._seen) > MOST_KINDS:
            self._seen.popitem(last=False)

    def works(self, dataset: str) -> int:
        """Answers owed in all by that dataset, ended or not; its prompts are looked at only after they changed."""
        known = self.state.datasets[dataset]
        if dataset not in self._works:
            self._works[dataset] = known.works
        return max(self._works[dataset], sum(known.ended.values()))

    def first_tokens(self, now: float) -> list[float]:
        """Seconds to the first token of the answers of the last minute; of few, of the last ones."""
        late = [seconds for at, seconds in self._first if at > now - SPAN]
        return late if len(late) >= FEWEST_FIRST else [seconds for _, seconds in self._first][-FEWEST_FIRST:]

    def errors(self, most: int) -> list[Seen]:
        """The last errors, the newest first: of each kind at each endpoint the last one."""
        return [self._seen[key] for key in reversed(self._seen)][:most]


class _Late:
    """Ends of attempts, in any order: what went wrong at any time, and of the rest those of the last minute or the last few."""

    def __init__(self) -> None:
        self._failed: list[tuple[Settled, str]] = []
        self._ended: list[tuple[Settled, str]] = []
        self._trim = _TRIM

    def add(self, settled: Settled, tag: str) -> None:
        """An attempt at that endpoint ended so."""
        (self._ended if settled.kind is None else self._failed).append((settled, tag))
        if len(self._ended) >= self._trim:
            self._ended = self._last()
            self._trim = _TRIM + 2 * len(self._ended)

    def in_order(self) -> list[tuple[Settled, str]]:
        """All that is kept, by time."""
        return sorted((*self._failed, *self._last()), key=_when)

    def _last(self) -> list[tuple[Settled, str]]:
        ended = sorted(self._ended, key=_when)
        since = _when(ended[-1]) - SPAN - 1 if ended else 0.0
        return ended[-max(FEWEST_FIRST, sum(_when(each) > since for each in ended)) :]


def _when(ended: tuple[Settled, str]) -> float:
    return ended[0].at
