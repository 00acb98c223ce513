"""The end of a session: likely-long works go first among those that are certain to be asked; which are asked stays the same."""

from __future__ import annotations

import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.engine.likely import FEWEST, ByPrompt
from eyas.engine.pool import Candidate, Pool
from eyas.engine.recover import Repeat
from eyas.engine.tail import AHEAD, surely
from eyas.types import Prompt, Work
from tests.tailkit import Tale


def candidate(number: int, turn: int = 0) -> Candidate:
    """A work of the set A."""
    return Candidate(Work("A", f"{number:016x}", turn), Prompt(f"{number:016x}", "A", ()), 10)


def prefix(tale: Tale) -> bool:
    """Whether each set was asked from the front of its order, without a gap."""
    return all(numbers == list(range(len(numbers))) for numbers in tale.numbers().values())


@settings(max_examples=6)
@given(
    seed=st.integers(0, 10**6), quota=st.sampled_from([None, 60_000, 200_000, 400_000]),
    in_flight=st.sampled_from([20, 60]), stop=st.integers(0, 700),
)  # fmt: skip
def test_which_works_are_asked_is_the_orders_business(seed, quota, in_flight, stop) -> None:
    """With a quota each set is asked from the front of its order; without one all of it; a broken session changes neither."""
    whole = Tale(seed, prompts=400, quota=quota, in_flight=in_flight)
    whole.session()
    assert prefix(whole)
    assert len(whole.asked) == len(set(whole.asked))
    broken = Tale(seed, prompts=400, quota=quota, in_flight=in_flight)
    broken.session(stop_after=stop)
    broken.session()
    assert prefix(broken)
    if quota is None:
        assert set(whole.asked) == set(broken.asked) == set(whole.sizes)


