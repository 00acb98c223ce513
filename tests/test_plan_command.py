"""`eyas plan`: from the API's lists and the journal to a plan, and from the plan to a run that keeps to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import SecretStr

from eyas.cli.declared.begin import QUOTAS
from eyas.cli.plan import check_out, numbers
from eyas.config import RunConfig
from eyas.engine.inputs import Inputs
from eyas.engine.planning import Sources, ask, draft
from eyas.errors import KeyOrCreditsError, UsageError
from eyas.families import Loaded
from eyas.plan.figures import Wish
from eyas.sim import World, load
from eyas.state import State
from eyas.types import Prompt
from tests import kit, plankit
from tests.stage import SMALL, Stage, simulated
from tests.virtual import FakeTransport, now, play

FAST = {"length_median": 60, "length_sigma": 0.3, "speed": 40}
MILLION = 1_000_000


def found(config: RunConfig, inputs: Inputs, key: str, kimi: Loaded, **changes: Any) -> Sources:
    """What a simulated market tells that key."""
    scenario = replace(load("clean"), keys=("sk-1", "boss"), management_keys=("boss",), **changes)

    async def main() -> Sources:
        market = World(scenario, 0, kimi.vocab, now)
        return await ask(config, inputs, SecretStr(key), FakeTransport(market.handle))

    return play(main)


def asked(number: int = 2) -> Inputs:
    """So many prompts in each of the six sets."""
    prompts = tuple(
        Prompt(f"{n:016x}", name, ({"role": "user", "content": f"{name} {n}"},))
        for n in range(number)
        for name in plankit.SETS
    )
    return Inputs(prompts, {(each.dataset, each.id): 100 for each in prompts}, (), 0)


def test_a_plan_from_the_api(kimi: Loaded) -> None:
    """Prices and endpoints are the market's, the cheap but unfaithful ones left out; the key's limit is the second wall."""
    sources = found(plankit.config(7 * MILLION), asked(), "sk-1", kimi, key_limit_usd=60.0)
    made = draft(sources, State(), Wish())
    cheapest = made.figures["endpoints"][0]
    assert (cheapest["tag"], cheapest["usd_per_m_completion"], cheapest["metered"]) == ("chutes/int4", 2.0, True)
    assert not {each["tag"] for each in made.figures["endpoints"]} & {"nebius/nvfp4", "baseten/fp4", "deepinfra/fp4"}
    assert (made.figures["money"]["key"], made.figures["money"]["left"]) == (60.0, 60.0)
    assert {each.tag for each in made.basis.endpoints} == {each["tag"] for each in made.figures["endpoints"]}
    assert all(each["short"] for each in made.figures["datasets"].values())
    assert draft(sources, State(), Wish()).figures == made.figures


def test_a_management_key_knows_the_balance(kimi: Loaded) -> None:
    """Of the cap, the key's limit and the balance the lowest counts; without a key only the cap is known."""
    config = plankit.config()
    boss = draft(found(config, asked(), "boss", kimi, balance_usd=25.0), State(), Wish()).figures["money"]
    assert (boss["key_limit"], boss["balance"], boss["left"]) == ("none", 25.0, 25.0)
    nobody = draft(found(config, asked(), "", kimi), State(), Wish()).figures["money"]
    assert (nobody["key_limit"], nobody["left"]) == ("unknown", 100.0)
    with pytest.raises(KeyOrCreditsError):
        found(config, asked(), "sk-wrong", kimi)


def test_a_max_tokens_that_no_endpoint_takes_is_refused(kimi: Loaded) -> None:
    """As a run would, before anything is spent."""
    with pytest.raises(UsageError, match="no allowed endpoint takes max_tokens = 900000"):
        draft(found(plankit.config(max_tokens=900_000), asked(), "sk-1", kimi), State(), Wish())


