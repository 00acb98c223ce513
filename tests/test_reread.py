"""The endpoint list and the account read again during a run, on the virtual clock: who is asked, what is said, and when."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from eyas.backends.account import Credits, KeyInfo
from eyas.config import Providers, RunConfig
from eyas.engine.account import Account
from eyas.engine.pace import Pace
from eyas.engine.reread import PATIENCE, much, objections, shortfall
from eyas.families import Loaded
from eyas.ledger import Money
from eyas.plan import Route, routes
from eyas.providers.choose import allowed, verdicts
from eyas.sim import Reply, load
from eyas.sim import World as Sim
from eyas.types import StopReason, Verdict
from tests.endpoints import MODEL, listed, row
from tests.stage import SMALL, Stage, simulated
from tests.virtual import failed, good, now, play, reply

USD = 1_000_000_000
CHUTES, INCEPTRON = (row("Chutes", "chutes/int4"), row("Inceptron", "inceptron/int4", completion="0.0000022"))
EVERY = 2.0
"""Seconds between re-reads here; answers take one, lists a tenth."""
LAG = 0.3
BOTH = [CHUTES, INCEPTRON]


class Market:
    """Answers every question well; what it lists, and what it says of the key, is a function of the seconds since it began."""

    def __init__(self, rows: Callable[[float], Any], key: Callable[[float], Any] = lambda t: {}) -> None:
        self.rows, self.key, self.began = rows, key, now()
        self.lists: list[tuple[float, Any]] = []

    def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """The reply to a request."""
        elapsed = now() - self.began
        if method == "POST":
            return good()
        if "/endpoints" in target:
            self.lists.append((now(), self.rows(elapsed)))
            return _data(self.lists[-1][1], "endpoints")
        return _data(self.key(elapsed)) if target.endswith("/key") else failed(404, message="no")()


def _data(found: Any, name: str = "") -> Reply:
    if isinstance(found, int):
        return failed(found, message="oops")()
    return reply(json.dumps({"data": {name: found} if name else found}).encode())


def run(
    kimi: Loaded, rows: Callable[[float], Any], key: Any = None, **settings: Any
) -> tuple[Stage, StopReason, Market]:
    """A run of twelve prompts, one after the other (about 13 seconds), in such a market."""
    more = {"limits.reread_seconds": EVERY, "target.recover": False} | settings.pop("more", {})
    stage = Stage(kimi, prompts=6, in_flight=1, more=more, **settings)

    async def main() -> tuple[StopReason, Market]:
        market = Market(rows, key or (lambda t: {}))
        return await stage.run(market.handle), market

    reason, market = play(main)
    stage.check()
    return stage, reason, market


def asked(stage: Stage, market: Market) -> list[tuple[Any, list[str]]]:
    """Of each request that left well after a list was read: that list, and the tags that the request named."""
    found = []
    for when, body in stage.transport.sent:
        at, rows = max((each for each in market.lists if each[0] <= when), key=lambda each: each[0])
        if when > at + LAG:
            found.append((rows, json.loads(body)["provider"]["only"]))
    return found


def out_between(start: float, end: float, changed: list[dict[str, Any]]) -> Callable[[float], list[dict[str, Any]]]:
    """Both endpoints, but for a while those."""
    return lambda t: changed if start < t < end else BOTH


TROUBLE = {
    "no longer in the endpoint list": [INCEPTRON],
    "degraded or down (status -5": [CHUTES | {"status": -5}, INCEPTRON],
    "fp4 re-quantizes": [CHUTES | {"quantization": "fp4"}, INCEPTRON],
    "it now costs $0.5 $2.1 per M tokens (in, out), the run admitted it at $0.5 $2": [
        row("Chutes", "chutes/int4", completion="0.0000021"), INCEPTRON,
    ],
    "no usable price": [row("Chutes", "chutes/int4", completion="0"), INCEPTRON],
}  # fmt: skip


@pytest.mark.parametrize("why", TROUBLE)
def test_an_endpoint_that_went_wrong_is_set_aside_and_comes_back(kimi: Loaded, why: str) -> None:
    """From the next re-read on the run asks elsewhere, says so once, and goes back when the list shows it fine again."""
    stage, reason, market = run(kimi, out_between(3, 7, TROUBLE[why]))
    assert reason is StopReason.COMPLETE
    named = asked(stage, market)
    assert all(only == ([["chutes/int4"], ["inceptron/int4"]][rows is not BOTH]) for rows, only in named)
    assert [rows is BOTH for rows, _ in named[:1] + named[-1:]] == [True, True]
    assert sum(rows is not BOTH for rows, _ in named) > 1
    assert len(stage.state.alarms) == 1
    assert why in stage.state.alarms[0]
    assert stage.state.alarms[0].startswith("chutes/int4 is asked no more until")


def test_a_flapping_endpoint_is_reported_once(kimi: Loaded) -> None:
    """Down, up, down again: the run follows, and the journal does not fill with it."""
    stage, reason, market = run(kimi, lambda t: [CHUTES | {"status": -2 if int(t / 3) % 2 else 0}, INCEPTRON])
    assert reason is StopReason.COMPLETE
    first = [only[0] for _, only in asked(stage, market)]
    assert sum(one != other for one, other in pairwise(first)) > 2
    assert len(stage.state.alarms) == 1


def test_better_news_change_nothing(kimi: Loaded) -> None:
    """A cheaper price, a new endpoint, a wider format: the requests stay the same, nothing is said."""
    cheap = [
        row("Chutes", "chutes/int4", "fp8", completion="0.000001"),
        INCEPTRON,
        row("New", "new/int4", completion="0.0000001"),
    ]
    stage, reason, market = run(kimi, out_between(1, 99, cheap))
    assert reason is StopReason.COMPLETE
    assert len(market.lists) >= 5
    blocks = {json.dumps(json.loads(body)["provider"]) for _, body in stage.transport.sent}
    assert len(blocks) == 1
    assert stage.state.alarms == []


@pytest.mark.parametrize("answer", [500, 401, 404, [], "text", 429])
def test_a_list_that_cannot_be_read_is_said_once(kimi: Loaded, answer: Any) -> None:
    """An error, a refused key, an empty list: the run goes on with what it knows and tries again."""
    stage, reason, market = run(kimi, lambda t: answer if 1 < t < 9 else BOTH)
    assert reason is StopReason.COMPLETE
    assert len(market.lists) >= 5
    assert [alarm.partition(" could not be read again")[0] for alarm in stage.state.alarms] == ["the endpoint list"]
    assert "tries in 2 s" in stage.state.alarms[0]


def test_a_key_that_does_not_suffice_is_said_once_and_again_when_much_changed(kimi: Loaded) -> None:
    """The run may still spend $100 and the key $40: one sentence; at $39 none, at $10 another; a failed read one more."""
    limits = [(3.0, 40.0), (7.0, 39.0), (9.0, 10.0)]

    def key(t: float) -> Any:
        return next(({"limit_remaining": left} for until, left in limits if t < until), 500)

    stage, reason, _ = run(kimi, lambda t: BOTH, key)
    assert reason is StopReason.COMPLETE
    assert [alarm[:60] for alarm in stage.state.alarms] == [
        "the key's limit leaves $40.00, the run may still spend $100.",
        "the key's limit leaves $10.00, the run may still spend $100.",
        "what the key may spend could not be read again, the run goes",
    ]


def test_a_run_waits_for_its_only_endpoints(kimi: Loaded) -> None:
    """With every endpoint down it waits for some re-reads; it goes on when one is back, and else ends with works owed."""
    down = [CHUTES | {"status": -5}, INCEPTRON | {"status": -5}]
    stage, reason, market = run(kimi, out_between(3, 9, down))
    assert reason is StopReason.COMPLETE
    assert all(rows is BOTH for rows, _ in asked(stage, market))
    assert len(market.lists) > PATIENCE
    stage, reason, market = run(kimi, out_between(3, 99, down))
    assert reason is StopReason.OWED
    assert len(market.lists) <= PATIENCE + 4
    assert stage.ended()[Verdict.DONE] < 12


def test_where_openrouter_picks_only_the_bad_one_is_left_out(kimi: Loaded) -> None:
    """With routing = "gateway" the object names the others meanwhile, and the price bound stays what it was."""
    wrong = [CHUTES | {"quantization": "fp4"}, INCEPTRON]
    stage, reason, market = run(kimi, out_between(3, 7, wrong), more={"providers.routing": "gateway"})
    assert reason is StopReason.COMPLETE
    named = asked(stage, market)
    assert all(only == (["chutes/int4"] if rows is BOTH else []) + ["inceptron/int4"] for rows, only in named)
    assert [rows is BOTH for rows, _ in named[:1] + named[-1:]] == [True, True]
    assert len(stage.state.alarms) == 1


def test_who_was_set_aside_for_good_does_not_come_back() -> None:
    """A misserving provider stays aside, whatever the list shows; one that had no endpoint for us comes back."""
    pace = Pace(10)
    for _ in range(3):
        pace.misserved("x")
    pace.set_aside("x", "down", for_good=False)
    pace.take_back("x")
    assert pace.window("x").aside
    pace.set_aside("y", "no endpoint", for_good=False)
    pace.take_back("y")
    assert not pace.window("y").aside


def only_route(*rows: dict[str, Any]) -> Route:
    """The first route to these."""
    config = RunConfig.model_validate({"run": {"dir": "."}, "target": {"model": MODEL}, "budget": {"usd": 1},
                                       "datasets": [{"name": "A", "source": "a"}]})  # fmt: skip
    found = verdicts(listed(*rows), Providers())
    return routes(config, allowed(found), [each.endpoint for each in found if not each.use])[0]


def test_a_bare_tag_is_watched_for_new_siblings() -> None:
    """The request names all of a provider's endpoints; a new one that must not answer takes the route away, a sick one not."""
    route = only_route(row("X", "x"), row("X", "x/fp4", "fp4"))
    assert objections(route, verdicts(listed(row("X", "x"), row("X", "x/fp4", "fp4")), Providers())) == {}
    new = verdicts(listed(row("X", "x"), row("X", "x/nvfp4", "nvfp4")), Providers())
    assert "now reach x/nvfp4" in objections(route, new)["x"].reason
    sick = verdicts(listed(row("X", "x"), row("X", "x/us", status=-2)), Providers())
    assert objections(route, sick) == {}
    twin = verdicts(listed(row("X", "x"), row("X", "x", "fp4")), Providers())
    assert set(objections(route, twin)) == {"x"}


