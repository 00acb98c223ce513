"""The plan document: the same inputs give the same bytes, and what moved since is named."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from eyas.config import RunConfig, parse
from eyas.engine.inputs import Inputs, Offer
from eyas.engine.planning import holds, opened
from eyas.errors import StalePlanError, UsageError
from eyas.events import Intent, SessionOpened, Settled
from eyas.plan.document import Basis, basis, differences, document, read
from eyas.plan.facts import SetFacts, gather
from eyas.providers.choose import verdicts
from eyas.state import State, fold
from eyas.types import Endpoint, Prices, Prompt, Verdict, Work
from tests import plankit
from tests.plankit import SETS, config, endpoint

SELLERS = (
    endpoint("chutes/int4", 0.44, 2.0, quantization="int4"),
    endpoint("inceptron/int4", 0.44, 2.2, quantization="int4"),
)


def prompts(names: tuple[str, ...] = SETS, number: int = 3) -> list[Prompt]:
    """A few prompts a set."""
    return [
        Prompt(f"{n:016x}", name, ({"role": "user", "content": f"{name} {n}"},))
        for name in names
        for n in range(number)
    ]


def inputs(made: list[Prompt]) -> Inputs:
    """They, each of ten tokens."""
    return Inputs(tuple(made), {(each.dataset, each.id): 10 for each in made}, (), 0)


def facts(of: RunConfig, made: list[Prompt]) -> dict[str, SetFacts]:
    """What a plan knows of them."""
    return gather(of, State(), made, inputs(made).counts, ())


def resting(
    of: RunConfig | None = None, made: list[Prompt] | None = None, sellers: tuple[Endpoint, ...] = SELLERS
) -> Basis:
    """What a plan rests on."""
    of = of or config()
    return basis(of, facts(of, made or prompts()), sellers)


def kept(folder: Path, of: RunConfig | None = None) -> Path:
    """A plan document in a folder, of a RUN.toml beside it."""
    figures = plankit.plan(plankit.ground(of or config()))
    path = folder / "plan.json"
    path.write_text(document(figures, resting(of), folder / "RUN.toml", folder), encoding="utf-8")
    return path


def test_the_same_plan_twice_is_the_same_bytes(tmp_path: Path) -> None:
    """No clock and no chance; neither the order of prompts nor that of endpoints matters."""
    again = basis(config(), facts(config(), prompts()[::-1]), SELLERS[::-1])
    assert again == resting()
    assert again.digest == resting().digest
    assert kept(tmp_path).read_bytes() == kept(tmp_path).read_bytes()
    assert differences(resting(), again) == []


def test_a_document_is_read_back_with_the_way_to_its_run_toml(tmp_path: Path) -> None:
    """The path is relative to the document, so that a folder may be moved; a RUN.toml is itself."""
    path = kept(tmp_path)
    assert read(path).basis == resting()
    assert opened(path) == (tmp_path / "RUN.toml", read(path))
    assert opened(tmp_path / "RUN.toml") == (tmp_path / "RUN.toml", None)
    figures = json.loads(path.read_text())
    assert figures["schema"] == 1
    assert figures["datasets"].keys() == set(SETS)


@pytest.mark.parametrize(
    ("text", "says"), [("{}", "is no plan"), ("[", "is no plan"), (None, "cannot be read"), ("usd", "changed by hand")]
)
def test_what_is_no_plan_is_said(tmp_path: Path, text: str | None, says: str) -> None:
    """A missing file, another JSON, or a document that was edited."""
    path = kept(tmp_path)
    if text == "usd":
        text = path.read_text().replace('"budget.usd": 100.0', '"budget.usd": 200.0')
        assert text != path.read_text()
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(UsageError, match=says):
        opened(path)


def test_a_whole_new_market_is_said_in_short() -> None:
    """Of many endpoints that came or went the first few are named, the others counted."""
    market = tuple(endpoint(f"new{number:02}/int4", 0.5, 2.5, quantization="int4") for number in range(30))
    found = differences(resting(), resting(sellers=market))
    assert len(found) == len(SELLERS) + 7
    assert found[-2:] == ["new05/int4: may answer now, at $2.500 a million tokens", "and 24 more endpoints like this"]


def changed(of: RunConfig, **keys: Any) -> RunConfig:
    """RUN.toml with other keys in [budget]."""
    return of.model_copy(update={"budget": of.budget.model_copy(update=keys)})


def test_every_difference_is_named() -> None:
    """A key, a price in either direction, an endpoint that went or came, prompts more, fewer or others."""
    dearer = dataclasses_of(SELLERS[0], 2.2)
    found = differences(
        resting(),
        resting(
            changed(config(), usd=50.0, output_tokens=7_000_000),
            [*prompts(("B3", "B4", "B5", "B6")), *prompts(("B3",), 5)[3:], *prompts(("B7",), 2), *others()],
            (dearer, endpoint("new/int4", 0.5, 2.5, quantization="int4")),
        ),
    )
    assert found == [
        "RUN.toml: budget.output_tokens was not set, is 7000000",
        "RUN.toml: budget.usd was 100.0, is 50.0",
        "B3: had 3 prompts (30 tokens), has 5 (50): 2 more",
        "B7: had 3 prompts (30 tokens), has 2 (20): 1 fewer",
        "B8: had 3 prompts (30 tokens), has 3 (30): some are others",
        "inceptron/int4: may no longer answer (`eyas providers` says why)",
        "new/int4: may answer now, at $2.500 a million tokens",
        "chutes/int4: output was $2.000 a million tokens, is $2.200 a million tokens",
    ]


def dataclasses_of(seller: Endpoint, completion: float) -> Endpoint:
    """The same endpoint at another price."""
    made = endpoint(seller.tag, 0.44, completion, quantization=seller.quantization)
    assert (made.tag, made.provider) == (seller.tag, seller.provider)
    return made


def others() -> list[Prompt]:
    """Three prompts of B8 that are not those of `prompts`."""
    return [Prompt(f"{n + 90:016x}", "B8", ({"role": "user", "content": "?"},)) for n in range(3)]


def test_a_fee_a_set_and_a_header_are_told_too() -> None:
    """A request's fee; a set that left RUN.toml; a header's value is compared, but kept nowhere."""
    of = config()
    fee = endpoint("chutes/int4", 0.44, 2.0, quantization="int4", request=2_000_000)
    assert differences(resting(), resting(sellers=(fee, SELLERS[1]))) == ["chutes/int4: a request was $0.0, is $0.002"]
    fewer = of.model_copy(update={"datasets": of.datasets[1:]})
    assert [each.split(" was")[0] for each in differences(resting(), resting(fewer, prompts(SETS[1:])))] == [
        "RUN.toml: datasets.B3.name",
        "RUN.toml: datasets.B3.source",
    ]
    secret = of.model_copy(update={"target": of.target.model_copy(update={"extra_headers": {"X-A": "hush"}})})
    assert "hush" not in str(resting(secret).config)
    assert len(differences(resting(), resting(secret))) == 1


def test_a_run_refuses_a_stale_plan_and_takes_one_that_holds(tmp_path: Path) -> None:
    """All differences stand in one message that says how to plan again; what the run has done meanwhile is none."""
    path = kept(tmp_path)
    offer = Offer(verdicts(SELLERS, config().providers), {})
    check = holds(path, read(path), config())
    check(inputs(prompts()), offer)
    dear = Offer(verdicts((dataclasses_of(SELLERS[0], 3.0), SELLERS[1]), config().providers), {})
    with pytest.raises(StalePlanError) as caught:
        check(inputs(prompts(number=4)), dear)
    assert "B3: had 3 prompts" in str(caught.value)
    assert "chutes/int4: output was $2.000 a million tokens, is $3.000" in str(caught.value)
    assert f"eyas plan {tmp_path / 'RUN.toml'} --out {path}" in str(caught.value)


def test_a_new_default_does_not_make_a_plan_stale() -> None:
    """Only keys that are not at their default are kept, so that a newer eyas does not refuse an older plan."""
    assert not any(name.startswith("limits.total") for name in resting().config)
    assert resting().config["datasets.B3.source"] == "B3.jsonl"
    assert "base" not in resting().config


def test_facts_count_what_is_owed() -> None:
    """Samples and turns are works; a prompt that no endpoint takes is counted apart; history grows with the turns."""
    text = plankit.TOML.format(max_tokens=1000, mode="strict", in_flight=10, quota="")
    of = parse(text + '[[datasets]]\nname = "A"\nsource = "a"\nsamples = 2\n', Path("RUN.toml"))
    talk = Prompt("1" * 16, "A", ({"role": "user", "content": "a"},), turns=("x" * 40, "y" * 20))
    long = Prompt("2" * 16, "A", ({"role": "user", "content": "b"},))
    small = plankit.market(of, endpoint("p", 1, 1, context=2000)).rungs
    found = gather(of, State(), [talk, long], {("A", talk.id): 100, ("A", long.id): 5000}, small)["A"]
    assert (found.prompts, found.prompt_tokens, found.works, found.unserved) == (2, 5100, 6, 2)
    (group,) = found.groups.values()
    assert (group.works, group.history) == (6, 2 * (0 + 1 + 2))
    assert group.prompt_tokens == 2 * (100 + 110 + 115)
    assert dataclasses.replace(found).digest == found.digest


def test_a_conversation_that_broke_off_is_owed_no_further() -> None:
    """Behind a whole answer the later turns are owed, behind a refused one they are not."""
    of = config()
    talks = [Prompt(f"{n:016x}", "B3", ({"role": "user", "content": "a"},), turns=("b", "c")) for n in range(3)]
    state = fold([SessionOpened(at=0.0, model="m", cap=None, quotas={"B3": None})])
    for number, verdict in ((0, Verdict.DONE), (1, Verdict.REFUSED)):
        work = Work("B3", talks[number].id)
        state.apply(Intent(at=1.0, attempt=number, work=work, number=1, tag="p", prices=Prices(1, 1), reserved=9))
        state.apply(Settled(at=2.0, attempt=number, verdict=verdict, cost=0))
    counts = {("B3", talk.id): 10 for talk in talks}
    assert gather(of, state, talks, counts, plankit.market(of).rungs)["B3"].works == 2 + 0 + 3