def test_a_run_that_has_begun_is_planned_by_its_answers(kimi: Loaded) -> None:
    """Lengths and speed are the run's own; what is answered is not planned again; what is spent lowers what is left."""
    stage = Stage(kimi, prompts=30, usd=50.0, more={"budget.output_tokens": 1500})
    play(simulated(stage, replace(load("clean"), **SMALL), 3))
    config = stage.config()
    inputs = play(lambda: stage._parts(stage.sim.handle)).inputs
    before, after = (
        draft(found(config, inputs, "sk-1", kimi), state, Wish()).figures for state in (State(), stage.state)
    )
    assert {each["length"]["source"] for each in before["datasets"].values()} == {"prior"}
    assert {each["length"]["source"] for each in after["datasets"].values()} == {"answers"}
    assert after["speed"]["answers"] > 0 == before["speed"]["answers"]
    assert after["advice"].startswith("Nothing is left to ask"), "the quotas are met"
    assert after["money"]["spent"] == pytest.approx(stage.state.money.settled / 1e9)
    wider = stage.config().model_copy(update={"budget": config.budget.model_copy(update={"output_tokens": None})})
    rest = draft(found(wider, inputs, "sk-1", kimi), stage.state, Wish()).figures["datasets"]["A"]
    assert rest["works"] == 30 - sum(stage.state.datasets["A"].ended.values())
    mean = stage.state.datasets["A"].quota.kept / sum(stage.state.datasets["A"].ended.values())
    assert rest["length"]["mean"] == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize(
    ("text", "quotas"), [("5M,7M", (5 * MILLION, 7 * MILLION)), ("300k, 1.5M,9", (300_000, 1_500_000, 9))]
)
def test_quotas_are_written_as_people_say_them(text: str, quotas: tuple[int, ...]) -> None:
    """With k, M or G, separated by commas."""
    assert numbers(text) == quotas
    assert numbers(QUOTAS) == (5 * MILLION, 7 * MILLION, 8 * MILLION, 10 * MILLION)
    for wrong in ("", "5MB", "-1", "0", "5M,,7M"):
        with pytest.raises(UsageError, match="5M,7M"):
            numbers(wrong)


@pytest.mark.parametrize(("name", "says"), [("plan", "ends in .json"), ("no/plan.json", "there is no folder no")])
def test_a_plan_that_could_not_be_kept_is_refused_first(name: str, says: str) -> None:
    """Before anything is read or bought: `run` knows a plan by its name, and its folder has to be there."""
    with pytest.raises(UsageError, match=says):
        check_out(Path(name))
    check_out(None)


@pytest.mark.e2e
def test_plan_pilot_and_run_by_command(tmp_path: Path, kimi_folder: Path) -> None:
    """The same plan twice is the same bytes; a pilot's answers belong to the run; a stale plan leaves with 8, unspent."""
    with kit.simulator(kimi_folder, **FAST) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 20)
        plan = ("plan", "RUN.toml", "--out", "plan.json")
        first = kit.eyas(tmp_path, *plan, "--json")
        assert first.returncode == 0, first.stderr
        assert json.loads(first.stdout)["datasets"]["B3"]["prompts"] == 20
        kept = (tmp_path / "plan.json").read_bytes()
        assert kit.eyas(tmp_path, *plan, "--json").stdout == first.stdout
        assert ((tmp_path / "plan.json").read_bytes(), sim.books()) == (kept, {})
        piloted = kit.eyas(tmp_path, *plan, "--json", "--pilot", "6")
        figures = json.loads(piloted.stdout)
        assert (len(sim.books()), figures["datasets"]["B3"]["works"]) == (6, 14), piloted.stderr
        assert (figures["datasets"]["B3"]["length"]["source"], figures["datasets"]["B3"]["length"]["answers"]) == (
            "answers",
            6,
        )
        (tmp_path / "plan.json").write_bytes(kept)
        with (tmp_path / "prompts.jsonl").open("a") as file:
            file.write('{"prompt": "One more?"}\n')
        stale = kit.eyas(tmp_path, "run", "plan.json", "--yes")
        assert (stale.returncode, len(sim.books())) == (8, 6), stale.stderr
        assert "B3: had 20 prompts" in stale.stderr
        assert "Plan again: eyas plan RUN.toml --out plan.json" in stale.stderr
        again = kit.eyas(tmp_path, *plan)
        assert "An answer to every prompt: about $" in again.stdout
        done = kit.eyas(tmp_path, "run", "plan.json", "--yes")
        assert (done.returncode, len(sim.books())) == (0, 21), done.stderr
