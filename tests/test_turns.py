"""Conversations turn by turn, in whole runs: what is asked when, with which history, and what a kill leaves."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis.stateful import run_state_machine_as_test

from eyas.events import AnyEvent, Intent, PromptAdded
from eyas.families import Loaded
from eyas.report.summary import status
from eyas.types import StopReason, Verdict
from tests.stage import Ending, Stage
from tests.talks import WELL, Asked, figures, histories, run, said
from tests.test_ledger_machine import Running, profile
from tests.test_simulation import KINDS, draw, live
from tests.virtual import play


def test_a_conversation_is_bought_to_its_end(kimi: Loaded) -> None:
    """Two sets of talks of one, two and three turns: twelve works done, each asked once, history and counts as they are."""
    asked = Asked()
    stage, reason = run(kimi, asked)
    assert (reason, stage.ended()) == (StopReason.COMPLETE, {Verdict.DONE: 12})
    assert sorted(asked.turns()) == [0] * 6 + [1] * 4 + [2] * 2
    assert histories(stage.log, kimi) == 6
    last = asked.bodies[asked.turns().index(2)]
    name = last["messages"][0]["content"][0]
    assert last["messages"] == [
        said(f"{name}: say 2"),
        said(WELL, "assistant"),
        said("And 2?"),
        said(WELL, "assistant"),
        said("And 3?"),
    ]
    for record in stage.answers:
        tokens = kimi.count_prompt(record.prompt.messages, record.prompt.tools, thinking=True)
        assert stage.state.prompt_tokens(record.work) == tokens
        assert len(record.prompt.messages) == 2 * record.work.turn + 1
    figures = status(stage.state, running=False)["datasets"]["A"]
    assert (figures["prompts"], figures["done"], figures["pending"], figures["skipped"]) == (6, 6, 0, 0)


def test_a_conversation_has_one_session_id(kimi: Loaded) -> None:
    """All turns of one sample share it, no two samples do, and a question that no turn follows has none."""
    asked = Asked()
    run(kimi, asked, more={"datasets.samples": 2})
    found: dict[str, list[tuple[str, int]]] = {}
    for body, turn in zip(asked.bodies, asked.turns(), strict=True):
        found.setdefault(body.get("session_id", ""), []).append((body["messages"][0]["content"], turn))
    assert sorted(found.pop("")) == [("A: say 0", 0)] * 2 + [("B: say 0", 0)] * 2
    assert len(found) == 8
    for talk in found.values():
        assert len({first for first, _ in talk}) == 1
        assert [turn for _, turn in talk] == list(range(len(talk)))


def test_what_was_begun_is_finished_first(kimi: Loaded) -> None:
    """Of fourteen talks, one request at a time, hardly more than one a set is ever open, in two sessions.

    More than one, for the slot of an answer is given away before the answer is durable and its next turn waits.
    """
    stage, asked = Stage(kimi, prompts=7, turns=2, in_flight=1), Asked()

    async def main() -> None:
        await stage.session(asked.handle, Ending("drain", 3.5))
        await stage.session(asked.handle)

    play(main)
    open_talks, most = set[str](), 0
    turns = {f"{name}: say {number}": number % 3 for number in range(7) for name in "AB"}
    for body, turn in zip(asked.bodies, asked.turns(), strict=True):
        first = body["messages"][0]["content"]
        open_talks.add(first)
        most = max(most, len(open_talks))
        if turn == turns[first]:
            open_talks.remove(first)
    assert most <= 4
    assert stage.seen["interrupted"] == 1
    assert len(asked.bodies) == 26


@pytest.mark.parametrize("how", ["kill", "fault"])
def test_a_run_ended_at_any_event_goes_on_with_exactly_the_next_turn(kimi: Loaded, how: str) -> None:
    """Killed, or its disk full, at each of its events: every turn is answered once, on the history that is durable."""
    for at in range(1, 70, 2):
        stage, asked = Stage(kimi, prompts=3, turns=2, in_flight=2, more={"target.recover": False}), Asked()

        async def main(stage: Stage = stage, asked: Asked = asked, at: int = at) -> StopReason | None:
            await stage.session(asked.handle, Ending(how, at))
            flying = {intent.work for intent in stage.log.events if isinstance(intent, Intent)}
            ended = {work for work, known in stage.state.works.items() if not known.owed}
            before = len(asked.bodies)
            reason = await stage.session(asked.handle)
            assert len(asked.bodies) - before == 12 - len(ended)
            assert len(flying - ended) <= 2
            return reason

        assert play(main) is StopReason.COMPLETE
        assert stage.ended() == {Verdict.DONE: 12}
        assert histories(stage.log, kimi) >= 6
        answered = [record.work for record in stage.answers]
        assert len(answered) == len(set(answered)) == 12


def test_a_quota_counts_all_turns(kimi: Loaded) -> None:
    """Tokens of later turns are kept tokens: a quota that is met leaves the turns that are left unasked."""
    stage, reason = run(kimi, Asked(), quota="output_tokens = 300", in_flight=1, prompts=9)
    told = status(stage.state, running=False)["datasets"]["A"]
    assert reason is StopReason.COMPLETE
    assert 300 <= told["output_tokens"] < 480
    assert told["pending"] == 0
    assert told["skipped"] == told["prompts"] - told["done"] > 10
    assert any(work.turn for work in stage.state.works)


def test_turns_that_come_later_are_asked_then(kimi: Loaded) -> None:
    """A run of first turns only, as before turns were bought, owes the later ones once the sources have them."""
    asked = Asked()
    stage, _ = run(kimi, asked, turns=0)
    assert figures(stage) == {"prompts": 3, "done": 3}
    stage.turns = 2
    assert play(lambda: stage.run(asked.handle)) is StopReason.COMPLETE
    assert asked.turns()[6:].count(0) == 0
    assert figures(stage) == {"prompts": 6, "done": 6}
    stage.turns = 0
    assert play(lambda: stage.run(asked.handle)) is StopReason.COMPLETE
    assert (len(asked.bodies), figures(stage)) == (12, {"prompts": 6, "done": 6})
    old = msgspec.json.decode(b'{"e":"prompt","at":1.0,"dataset":"A","prompt_id":"0","tokens":3}', type=AnyEvent)
    assert old == PromptAdded(at=1.0, dataset="A", prompt_id="0", tokens=3, turns=0)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dear"])
def test_a_drawn_run_of_conversations_keeps_every_promise(kimi: Loaded, kind: str) -> None:
    """The invariants of whole runs (test_simulation.py) under faults, caps, quotas and kills, with turns to come."""
    seed = KINDS.index(kind)
    case = draw(seed, most=60)
    live(replace(case, settings=case.settings | {"turns": 2}), kimi)


class Talking(Running):
    """The engine in any weather, with conversations."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(self.kimi, prompts=4, turns=3, in_flight=3, usd=0.02, more={"target.recover": False})

    def check(self) -> None:
        """And every body has the history that was durable before it."""
        super().check()
        histories(self.stage.log, self.kimi)


def test_any_interleaving_keeps_conversations_whole(kimi: Loaded) -> None:
    """Whatever comes of a turn, and wherever the run is killed: each work in one state, each history the durable one."""
    Talking.kimi = kimi
    run_state_machine_as_test(Talking, settings=profile(25, 25))
