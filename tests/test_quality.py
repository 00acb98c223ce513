"""Providers whose answers disagree with their own counts, or whose streams prove nothing: reported, and set aside."""

from __future__ import annotations

from eyas.engine.quality import JUDGED, Quality, Standard
from eyas.report.habits import sentences
from eyas.tokens import Cut, Habits
from eyas.types import Label


def _judged(standard: Standard, wrong: int, answers: int) -> Quality:
    quality = Quality(standard)
    for number in range(answers):
        quality.count("P", Label.MISMATCH if number < wrong else Label.COUNTED)
    return quality


def test_two_percent_is_reported_and_said_once() -> None:
    """Above 2 % of at least 50 answers a provider is reported, without being set aside unless that is wished."""
    assert not _judged(Standard(), 1, JUDGED).concerns({})
    assert not _judged(Standard(), 10, JUDGED - 1).concerns({})
    quality = _judged(Standard(), 2, JUDGED)
    (concern,) = quality.concerns({})
    assert (concern.provider, concern.aside) == ("P", False)
    assert "2 of 50 answers (4.0%)" in concern.detail
    assert not quality.concerns({})


def test_drop_above_sets_aside() -> None:
    """`drop_above` is the share that sets a provider aside; below it there is only the report."""
    assert _judged(Standard(drop_above=0.02), 2, JUDGED).concerns({})[0].aside
    assert not _judged(Standard(drop_above=0.10), 2, JUDGED).concerns({})[0].aside


def test_a_better_label_takes_the_worse_one_back() -> None:
    """Early answers are labelled again when habits are known; only their last label counts."""
    quality = _judged(Standard(), 2, JUDGED)
    quality.count("P", Label.COUNTED, instead_of=Label.MISMATCH)
    assert not quality.concerns({})


def test_require_streamed_keeps_streams_that_prove_ids() -> None:
    """A provider that cuts its stream otherwise than at tokens is set aside once that is known."""
    wish = Standard(require_streamed=True)
    for cut, answers, aside in ((Cut.BURST, 30, True), (Cut.BURST, 29, False), (Cut.TOKEN, 100, False)):
        found = _judged(wish, 0, 1).concerns({"P": Habits(answers=answers, cut=cut)})
        assert [concern.aside for concern in found] == [True] * aside


def test_habits_in_words() -> None:
    """`eyas status` says in plain words what is known of a provider."""
    habits = {"P": {
        "answers": 40, "explained": 39, "counting": {"name": "BOS not counted", "prompt": -1, "answer": 0},
        "stop_counted": False, "artefact_space": True, "cut": "token", "proves": True, "stripped": ["content_start"],
        "open": [], "keeps_arguments": False, "prompt_form": "arguments spaced", "reasoning_count": "R", "hidden": 0,
        "trusted": True}}  # fmt: skip
    assert sentences(habits) == [
        (
            "P: 39 of 40 answers explained; BOS not counted; stop token not counted; adds a space to the reasoning; "
            "a token a piece, which prove ids; strips the content start; rewrites tool arguments; "
            "history with arguments spaced"
        )
    ]