def test_likely_long_works_go_first_at_the_end() -> None:
    """Until four times as many wait as may fly the order stands; then long prompts go first, with a quota too."""
    for quota in (None, 500_000):
        tale = Tale(3, prompts=500, quota=quota, in_flight=40, sets=("A",))
        tale.session()
        order = [int(work.prompt_id, 16) for work in tale.asked]
        moved = next(place for place, number in enumerate(order) if number != place)
        assert quota or 0.9 * AHEAD * 40 < len(order) - moved <= AHEAD * 40
        rest = order[moved:]
        sizes = {int(work.prompt_id, 16): size for work, size in tale.sizes.items()}
        early, plain = (sum(sizes[n] for n in part) / len(part) for part in (rest[: len(rest) // 4], order[:moved]))
        assert early > (1.1 if quota else 1.5) * plain


def test_less_time_for_the_same_answers() -> None:
    """Over eight runs the end comes earlier; all of them ask the same works."""
    took = {True: 0.0, False: 0.0}
    for seed in range(8):
        for forward in (True, False):
            tale = Tale(seed, prompts=320, in_flight=40, sets=("A",))
            if not forward:
                tale.sizes = dict.fromkeys(tale.sizes, 100)  # sizes that say nothing: the order stands
            tale.session()
            assert forward is (tale.asked != list(tale.sizes))
            took[forward] += tale.ends[0]
    assert took[True] < 0.98 * took[False]


def test_nothing_is_brought_forward_where_the_money_may_end_first() -> None:
    """A cap that may not cover all that is wanted leaves the order as it is, to the last work asked."""
    tale = Tale(5, prompts=500, in_flight=40, usd=1.1, sets=("A",))
    tale.session()
    order = [int(work.prompt_id, 16) for work in tale.asked]
    assert 300 < len(order) < 500
    assert order == list(range(len(order)))


def test_no_later_turn_is_overtaken() -> None:
    """The next turn of what was begun goes before what was brought forward, and keeps its set's turn among the sets."""
    pool = Pool.of(candidate(number) for number in range(4))
    pool.bring_forward("A", 3, lambda each: int(each.work.prompt_id, 16) == 2)
    pool.go_on(candidate(0, turn=1))
    order: list[tuple[int, int]] = []
    while pool.size:
        head = next(iter(pool.heads(0.0)))
        pool.take(head)
        order.append((int(head.work.prompt_id, 16), head.work.turn))
    assert order == [(0, 1), (2, 0), (0, 0), (1, 0), (3, 0)]


def test_sets_take_turns_as_if_nothing_was_brought_forward() -> None:
    """Which set is asked next does not depend on what of it was brought forward."""
    works = [Work(name, f"{number:016x}") for number in range(6) for name in "AB"]
    pool = Pool.of(Candidate(work, Prompt(work.prompt_id, work.dataset, ()), 10) for work in works)
    pool.bring_forward("A", 5, lambda each: int(each.work.prompt_id, 16) > 2)
    taken: list[Work] = []
    while pool.size:
        taken.append(next(iter(pool.heads(0.0))).work)
        pool.take(next(iter(pool.heads(0.0))))
    assert [work.dataset for work in taken] == list("AB" * 6)
    assert [int(work.prompt_id, 16) for work in taken if work.dataset == "A"] == [3, 4, 0, 1, 2, 5]


def test_a_rejected_work_is_the_next_and_one_that_waits_is_passed_over() -> None:
    """A rejected work goes back to the head of the queue; a lost one not before its time, or until its cost is known."""
    pool = Pool.of(candidate(number) for number in range(3))
    pool.repeats[candidate(7).work] = Repeat("m", "t", after=10.0)
    pool.put_back(candidate(7))
    pool.put_back(candidate(8))
    numbers = [[int(head.work.prompt_id, 16) for head in pool.heads(now)] for now in (0.0, 9.0)]
    assert numbers == [[8, 0], [8, 0]]
    assert pool.size == len(list(pool.sooner_or_later())) + 2 == 5
    pool.now_due(candidate(7).work, "m", 9.5)
    assert [int(head.work.prompt_id, 16) for head in pool.heads(9.5)] == [8, 7, 0]
    pool.repeats[candidate(6).work] = Repeat("m", "t", after=10.0)
    pool.put_back(candidate(6))
    assert [int(head.work.prompt_id, 16) for head in pool.heads(9.9)] == [8, 7, 0]
    assert [int(head.work.prompt_id, 16) for head in pool.heads(10.0)] == [8, 7, 6, 0]


@given(st.floats(0, 1e7), st.floats(1, 5000), st.floats(0, 5000))
def test_what_surely_fits(room: float, mean: float, deviation: float) -> None:
    """The most answers whose tokens, and three standard deviations of them, stay within 80 % of the room."""
    count = surely(room, mean, deviation)
    needed, more = (answers * mean + 3 * math.sqrt(answers) * deviation for answers in (count, count + 1))
    rounding = 0.8 * room * 1e-9 + 1e-6
    assert needed <= 0.8 * room + rounding
    assert more > 0.8 * room - rounding


def test_what_is_likely_long() -> None:
    """Nothing before 100 answers; then the sizes of about a third of the prompts; where sizes say nothing, none."""
    rng, sized, flat = random.Random(0), ByPrompt(), ByPrompt()
    prompts = [round(20 * 2 ** rng.uniform(0, 6)) for _ in range(2000)]
    for number, prompt in enumerate(prompts):
        assert number >= FEWEST or sized.threshold() == math.inf
        sized.add(prompt, 10 * prompt)
        flat.add(prompt, rng.choice((100, 200)))
    long = [prompt for prompt in prompts if sized.expected(prompt) >= sized.threshold()]
    assert 0.2 < len(long) / len(prompts) < 0.5
    assert min(long) > sum(prompts) / len(prompts)
    assert not [prompt for prompt in prompts if flat.expected(prompt) >= flat.threshold()]
    assert flat.threshold() == math.inf
    assert sized.expected(100, (9000,)) > 4 * sized.expected(100)