def test_what_is_short_is_what_may_still_be_spent() -> None:
    """What flies counts, what is settled or unknown does not; a lower wall counts, an unknown one never does."""
    money = Money(cap=100 * USD, settled=30 * USD, reserved=20 * USD, unknown=5 * USD)
    assert shortfall(Account(KeyInfo(remaining=60 * USD), None), money) == 5 * USD
    assert shortfall(Account(KeyInfo(remaining=60 * USD), Credits(50 * USD, 40 * USD)), money) == 55 * USD
    assert shortfall(Account(KeyInfo(remaining=65 * USD), None), money) == 0
    assert shortfall(Account(KeyInfo(), None), money) == 0
    assert shortfall(Account(KeyInfo(remaining=1), None), Money()) == 0
    assert much(1, 0, 100 * USD)
    assert not much(0, 50 * USD, 100 * USD)
    assert not much(12, 10, 100)
    assert much(16, 10, 100)
    assert much(30, 50, 100)


def test_a_quiet_market_leaves_no_trace(kimi: Loaded) -> None:
    """In a simulated world whose list stands still, a run that reads it again every second has the events of one that never does."""
    prints = set()
    for seconds in (1.0, 1e6):
        stage = Stage(kimi, prompts=10, more={"limits.reread_seconds": seconds})
        assert play(simulated(stage, replace(load("rough"), **SMALL), 3)) is StopReason.COMPLETE
        prints.add(stage.fingerprint())
        assert isinstance(stage.sim, Sim)
    assert len(prints) == 1
