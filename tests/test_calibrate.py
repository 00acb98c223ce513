"""What is learned of providers: switches of counting, where streams are cut, whether text is stripped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.families import Loaded, Shift
from eyas.tokens import PLAIN, Cut, End, Evidence, Habits, Size, evidence, habit_key, learn
from eyas.types import Finish, Record

Make = Callable[..., Record]

THINK = Shift("<think> counted in the completion", -1, 1)


def _item(way: Habits, number: int, **changes: object) -> Evidence:
    """An answer of `number` ids as a provider with these switches counts it; odd ones end their reasoning by a space."""
    stop = number % 3 > 0
    whole, trimmed = number, number - number % 2
    values: dict[str, object] = {
        "key": "P",
        "prompt_off": way.counting.prompt,
        "counted": way.expected(trimmed if way.artefact_space else whole, stop=stop),
        "stop": stop,
        "whole": Size(whole, 9),
        "pieced": None,
        "whole_trimmed": Size(trimmed, 9),
        "pieced_trimmed": None,
        "pieces": 0,
        "singles": 0,
        "edges": dict.fromkeys(End, False),
        "tools": False,
        "reasoning_said": 10,
        "shifts": (THINK,),
    }
    return Evidence(**{**values, **changes})  # pyright: ignore[reportArgumentType]


def _learned(items: Iterable[Evidence]) -> Habits:
    return learn(items)["P"]


def test_recorded_providers(kimi: Loaded, recorded: dict[str, Record]) -> None:
    """The four recorded providers count as the table of recorded conventions says, and every answer is explained."""
    found = learn(e for e in (evidence(r, kimi, thinking=True) for r in recorded.values()) if e)
    assert {n: (h.answers, h.explained) for n, h in found.items()} == {
        "Chutes": (8, 8),
        "Inceptron": (1, 1),
        "ModelRun": (1, 1),
        "Moonshot AI": (1, 1),
    }
    assert {n: (h.counting, h.stop_counted, h.artefact_space, h.reasoning_count) for n, h in found.items()} == {
        "Chutes": (PLAIN, True, False, "R+1"),
        "Inceptron": (PLAIN, False, False, "R+1"),
        "ModelRun": (PLAIN, False, True, "other"),
        "Moonshot AI": (THINK, True, False, "other"),
    }
    assert [found[n].cut for n in sorted(found)] == [Cut.TOKEN, Cut.UNKNOWN, Cut.BURST, Cut.UNKNOWN]
    assert [sorted(found[n].open) for n in sorted(found)] == [[], [], [], [End.CONTENT_END, End.REASONING_END]]
    assert {n: sorted(h.stripped) for n, h in found.items() if h.stripped} == {
        "Moonshot AI": [End.CONTENT_START, End.REASONING_START]
    }


WAYS = tuple(product((PLAIN, THINK), (True, False), (True, False)))


@pytest.mark.parametrize(("think", "stop", "artefact"), WAYS)
def test_every_way_of_counting_is_found(think: Shift, stop: bool, artefact: bool) -> None:
    """Each combination of the switches is learned from answers that show it, a few wrong ones notwithstanding."""
    way = Habits(counting=think, stop_counted=stop, artefact_space=artefact)
    items = [_item(way, n) for n in range(10, 40)] + [_item(way, 50, counted=1) for _ in range(5)]
    found = _learned(items)
    assert (found.counting, found.stop_counted, found.artefact_space) == (think, stop, artefact)
    assert (found.answers, found.explained) == (35, 30)


@given(st.permutations(range(10, 30)))
def test_the_order_of_answers_does_not_matter(order: list[int]) -> None:
    """The same answers in any order teach the same."""
    way = Habits(stop_counted=False)
    assert _learned(_item(way, n) for n in order) == _learned(_item(way, n) for n in sorted(order))


def test_one_answer_that_nothing_explains_keeps_the_defaults() -> None:
    """A provider of which nothing fits keeps the plain way of counting."""
    found = _learned([_item(Habits(), 40, counted=99)])
    assert found == Habits(answers=1)


def _white(key: str, number: int, *white: End) -> Evidence:
    return _item(Habits(), number, key=key, edges={end: end in white for end in End})


def test_one_provider_alone() -> None:
    """Thirty bare answers of the only provider mean that it strips; one with whitespace anywhere, that it does not."""
    bare = [_white("P", n) for n in range(10, 40)]
    assert _learned(bare[:29]).open == frozenset(End)
    assert _learned(bare).stripped == frozenset(End)
    kept = _learned([*bare, _white("P", 40, End.CONTENT_START)])
    assert (kept.stripped, kept.open) == (frozenset(), frozenset())


def test_providers_are_held_against_each_other() -> None:
    """An end where others show whitespace and this one never does is stripped; a few answers leave it open."""
    others = [_white("Q", n, End.REASONING_START, *([End.CONTENT_START] if n % 2 else [])) for n in range(10, 40)]
    own = [_white("P", n, End.CONTENT_END) for n in range(10, 13)]
    found = _learned([*others, *own])
    assert found.stripped == {End.REASONING_START}
    assert found.open == {End.CONTENT_START}
    more = _learned([*others, *own, *(_white("P", n) for n in range(13, 20))])
    assert more.stripped == {End.REASONING_START, End.CONTENT_START}
    assert not more.open


def test_arguments() -> None:
    """Arguments count as kept where tool answers are explained with the text as it came."""
    good, bad = _item(Habits(), 20, tools=True), _item(Habits(), 20, tools=True, counted=26)
    assert _learned([good]).keeps_arguments is True
    assert _learned([good, bad]).keeps_arguments is False
    assert _learned([_item(Habits(), 20)]).keeps_arguments is None


@pytest.mark.parametrize(
    ("pieces", "singles", "pieced", "cut"),
    [(40, 40, 42, Cut.TOKEN), (40, 12, 42, Cut.BURST), (40, 20, 55, Cut.ANYWHERE), (10, 10, 42, Cut.UNKNOWN)],
)
def test_cuts(pieces: int, singles: int, pieced: int, cut: Cut) -> None:
    """Pieces are tokens where their sum is the count; a stream cut within words adds up to more."""
    item = _item(
        Habits(), 42, pieces=pieces, singles=singles, pieced=Size(pieced, 9), pieced_trimmed=Size(pieced, 9), counted=42
    )
    assert _learned([item]).cut is cut


def test_streams_cut_within_words_are_seen(kimi: Loaded, answer: Make) -> None:
    """A gateway that cuts text anywhere is not taken for one that streams tokens."""
    text = " The user wants a step-by-step proof that there are infinitely many prime numbers, so let me think."
    broken = [text[i : i + 7] for i in range(0, len(text), 7)]
    letters = list(text)
    tokens = len(kimi.vocab.encode(text))
    for pieces in (broken, letters):
        records = [answer(pieces, [" ok"], counted=tokens - len(pieces)) for _ in range(4)]
        items = [evidence(record, kimi, thinking=True) for record in records]
        assert _learned(item for item in items if item).cut is Cut.ANYWHERE


def test_instant_mode_is_learned_apart() -> None:
    """A provider has its own habits for each mode."""
    assert habit_key("Chutes", thinking=True) == "Chutes"
    assert habit_key("Chutes", thinking=False) == "Chutes (instant)"


def test_answers_without_a_count_teach_nothing(kimi: Loaded, answer: Make) -> None:
    """No usage, damaged text or ids of an engine are no evidence."""
    assert evidence(answer([" The"], counted=None), kimi, thinking=True) is None
    assert evidence(answer([" The \ufffd"]), kimi, thinking=True) is None
    assert evidence(answer([" The"], token_ids=(1,)), kimi, thinking=True) is None
    assert evidence(answer([" The"], finish=Finish.LENGTH), kimi, thinking=True) is not None


@pytest.mark.parametrize(
    ("answers", "changes", "proves"),
    [
        (29, {}, False),
        (30, {}, True),
        (30, {"letters": 5, "singles": 96}, True),
        (30, {"letters": 2, "singles": 98, "counted": 104}, True),
        (30, {"letters": 1, "singles": 99, "counted": 104}, False),
        (30, {"letters": 0, "counted": 101}, False),
        (30, {"odd": 1, "letters": 5, "singles": 96}, False),
    ],
)
def test_pieces_prove_ids_where_ascii_is_a_token_a_piece_without_exception(
    answers: int, changes: dict[str, object], proves: bool
) -> None:
    """Letters beyond ASCII may be held back, three tokens more a piece at most; a single odd piece of ASCII is a word split."""
    plain = {"stop": False, "pieced": Size(100, 9), "pieces": 100, "singles": 100, "counted": 100}
    usual = [_item(Habits(), 100, **plain) for _ in range(answers - 1)]
    odd = _item(Habits(), 100, **{**plain, **changes})
    rest = [odd] * 10 if changes else [odd]
    assert _learned([*usual, *rest]).proves is proves
