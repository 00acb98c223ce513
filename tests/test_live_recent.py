"""What a live view keeps beside the State equals a plain recount of all events, wherever it began to listen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from eyas.events import AnyEvent, Intent, SessionOpened, Settled
from eyas.ledger import usd
from eyas.report.live.recent import FEWEST_FIRST, MOST_KINDS, SPAN, Minute, Recent, Seen
from eyas.report.summary import status
from eyas.state import State, fold
from eyas.types import FailureKind, Finish, Verdict, Work
from tests.test_state import histories, intent, opened, settled


@st.composite
def timed(draw: st.DrawFn) -> list[AnyEvent]:
    """A history at times of its own, always later; some answers say when their first token came, or were cut at max_tokens."""
    events, at = list[AnyEvent](), 1000.0
    for event in draw(histories()):
        at += draw(st.sampled_from([0.01, 0.7, 5.0, 40.0]))
        more: dict[str, object] = {"at": at}
        if isinstance(event, Settled):
            more["first_token"] = draw(st.one_of(st.none(), st.floats(0.1, 9.0)))
            more["finish"] = draw(st.sampled_from([None, Finish.STOP, Finish.LENGTH]))
        events.append(msgspec.structs.replace(event, **more))
    return events


def tags(events: Sequence[AnyEvent]) -> dict[int, str]:
    """The endpoint of each attempt."""
    return {event.attempt: event.tag for event in events if isinstance(event, Intent)}


def recounted(recent: Recent, events: Sequence[AnyEvent], now: float) -> None:
    """It knows what all the events say, looked at one by one."""
    ends, tag = [event for event in events if isinstance(event, Settled)], tags(events)
    late = [event for event in ends if int(event.at) > int(now) - SPAN]
    assert recent.failures.counts(now) == Counter((tag[e.attempt], e.kind) for e in late if e.kind)
    kept = Counter[str]()
    for event in late:
        kept[tag[event.attempt]] += event.tokens
    assert recent.tokens.counts(now) == +kept
    seen: dict[tuple[str, FailureKind], Seen] = {}
    for event in ends:
        if event.kind:
            key = (tag[event.attempt], event.kind)
            times = 1 + (seen.pop(key).times if key in seen else 0)
            seen[key] = Seen(event.at, *key, event.detail, times)
    assert recent.errors(99) == [*reversed(seen.values())]
    first = [event.first_token for event in ends if event.first_token is not None]
    assert recent.first_tokens(now) == first[-FEWEST_FIRST:]  # there are never so many here
    last = max(number for number, event in enumerate(events) if isinstance(event, SessionOpened))
    assert recent.session_tokens == sum(e.tokens for e in events[last:] if isinstance(e, Settled))
    figures = status(recent.state, running=True)
    assert {label.value: count for label, count in recent.worth.labels.items() if count} == figures["labels"]
    assert usd(recent.worth.strict) == figures["yield"]["exported_usd"]
    share = recent.worth.cut / recent.worth.answers if recent.worth.answers else 0.0
    assert share == figures["length"]["share"]
    for name, each in figures["datasets"].items():
        assert recent.works(name) == each["prompts"]


@given(timed(), st.data())
def test_it_equals_a_recount(events: list[AnyEvent], data: st.DataObject) -> None:
    """Whether it heard all events or was begun on the State of some, and the State is the fold of all."""
    begun = data.draw(st.integers(0, len(events)))
    recent = Recent.of(fold(events[:begun]))
    for event in events[begun:]:
        recent.take(event)
    assert recent.state == fold(events)
    recounted(recent, events, events[-1].at + data.draw(st.sampled_from([0.0, 3.0, 100.0])))


@given(st.lists(st.tuples(st.floats(0, 30), st.sampled_from("ab"), st.integers(1, 5))), st.floats(0, 200))
def test_a_minute_forgets(steps: list[tuple[float, str, int]], more: float) -> None:
    """The last sixty whole seconds count, and no more bins are kept than there are seconds in it."""
    minute, at, heard = Minute[str](), 0.0, list[tuple[int, str, int]]()
    for step, key, count in steps:
        at += step
        minute.add(at, key, count)
        heard.append((int(at), key, count))
    expected = Counter[str]()
    for second, key, count in heard:
        expected[key] += count if second > int(at + more) - SPAN else 0
    assert minute.counts(at + more) == +expected
    assert len(minute._bins) <= SPAN


def test_memory_is_bounded() -> None:
    """Errors of ever new endpoints push the oldest ones out."""
    recent = Recent(State())
    recent.take(opened())
    for number in range(1, 3 * MOST_KINDS):
        recent.take(intent(number, Work("A", "0"), number, tag=f"p{number}"))
        recent.take(settled(number, Verdict.AGAIN, 0, kind=FailureKind.UPSTREAM, detail=f"error {number}"))
    assert len(recent.errors(999)) == MOST_KINDS
    assert recent.errors(1)[0].detail == f"error {3 * MOST_KINDS - 1}"


def test_of_many_answers_those_of_the_last_minute_say_how_long_a_first_token_takes() -> None:
    """Older ones count only while there are few; a run that was read and one that was heard agree."""
    events: list[AnyEvent] = [msgspec.structs.replace(opened(), at=1.0)]
    for number in range(1, 101):
        events.append(intent(number, Work("A", f"{number}")))
        end = settled(number, Verdict.DONE, tokens=5, first_token=float(number))
        events.append(msgspec.structs.replace(end, at=10.0 + number))
    for recent in (Recent.of(fold(events)), Recent(State())):
        for event in () if recent.state.sessions else events:
            recent.take(event)
        assert sorted(recent.first_tokens(110.0)) == [float(number) for number in range(41, 101)]
        assert sorted(recent.first_tokens(500.0)) == [float(number) for number in range(81, 101)]
