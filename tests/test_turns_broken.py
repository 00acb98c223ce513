"""Conversations that break off: what is skipped, what goes on when asked again, what is refused before it costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eyas.engine import again
from eyas.engine.where import parse
from eyas.errors import UsageError
from eyas.events import Retried
from eyas.families import Loaded
from eyas.report.resume import sentences
from eyas.report.summary import exit_code
from eyas.sim import Reply
from eyas.types import StopReason, Verdict, Work
from tests import turnkit
from tests import virtual as v
from tests.stage import Stage
from tests.talks import WELL, Asked, figures, histories, run, said
from tests.test_table import text, whole
from tests.virtual import Watch, failed, good, play

CUT = (v.delta() | {"error": {"code": 502}}, v.delta(v.USAGE | {"completion_tokens": 90}))
BROKEN: dict[str, tuple[Callable[[], Reply], dict[str, int], int]] = {
    "refused": (failed(400, message="bad prompt"), {"refused": 2}, 4),
    "failed": (failed(502, message="oops"), {"failed": 2}, 4),
    "partial": (lambda: text(90, *CUT), {"partial": 2}, 0),
    "cut at max_tokens": (whole("length"), {"done": 2}, 0),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_turn_without_a_whole_answer_ends_its_conversation(kimi: Loaded, how: str) -> None:
    """The answers before it stay, the turns after it are not asked and count as skipped; nothing is pending."""
    answer, counted, code = BROKEN[how]
    asked = Asked(good, answer)
    stage, reason = run(kimi, asked)
    assert reason is StopReason.COMPLETE
    assert max(asked.turns()) == 1
    done = {"prompts": 6, "done": 3, "skipped": 1}
    assert figures(stage) == figures(stage, "B") == done | counted | {"done": 3 + counted.get("done", 0)}
    assert exit_code(stage.state) == code
    before = len(asked.bodies)
    play(lambda: stage.run(asked.handle))
    assert len(asked.bodies) == before, "a skipped turn is asked in the next session"
    assert any("2 later turns are skipped" in each for each in sentences(stage.state, Path("run"), 0))


def wish(stage: Stage, *works: Work) -> None:
    """What `eyas retry` does."""
    for work in works:
        event = Retried(at=1.0, work=work)
        stage.state.apply(event)
        stage.log.note(event, b"null")
    stage.log.acknowledged = len(stage.log.events)


TALKS = tuple(Work("A", f"{number:016x}") for number in range(3))


def test_an_answer_after_all_lets_the_conversation_go_on(kimi: Loaded) -> None:
    """A refused turn that the user has asked again and that is answered then is followed in the same session."""
    asked = Asked(failed(400, message="bad prompt"))
    stage, _ = run(kimi, asked)
    assert figures(stage) == {"prompts": 6, "refused": 3, "skipped": 3}
    wish(stage, *TALKS)
    assert figures(stage) == {"prompts": 6, "pending": 6}
    asked.answers = (good,)
    assert play(lambda: stage.run(asked.handle)) is StopReason.COMPLETE
    assert figures(stage) == {"prompts": 6, "done": 6}
    assert figures(stage, "B") == {"prompts": 6, "refused": 3, "skipped": 3}
    assert histories(stage.log, kimi) == 3


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The double entry of the stage knows of no answer that takes the place of another."""
    monkeypatch.setattr(Watch, "see", lambda *_: None)
    monkeypatch.setattr(Watch, "_book", lambda *_: None)
    monkeypatch.setattr(Stage, "_owes", lambda *_: None)


