"""The language of `--where`: what is understood, and how a slip is told."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.engine.facts import values
from eyas.engine.where import FIELDS, NUMBERS, Term, asked, parse
from eyas.errors import UsageError
from eyas.types import Finish, Label, Verdict, Work
from tests.test_retry_command import DONE, FAILED, LONG, PART, REFUSED, UNKNOWN, chosen, run


@pytest.mark.parametrize(
    ("where", "works"),
    [
        ("tokens>100", [LONG]),
        ("tokens>=100 and tokens<400", [DONE]),
        ("tokens!=100", [LONG, PART]),
        ("usd>0.00000005", [LONG]),
        ("usd=$0.00000004", [DONE]),
        ("tries>=2", []),
        ("tries=1, verdict=failed", [FAILED]),
        ("label = 'mismatch'", [LONG]),
    ],
)
def test_numbers_are_compared(where: str, works: list[Work]) -> None:
    """By all six signs; a work without the number meets none of them."""
    assert chosen(where) == works


@pytest.mark.parametrize(
    ("where", "column", "words"),
    [
        ("labl=near", 1, "did you mean label?"),
        ("verdict=done and lable=near", 18, "did you mean label?"),
        ("verdict=done, label=neer", 21, "did you mean near?"),
        ("provider=Chuts", 10, "did you mean chutes?"),
        ("dataset=A,  tag=q", 17, "this run has p/int4"),
        ("label>3", 1, "is no number"),
        ("tokens>many", 8, "write for example tokens>1"),
        ("tokens>-1", 8, "'-1' is none"),
        ("usd>nan", 5, "'nan' is none"),
        ("finish=length or finish=stop", 8, "there is no `or`"),
        ("finish=stop and ", 17, "is no condition"),
        ("lable", 1, "did you mean label?"),
    ],
)
def test_a_slip_names_its_column_and_what_is_near(where: str, column: int, words: str) -> None:
    """The column, from 1, is that of the field or of the value that is wrong."""
    with pytest.raises(UsageError) as caught:
        chosen(where)
    assert f"--where, column {column}: " in str(caught.value)
    assert words in str(caught.value)


def test_a_field_alone_asks_for_its_values() -> None:
    """Any field, in any case; nothing else."""
    assert [asked(each) for each in (" Label ", "tokens", "label=near", "labels", "")] == [
        "label",
        "tokens",
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("verdict", "verdict has: done 2, failed 1, partial 1, refused 1, unknown 1"),
        ("label", "label has: counted 1, mismatch 1"),
        ("provider", "provider has: chutes 2, atlas cloud 1"),
        ("id", f"id has: {DONE.key}, {LONG.key}, {PART.key} and 3 more"),
        (
            "tokens",
            "tokens (completion tokens of the answer) of 3 works: 70 to 400; half of them at most 100, 95 % of them at most 400",
        ),
    ],
)
def test_values_are_told_with_their_counts(field: str, said: str) -> None:
    """Most frequent first; of a number how it is spread, of ids a few."""
    told = values(run(), field)
    assert told.partition(": ")[0] == said.partition(": ")[0]
    assert sorted(told.partition(": ")[2].split(", ")) == sorted(said.partition(": ")[2].split(", "))


_TEXTS = {
    name: sorted(each.value for each in known if each is not Verdict.AGAIN) for name, known in FIELDS.items() if known
}
_TEXTS |= {"provider": ["chutes", "x y"], "tag": ["a/int4"], "dataset": ["B3"], "id": ["B3/0/t0/s0"]}
_FACTS = st.fixed_dictionaries({}, optional={
    **{name: st.sampled_from(found) for name, found in _TEXTS.items()},
    **{name: st.integers(0, 9) for name in NUMBERS},
})  # fmt: skip


@st.composite
def terms(draw: st.DrawFn) -> str:
    """An expression of one to three conditions."""
    found: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            name = draw(st.sampled_from(sorted(NUMBERS)))
            found.append(f"{name}{draw(st.sampled_from(['=', '!=', '>', '>=', '<', '<=']))}{draw(st.integers(0, 9))}")
        else:
            name = draw(st.sampled_from(sorted(_TEXTS)))
            found.append(f"{name}{draw(st.sampled_from(['=', '!=']))}{draw(st.sampled_from(_TEXTS[name]))}")
    return draw(st.sampled_from([" and ", ", ", ","])).join(found)


@given(where=terms(), facts=_FACTS)
def test_every_expression_that_can_be_written_is_decided(where: str, facts: Mapping[str, str | float]) -> None:
    """It holds if each condition does; a condition and its opposite never both hold, and both fail without the fact."""
    parsed = parse(where)
    assert where[parsed[0].column - 1 :].startswith(where.partition(parsed[0].compare)[2][:1])
    for term in parsed:
        opposite = Term(
            term.field, {"=": "!=", "!=": "=", ">": "<=", "<=": ">", "<": ">=", ">=": "<"}[term.compare], term.value
        )
        assert (term.holds(facts) + opposite.holds(facts)) == (term.field in facts)


@given(st.text(max_size=40))
def test_no_text_brings_it_down(text: str) -> None:
    """Whatever is written is understood or refused in a sentence."""
    said = ""
    try:
        parse(text)
    except UsageError as error:
        said = str(error)
    assert not said or said.startswith("--where, column ")


def test_enums_are_as_the_core_has_them() -> None:
    """Fields with fixed values take them from the core types."""
    assert (FIELDS["finish"], FIELDS["label"]) == (Finish, Label)
    assert chosen("verdict!=done") == [PART, FAILED, REFUSED, UNKNOWN]
