"""What the tests of runs at servers of one's own share: a RUN.toml of such a run, and states of runs that have answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eyas.config import RunConfig, parse
from eyas.events import Intent, Labelled, PromptAdded, SessionOpened, Settled
from eyas.ledger import nano_dollars
from eyas.state import State, fold
from eyas.types import Endpoint, Finish, Label, Prices, Verdict, Work

HERE, THERE = "127.0.0.1:8000", "127.0.0.1:8001"
FREE, PAID = Prices(0, 0), Prices(nano_dollars(0.5), nano_dollars(2))
TOML = """
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
backend = "vllm"
base_url = ["http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1"]
max_tokens = 16384
{fallback}
[budget]
{usd}
{quota}
[limits]
in_flight = 256
[[datasets]]
name = "B3"
source = "B3.jsonl"
[[datasets]]
name = "B4"
source = "B4.jsonl"
"""
FALLBACK = """
[fallback]
backend = "openrouter"
{after}
"""


def config(*, quota: int | None = None, fallback: bool = False, after: float | None = None) -> RunConfig:
    """Two sets asked of two servers on this machine; `fallback`: the API takes what they leave, `after` so many minutes."""
    text = TOML.format(
        quota=f"output_tokens = {quota}" if quota else "",
        usd="usd = 100.0" if fallback else "",
        fallback=FALLBACK.format(after=f"after_minutes = {after}" if after else "") if fallback else "",
    )
    return parse(text, Path("RUN.toml"))


def replica(tag: str = HERE, context: int | None = 32_768) -> Endpoint:
    """A server of one's own, as the list of those that may answer has it."""
    return Endpoint("moonshotai/kimi-k2.5", tag, tag, tag, FREE, context=context)


def answered(who: Mapping[str, int], *, cap: int | None = None, tokens: int = 500, label: Label | None = None) -> State:
    """A run in which each of `who` gave so many answers, all at once in ten seconds; tags with a "/" are an API's and cost."""
    total = sum(who.values())
    events = [
        SessionOpened(at=0, model="moonshotai/kimi-k2.5", cap=cap, quotas={"B3": None}),
        *(PromptAdded(at=0, dataset="B3", prompt_id=f"{n:016x}", tokens=20) for n in range(total)),
    ]
    state, number = fold(events), 0
    for tag, count in who.items():
        prices = PAID if "/" in tag else FREE
        for _ in range(count):
            number += 1
            work = Work("B3", f"{number - 1:016x}")
            cost = tokens * prices.completion // 1_000_000
            state.apply(Intent(at=100, attempt=number, work=work, number=1, tag=tag, prices=prices, reserved=cost))
            state.apply(
                Settled(at=110, attempt=number, verdict=Verdict.DONE, cost=cost, tokens=tokens, provider=tag,
                        finish=Finish.STOP, counts=(20, tokens, None), seconds=10.0)
            )  # fmt: skip
            if label is not None:
                state.apply(Labelled(at=110, attempt=number, label=label))
    return state
