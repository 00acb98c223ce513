"""What a running session can be asked to change: parsed whole, judged whole, refused with what to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.engine.wish import Standing, Wish, judge, parse
from eyas.errors import UsageError
from eyas.plan import GATEWAY, Route
from eyas.types import Endpoint, Prices

PRICES = Prices(1, 1)
TAGS = ("chutes/int4", "inceptron/int4", "parasail/int4")


def route(tag: str) -> Route:
    """A way to ask one endpoint."""
    slug = tag.split("/", maxsplit=1)[0]
    return Route(tag, (Endpoint("m", slug.title(), slug, tag, PRICES),), PRICES, {})


def standing(**changes: object) -> Standing:
    """A session of three endpoints."""
    now = Standing(2000, None, tuple(map(route, TAGS)), frozenset(), {})
    return now._replace(**changes)


def refused(wish: Wish, now: Standing) -> str:
    """What a refusal says."""
    with pytest.raises(UsageError) as error:
        judge(wish, now)
    return str(error.value)


def test_words_become_a_wish() -> None:
    """In any order, several at once; anything else is named with what is possible."""
    assert parse(["drop=a", "in_flight=500", "take=b", "drop=c/d"]) == Wish(500, ("a", "c/d"), ("b",))
    for words, says in (
        (["in_flights=3"], "'in_flights=3' is nothing that a running session can change: give in_flight=N"),
        (["drop="], "'drop=' is nothing"),
        (["in_flight=-1"], "give a whole number from 1 to 5000"),
        (["in_flight=1", "in_flight=2"], "given 2 times"),
    ):
        with pytest.raises(UsageError, match=says):
            parse(words)


def test_what_changes_is_said_with_what_was_before() -> None:
    """Before and after, for each thing; a slug means the endpoint, and what is so already is said to be."""
    change = judge(Wish(500, ("chutes",), ("Parasail",)), standing(dropped=frozenset({"parasail/int4"})))
    assert change.in_flight == 500
    assert change.dropped == {"chutes/int4"}
    assert change.said == ("in_flight: 2000 → 500", "parasail/int4: dropped → asked", "chutes/int4: asked → dropped")
    again = judge(Wish(2000, (TAGS[0],), (TAGS[1],)), standing(dropped=frozenset({TAGS[0]})))
    assert again.said == ("in_flight: 2000 already", f"{TAGS[1]}: asked already", f"{TAGS[0]}: dropped already")


def test_what_cannot_be_is_refused_with_what_to_do() -> None:
    """Too many, more than files may be open, no such endpoint, the last one, one that the run set aside, and gateway."""
    assert "from 1 to 5000" in refused(Wish(5001), standing())
    assert "give at most 744" in refused(Wish(900), standing(in_flight=500, files=1000))
    assert judge(Wish(400), standing(in_flight=500, files=300)).in_flight == 400  # fewer is always possible
    assert (
        refused(Wish(drop=("nobody",)), standing())
        == f"the run asks no endpoint named nobody: it asks {', '.join(TAGS)}"
    )
    assert "no endpoint is left" in refused(Wish(drop=TAGS), standing())
    aside = standing(aside=dict.fromkeys(TAGS[1:], "it is gone"))
    assert "no endpoint is left" in refused(Wish(drop=TAGS[:1]), aside)
    assert refused(Wish(take=TAGS[1:2]), aside).endswith("the run set it aside itself: it is gone")
    assert 'routing = "gateway"' in refused(Wish(drop=("chutes",)), standing(routes=(route(GATEWAY),)))


names = st.lists(st.sampled_from(TAGS), max_size=3).map(tuple)


@given(st.none() | st.integers(-5, 9000), names, names, st.sets(st.sampled_from(TAGS)).map(frozenset))
def test_all_of_a_wish_or_nothing(in_flight: int | None, drop: tuple[str, ...], take: tuple[str, ...], dropped) -> None:
    """What is judged possible holds afterwards, and nothing else changed."""
    now = standing(dropped=dropped)
    try:
        change = judge(Wish(in_flight, drop, take), now)
    except UsageError:
        return
    assert change.in_flight == (now.in_flight if in_flight is None else in_flight)
    assert change.dropped == (dropped - set(take)) | set(drop)
    assert change.dropped != set(TAGS) or dropped == set(TAGS)
    assert 1 <= change.in_flight <= 5000
