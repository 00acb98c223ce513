"""A larger quota extends what a smaller one asked: both ask a prefix of the same order."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eyas.families import Loaded
from eyas.sim import load
from eyas.types import StopReason
from tests.stage import SMALL, Stage, simulated
from tests.virtual import play


def asked(stage: Stage) -> dict[str, list[int]]:
    """The prompts that were asked, by set, ascending; their ids are their numbers in the order of the run."""
    numbers: dict[str, set[int]] = {"A": set(), "B": set()}
    for attempt in stage.state.attempts.values():
        numbers[attempt.work.dataset].add(int(attempt.work.prompt_id, 16))
    return {name: sorted(found) for name, found in numbers.items()}


@settings(deadline=None, max_examples=8)
@given(
    quota=st.integers(200, 1500), more=st.integers(800, 2000), seed=st.integers(0, 9),
    name=st.sampled_from(["clean", "rough"]), in_flight=st.sampled_from([4, 16]),
)  # fmt: skip
def test_a_larger_quota_asks_for_a_superset(kimi: Loaded, quota, more, seed, name, in_flight) -> None:
    """Whatever comes back and when, each set is asked from the front of its order, and further for a larger quota."""
    runs: list[dict[str, list[int]]] = []
    for wanted in (quota, 2 * quota + more):
        stage = Stage(kimi, prompts=60, quota=f"output_tokens = {wanted}", in_flight=in_flight)
        assert play(simulated(stage, replace(load(name), **SMALL), seed)) is StopReason.COMPLETE
        runs.append(asked(stage))
    for small, large in zip(runs[0].values(), runs[1].values(), strict=True):
        assert small == list(range(len(small)))  # from the front, without a gap
        assert large == list(range(len(large)))
        assert set(small) <= set(large)