@pytest.mark.usefixtures("unwatched")
def test_a_new_answer_leaves_later_ones_as_they_are(kimi: Loaded) -> None:
    """They were asked after the old one, and their records say so; asked again themselves, they follow the new one."""
    asked = Asked()
    stage, _ = run(kimi, asked)
    first, later = TALKS[1], msgspec.structs.replace(TALKS[1], turn=1)
    asked.answers = (lambda: good(70, " new"), lambda: good(80, " newer"))
    wish(stage, first)
    play(lambda: stage.run(asked.handle))
    assert asked.turns()[12:] == [0]
    assert stage.state.works[later].owed is False
    opened = turnkit.opened(stage.log, stage.state)
    assert opened.record(first).completion.content == " new" * 70
    assert opened.record(later).prompt.messages[1] == said(WELL, "assistant")
    wish(stage, later)
    play(lambda: stage.run(asked.handle))
    assert asked.turns()[12:] == [0, 1]
    opened = turnkit.opened(stage.log, stage.state)
    assert opened.record(later).prompt.messages[1] == said(" new" * 70, "assistant")
    assert opened.record(later).completion.content == " newer" * 80


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize("again", [good, failed(400, message="bad prompt")])
def test_a_turn_asked_again_goes_before_the_one_after_it(kimi: Loaded, again: Callable[[], Reply]) -> None:
    """While the turn before it is owed again, a later turn waits; it follows whichever answer stands in the end."""
    asked = Asked(good, failed(502, message="oops"))
    stage, _ = run(kimi, asked)
    first, later = TALKS[1], msgspec.structs.replace(TALKS[1], turn=1)
    wish(stage, first, later)
    asked.answers = (again, good)
    before = len(asked.bodies)
    assert play(lambda: stage.run(asked.handle)) is StopReason.COMPLETE
    assert asked.turns()[before:] == [0, 1]
    assert stage.state.works[later].verdict is Verdict.DONE
    assert asked.bodies[-1]["messages"][1] == said(WELL, "assistant")


class Picky:
    """A family that cannot say a conversation of three turns."""

    def __init__(self, family: Loaded) -> None:
        self._family = family

    def __getattr__(self, name: str) -> Any:
        return getattr(self._family, name)

    def count_prompt(self, messages: Any, tools: Any, thinking: bool) -> int:
        """How many ids; not of a long conversation."""
        if len(messages) > 3:
            raise UsageError("the template cannot say this: shorten it")
        return self._family.count_prompt(messages, tools, thinking)


def test_a_turn_that_cannot_be_rendered_is_refused_before_it_costs(kimi: Loaded) -> None:
    """No request, no attempt: it ends as refused, with the reason; owed again by the user, it is looked at again."""
    asked = Asked()
    stage, reason = run(Picky(kimi), asked, turns=3, prompts=4)
    assert (reason, max(asked.turns())) == (StopReason.COMPLETE, 1)
    assert figures(stage) == {"prompts": 10, "done": 7, "refused": 2, "skipped": 1}
    barred = [work for work, known in stage.state.works.items() if known.verdict is Verdict.REFUSED]
    assert {stage.state.works[work].detail for work in barred} == {"the template cannot say this: shorten it"}
    found = again.find(stage.state, parse("verdict=refused and kind=refused"))
    assert found.works == tuple(sorted(barred))
    assert exit_code(stage.state) == 4
    assert len(turnkit.opened(stage.log, stage.state).question(barred[0]).messages) == 5
    stage.kimi = kimi
    wish(stage, *barred)
    assert play(lambda: stage.run(asked.handle)) is StopReason.COMPLETE
    assert figures(stage) == {"prompts": 10, "done": 10}
    assert histories(stage.log, kimi) == 12


def test_a_conversation_that_no_endpoint_takes_any_more_ends(kimi: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grown above every context, the turn is refused with a sentence and blocks no other; nothing is sent for it."""
    monkeypatch.setattr(v, "ENDPOINTS", [{**each, "context_length": 620} for each in v.ENDPOINTS])
    asked = Asked()
    stage, reason = run(kimi, asked)
    assert (reason, max(asked.turns())) == (StopReason.COMPLETE, 1)
    assert figures(stage) == {"prompts": 6, "done": 5, "refused": 1}
    last = msgspec.structs.replace(TALKS[2], turn=2)
    assert "no allowed endpoint takes that with max_tokens = 400" in stage.state.works[last].detail
