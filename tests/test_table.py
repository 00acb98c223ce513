"""The design's table "What happened, and what is done", row by row, in whole runs on the virtual clock.

Two works are asked, one at a time. What one outcome means is proved in test_retry.py; here, what the run makes of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from eyas.engine.lookup import WAITS
from eyas.events import Corrected, Retried
from eyas.families import Loaded
from eyas.ledger import nano_dollars
from eyas.report.progress import table
from eyas.report.resume import sentences
from eyas.report.summary import exit_code, status
from eyas.sim import Action, Reply
from eyas.types import FailureKind, StopReason, Verdict
from tests import virtual as v
from tests.stage import Ending, Stage
from tests.virtual import failed, now, play, reply

Make = Callable[[], Reply]
COST, BILL = nano_dollars("0.0001"), nano_dollars("0.0002")
ID = {"X-Generation-Id": "gen-1"}
HTML = b"<!DOCTYPE html>\n<html><body>Bad gateway</body></html>"
NOT_YET = failed(404, message="Generation not found")


def known(cost: float = 0.0002) -> Reply:
    """What a look-up finds."""
    data = {"total_cost": cost, "native_tokens_prompt": 12, "native_tokens_completion": 33, "provider_name": "Chutes"}
    return reply(json.dumps({"data": data}).encode())


class World:
    """Plays chat replies and look-ups in order, the last one of each for ever; keeps when, and where to."""

    def __init__(self, *chats: Make, lookups: Sequence[Make] = (NOT_YET,)) -> None:
        self.chats, self.lookups = chats, lookups
        self.tags: list[str] = []
        self.times: list[float] = []
        self.looked: list[float] = []

    def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """One request."""
        if "/endpoints" in target:
            return reply(json.dumps({"data": {"endpoints": v.ENDPOINTS}}).encode())
        if "/generation" in target:
            self.looked.append(now())
            return self.lookups[min(len(self.looked), len(self.lookups)) - 1]()
        if method == "GET":
            return reply(b'{"data": []}')
        self.tags.append(json.loads(body)["provider"]["only"][0])
        self.times.append(now())
        return self.chats[min(len(self.times), len(self.chats)) - 1]()


def whole(finish: str = "stop", tokens: int = 70, **more: Any) -> Make:
    """A whole answer."""
    usage = more.pop("usage", v.USAGE | {"completion_tokens": tokens})
    return lambda: text(tokens, v.delta(finish=finish), v.delta(usage, finish), **more)


def text(tokens: int, *last: dict[str, Any], **ending: Any) -> Reply:
    """An answer of so many tokens, and how it goes on from there."""
    parts = [v.delta(reasoning=" Hm"), *[v.delta(content=" well")] * tokens, *last]
    return reply(*v.sse(*parts, done=bool(last)), headers=ID, every=0.01, **ending)


def run(kimi: Loaded, world: World, **settings: Any) -> tuple[Stage, StopReason]:
    """One session over two works."""
    stage = Stage(kimi, **{"prompts": 1, "in_flight": 1, **settings})
    reason = play(lambda: stage.run(world.handle))
    stage.check()
    return stage, reason


def verdicts(stage: Stage) -> list[Verdict | None]:
    """How the two works stand."""
    return [stage.state.works[work].verdict for work in sorted(stage.state.works)]


IN_FLIGHT = {"message": "too much", "metadata": {"limit_source": "openrouter_in_flight_budget"}}
PACED = {
    "no connection": (v.unreachable, FailureKind.CONNECT),
    "429": (failed(429, message="busy"), FailureKind.RATE_LIMIT),
    "503": (failed(503, message="busy"), FailureKind.RATE_LIMIT),
    "529": (failed(529, message="busy"), FailureKind.RATE_LIMIT),
    "429 as a page": (lambda: reply(HTML, status=429), FailureKind.RATE_LIMIT),
    "402 of the in-flight budget": (failed(402, **IN_FLIGHT), FailureKind.IN_FLIGHT_BUDGET),
}


@pytest.mark.parametrize("name", PACED)
def test_row_1_no_room_is_asked_again_paced_and_uncounted(kimi: Loaded, name: str) -> None:
    """Connect errors, 429, 503, 529, in-flight-budget 402: free, again after a pause, never a try, however often."""
    bad, kind = PACED[name]
    world = World(*[bad] * 6, whole())
    stage, reason = run(kimi, world)
    assert (reason, verdicts(stage)) == (StopReason.COMPLETE, [Verdict.DONE] * 2)
    assert (len(world.times), stage.state.money.settled, stage.state.money.wasted) == (8, 2 * COST, 0)
    assert sum(each.failures.get(kind, 0) for each in stage.state.providers.values()) == 6
    assert all(each.tries == each.lost == 0 for each in stage.state.works.values())
    assert world.times[6] - world.times[0] > 1


def test_row_1_retry_after_is_obeyed(kimi: Loaded) -> None:
    """Nothing is asked before the moment that the API named, in whichever header or body it did."""
    waits = [{"Retry-After": "7"}, {"Retry-After-Ms": "7000"}]
    for bad in [failed(402, headers, **IN_FLIGHT) for headers in waits]:
        world = World(bad, whole())
        run(kimi, world)
        assert world.times[1] - world.times[0] >= 7


def test_row_1_an_endpoint_that_does_not_exist_is_set_aside(kimi: Loaded) -> None:
    """404 for want of an endpoint concerns the endpoint, not the work: free, uncounted, and the other one answers."""
    world = World(failed(404, message="No endpoints found for this model"), whole())
    stage, reason = run(kimi, world)
    assert (reason, verdicts(stage)) == (StopReason.COMPLETE, [Verdict.DONE] * 2)
    assert world.tags == ["chutes/int4", "inceptron/int4", "inceptron/int4"]
    assert all(each.tries == 0 for each in stage.state.works.values())


def envelope(status: int) -> Make:
    """An error envelope inside 200."""
    return lambda: reply(json.dumps({"error": {"code": status, "message": "oops"}}).encode(), headers=ID)


EMPTY = v.USAGE | {"completion_tokens": 0, "cost": 0}
ENVELOPES = {
    **{str(code): failed(code, message="oops") for code in (408, 500, 502, 504)},
    "inside 200": envelope(502),
    "a chunk inside 200": lambda: reply(*v.sse({"error": {"code": 502, "message": "oops"}}), headers=ID),
    "finish error": lambda: reply(*v.sse(v.delta(finish="error"), v.delta(EMPTY, "error")), headers=ID),
    "an empty answer": lambda: reply(*v.sse(v.delta(finish="stop"), v.delta(EMPTY, "stop")), headers=ID),
    "no choices": lambda: reply(json.dumps({"id": "gen-1", "choices": []}).encode(), headers=ID),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_row_2_an_error_before_a_token_is_tried_thrice_elsewhere(kimi: Loaded, name: str) -> None:
    """Free; the second try goes to another endpoint; after the third the work failed, and the run leaves with 4."""
    world = World(ENVELOPES[name])
    stage, reason = run(kimi, world)
    assert (reason, verdicts(stage)) == (StopReason.COMPLETE, [Verdict.FAILED] * 2)
    assert (len(world.times), stage.state.money.settled, stage.state.money.unknown) == (6, 0, 0)
    assert world.tags[:2] == ["chutes/int4", "inceptron/int4"]
    stage.state.closed = reason
    assert exit_code(stage.state) == 4
    mended = World(ENVELOPES[name], ENVELOPES[name], whole())
    assert verdicts(run(kimi, mended)[0]) == [Verdict.DONE] * 2


LOST = {
    "a page": lambda: reply(HTML, status=502),
    "a page at last": lambda: reply(HTML, status=524),
    "a reset before the headers": lambda: Reply(0, iter([(0.0, Action.RESET)])),
    "silence": lambda: reply(b": OPENROUTER PROCESSING\n\n", headers=ID, end=Action.HANG),
    "a reset": lambda: reply(b": OPENROUTER PROCESSING\n\n", headers=ID, end=Action.RESET),
    "an end": lambda: reply(b": OPENROUTER PROCESSING\n\n", headers=ID),
}


@pytest.mark.parametrize("name", LOST)
def test_row_3_lost_before_a_token_is_looked_up(kimi: Loaded, name: str) -> None:
    """With a generation id its cost is booked as waste, without one its reservation is held; the work is asked again."""
    world = World(LOST[name], whole(), lookups=(NOT_YET, NOT_YET, known))
    stage, _ = run(kimi, world)
    assert verdicts(stage) == [Verdict.DONE] * 2
    money, first = stage.state.money, stage.state.attempt(1)
    if first.generation_id:
        assert (money.settled, money.wasted, money.unknown) == (2 * COST + BILL, BILL, 0)
        assert [round(b - a) for a, b in zip(world.looked, world.looked[1:], strict=False)] == [1, 2]
        assert first.counts == (12, 33, None)
    else:
        assert (money.settled, money.unknown, world.looked) == (2 * COST, first.reserved, [])
        assert exit_code(stage.state) == 5


def test_row_3_what_the_api_never_knows_stays_unknown(kimi: Loaded) -> None:
    """404 with a growing pause between, then the look-up is given up: held until reconciled; the next session asks anew."""
    world = World(LOST["an end"], whole())
    stage, reason = run(kimi, world)
    pauses = [b - a for a, b in zip(world.looked, world.looked[1:], strict=False)]
    assert len(world.looked) == len(WAITS)
    assert pauses == sorted(pauses)
    assert pauses[-1] >= 60
    assert reason is StopReason.COMPLETE
    assert stage.state.money.unknown == stage.state.attempt(1).reserved
    later = World(whole(), lookups=(known,))
    play(lambda: stage.run(later.handle))
    assert (later.times, len(later.looked), stage.state.money.unknown) == ([], 1, 0)


def test_row_3_lost_thrice_is_unknown(kimi: Loaded) -> None:
    """A work whose outcomes stay unknown three times ends so; it is owed again once they are written off."""
    world = World(LOST["a page"])
    stage, _ = run(kimi, world)
    assert (verdicts(stage), len(world.times)) == ([Verdict.UNKNOWN] * 2, 6)
    assert stage.state.money.unknown == sum(a.reserved for a in stage.state.attempts.values())
    assert exit_code(stage.state) == 5
    held = stage.state.money.unknown
    play(lambda: stage.reconcile(world.handle))
    money = stage.state.money
    assert (money.unknown, money.settled, money.wasted) == (0, held, held)
    assert verdicts(stage) == [Verdict.AGAIN] * 2


def test_row_3_a_late_charge_corrects_a_write_off(kimi: Loaded) -> None:
    """A write-off is an upper bound: what is known later replaces it, in every sum."""
    world = World(LOST["a page"], whole())
    stage, _ = run(kimi, world)
    play(lambda: stage.reconcile(world.handle))
    assert stage.state.attempt(1).written_off
    stage.state.apply(Corrected(at=1.0, attempt=1, cost=7, counts=(12, 3, None), provider="Chutes"))
    money = stage.state.money
    assert (money.settled, money.wasted, stage.state.attempt(1).written_off) == (2 * COST + 7, 7, False)
    assert sum(dataset.cost for dataset in stage.state.datasets.values()) == money.settled


CUTS: dict[str, Callable[[int], Reply]] = {
    "cut": text,
    "reset": lambda tokens: text(tokens, end=Action.RESET),
    "silent": lambda tokens: text(tokens, end=Action.HANG),
    "in error": lambda tokens: text(tokens, v.delta() | {"error": {"code": 502, "message": "oops"}}),
}


@pytest.mark.parametrize("name", CUTS)
def test_row_4_cut_after_tokens_is_partial_or_waste(kimi: Loaded, name: str) -> None:
    """From 64 tokens on the text is kept, below it is waste and asked again; either way the cost is looked up."""
    world = World(lambda: CUTS[name](100), lambda: CUTS[name](20), whole(), lookups=(NOT_YET, known))
    stage, reason = run(kimi, world)
    assert (reason, verdicts(stage)) == (StopReason.COMPLETE, [Verdict.PARTIAL, Verdict.DONE])
    kept = next(record for record in stage.answers if record.completion.cut is not None)
    assert kept.completion.content == " well" * 100
    assert kept.completion.pieces.content == (5,) * 100
    assert stage.state.works[kept.work].tokens >= 100
    money = stage.state.money
    assert (money.settled, money.wasted, money.unknown) == (2 * BILL + COST, BILL, 0)
    assert len(world.times) == 3


def test_row_4_keep_from_is_the_users(kimi: Loaded) -> None:
    """[budget] keep_from decides how short a cut answer may be."""
    world = World(lambda: text(20), whole(), lookups=(known,))
    stage, _ = run(kimi, world, more={"budget.keep_from": 10})
    assert verdicts(stage) == [Verdict.PARTIAL, Verdict.DONE]


def test_row_5_an_answer_without_usage_is_kept(kimi: Loaded) -> None:
    """Done at once by our own count; cost and counts come from the look-up."""
    world = World(lambda: text(70, v.delta(finish="stop")), lookups=(NOT_YET, known))
    stage, reason = run(kimi, world)
    assert (reason, verdicts(stage), len(world.times)) == (StopReason.COMPLETE, [Verdict.DONE] * 2, 2)
    assert all(each.tokens >= 70 for each in stage.state.works.values())
    assert stage.state.money.settled == 2 * BILL
    assert all(attempt.counts == (12, 33, None) for attempt in stage.state.attempts.values())


@pytest.mark.parametrize(("policy", "asked"), [("keep", 2), ("drop", 2), ("redo", 6)])
def test_row_6_length_goes_by_policy(kimi: Loaded, policy: str, asked: int) -> None:
    """Keep and drop end the work, redo asks thrice and keeps the last; the share is shown, with a warning."""
    world = World(whole("length"))
    stage, _ = run(kimi, world, more={"budget.on_length": policy})
    assert (verdicts(stage), len(world.times)) == ([Verdict.DONE] * 2, asked)
    assert (stage.state.money.settled, stage.state.money.wasted) == (asked * COST, (asked - 2) * COST)
    figures = status(stage.state, running=False)
    assert figures["length"] == {"answers": 2, "share": 1.0, "usd": 0.0002}
    assert "2 answers (100.0%), $0.0002; raise max_tokens" in table(figures)


def test_row_6_redo_ends_with_a_whole_answer(kimi: Loaded) -> None:
    """The answer that is no longer cut is the one that stands."""
    stage, _ = run(kimi, World(whole("length"), whole()), more={"budget.on_length": "redo"})
    assert verdicts(stage) == [Verdict.DONE] * 2
    assert status(stage.state, running=False)["length"]["answers"] == 0
    assert stage.state.money.wasted == COST


REFUSED = {
    **{str(code): failed(code, message="bad request") for code in (400, 404, 412, 413, 422)},
    "moderation": failed(403, message="flagged", metadata={"reasons": ["violence"], "flagged_input": "…"}),
    "a prompt above the key's limit": failed(402, message="Prompt tokens limit exceeded: 12 > 9"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_row_7_a_refused_work_is_never_asked_again(kimi: Loaded, name: str) -> None:
    """400, 404 for the request, 412, 413, 422, moderation: free, once, exit 4; a resumed run leaves it so."""
    world = World(REFUSED[name], whole())
    stage, reason = run(kimi, world)
    assert (reason, verdicts(stage)) == (StopReason.COMPLETE, [Verdict.REFUSED, Verdict.DONE])
    assert (len(world.times), stage.state.money.settled) == (2, COST)
    stage.state.closed = reason
    assert exit_code(stage.state) == 4
    play(lambda: stage.run(world.handle))
    assert len(world.times) == 2


STOPS = {
    "401": failed(401, message="No auth credentials found"),
    "401 as a page": lambda: reply(HTML, status=401),
    "out of credits": failed(402, message="Insufficient credits"),
    "a forbidden key": failed(403, message="This key may not do that"),
    "the key's limit, 403": failed(403, message="Key limit exceeded"),
    "the key's limit, 402": failed(402, message="no", metadata={"limit_source": "openrouter_key_limit"}),
}


@pytest.mark.parametrize("name", STOPS)
def test_row_8_key_and_credits_stop_the_run(kimi: Loaded, name: str) -> None:
    """Nothing more is asked or booked, the work stays owed, exit 6; with the key mended the run goes on."""
    world = World(STOPS[name])
    stage, reason = run(kimi, world)
    assert (reason, len(world.times), stage.state.money.committed) == (StopReason.KEY, 1, 0)
    stage.state.closed = reason
    assert exit_code(stage.state) == 6
    assert play(lambda: stage.run(World(whole()).handle)) is StopReason.COMPLETE
    assert verdicts(stage) == [Verdict.DONE] * 2


def test_row_8_a_look_up_with_a_refused_key_stops_the_run(kimi: Loaded) -> None:
    """The key may be refused in a look-up first."""
    world = World(lambda: text(70, v.delta(finish="stop")), lookups=(failed(401, message="no"),))
    assert run(kimi, world, prompts=9)[1] is StopReason.KEY


def elsewhere() -> Reply:
    """A whole answer of an endpoint that is not allowed."""
    last = v.delta(v.USAGE | {"completion_tokens": 70}, "stop")
    parts = [v.delta(reasoning=" Hm"), *[v.delta(content=" well")] * 70, last]
    return reply(*v.sse(*[part | {"provider": "Fireworks"} for part in parts]), headers=ID, every=0.01)


def thoughtless() -> Reply:
    """A whole answer without thinking."""
    usage = {"prompt_tokens": 12, "cost": 0.0001, "completion_tokens": 70}
    return reply(*v.sse(*[v.delta(content=" well")] * 70, v.delta(usage, "stop")), headers=ID, every=0.01)


@pytest.mark.parametrize("bad", [elsewhere, thoughtless])
def test_row_9_misserved_answers_are_kept_apart_and_their_endpoint_set_aside(kimi: Loaded, bad: Make) -> None:
    """Paid, journalled and reported, but no answer: the other endpoint is asked; after three only that one is."""
    world = World(bad, whole(), bad, whole(), bad, whole())
    stage, reason = run(kimi, world, prompts=3)
    assert reason is StopReason.COMPLETE
    assert world.tags == ["chutes/int4", "inceptron/int4"] * 3 + ["inceptron/int4"] * 3
    assert stage.ended() == {Verdict.DONE: 6}
    money = stage.state.money
    assert (money.wasted, money.settled) == (3 * COST, 9 * COST)
    assert any("chutes/int4 is asked no more" in alarm for alarm in stage.state.alarms)
    assert stage.state.providers["chutes/int4"].failures == {FailureKind.MISSERVED: 3}
    assert not any(attempt.answered for attempt in stage.state.attempts.values() if attempt.tag == "chutes/int4")
    held = [
        raw for number, raw in stage.log.payloads.items() if type(stage.log.events[number - 1]).__name__ == "Settled"
    ]
    assert sum(b"well well" in raw for raw in held) == len(world.tags), "text that was paid is in the journal"
    assert status(stage.state, running=False)["labels"] == {}


def test_waste_is_bounded(kimi: Loaded) -> None:
    """While waste is within its limit a work is asked again; above it nothing is, but by `eyas retry`."""
    stage = Stage(kimi, prompts=3, in_flight=1, more={"budget.waste": 0.0})
    short = (v.delta() | {"error": {"code": 502}}, v.delta(v.USAGE | {"completion_tokens": 9}))
    first, second = World(lambda: text(9, *short)), World(whole())
    play(lambda: stage.run(first.handle))
    stage.check()
    assert stage.ended() == {Verdict.FAILED: 6}
    assert len(first.times) == 7, "one work was asked again, when nothing was wasted yet"
    play(lambda: stage.run(second.handle))
    assert second.times == []
    for work in sorted(stage.state.works)[:2]:
        event = Retried(at=1.0, work=work)
        stage.state.apply(event)
        stage.log.note(event, b"null")
    stage._owes = lambda parts, books: None  # the double entry knows nothing of wishes
    play(lambda: stage.run(second.handle))
    assert (len(second.times), stage.ended()) == (2, {Verdict.FAILED: 4, Verdict.DONE: 2})


def test_a_bill_above_its_reservation_that_a_look_up_finds_stops_the_run(kimi: Loaded) -> None:
    """Booked in full, an alarm says so, and nothing more starts, when it comes late too."""
    world = World(lambda: text(70, v.delta(finish="stop")), lookups=(lambda: known(0.5),))
    stage, reason = run(kimi, world, prompts=30)
    assert reason is StopReason.ALARM
    assert stage.state.money.settled >= nano_dollars("0.5")
    assert "above the" in stage.state.alarms[0]
    assert len(world.times) < 60


def test_a_cut_by_a_kill_is_told_on_resume(kimi: Loaded) -> None:
    """What was kept, what is unknown and held, what is looked up, what is owed: in sentences, before anything is asked."""
    stage = Stage(kimi, prompts=3, in_flight=6)
    slow = World(lambda: reply(*v.sse(*[v.delta(content=" word")] * 5000), headers=ID, every=0.01))
    told: list[str] = []

    async def listen(each: Stage) -> None:
        books = each.engine.books
        told.extend(sentences(books.state, books.setting.config.dir, len(books.pool.repeats)))

    async def main() -> StopReason:
        await stage.session(slow.handle, Ending("pull", 9.0))
        return await stage.run(World(whole(), lookups=(known,)).handle, listen)

    assert play(main) is StopReason.COMPLETE
    said = "\n".join(told)
    assert "the last process was killed with 6 requests in flight: 6 answers were kept as partial answers" in said
    assert "what 6 requests cost is not known; $" in said
    assert "6 are looked up now" in said
    assert told[-1] == "no answer is owed"
    assert stage.state.money.unknown == 0
