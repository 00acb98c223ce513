"""Caps and quotas at full size, in simulated time: how much of the money is used, how fast, and what is billed.

    python bench/caps.py cap [--seeds 20] [--scenario rough] [--max-tokens 32768] [--usd 20]
    python bench/caps.py quota [--seeds 20] [--tokens 5_000_000]

`cap` runs a market with 2000 requests in flight against a cap, strict and metered, on a virtual clock: billed by the
market's own books, the share of the cap that was used, simulated minutes until 99 % of it and until the end. `quota` asks
one dataset for so many tokens: the error, and the mean length of answers against that of answers nobody cut.
"""

import argparse
import random
import statistics
import sys
import time

from msgspec.structs import replace
from pydantic import SecretStr

from eyas import vocab
from eyas.config import RunConfig
from eyas.engine import admit, session
from eyas.engine.admit import Candidate, Pool
from eyas.engine.attempt import Here
from eyas.engine.inputs import Inputs, Tokenizer, list_endpoints
from eyas.engine.pace import Pace
from eyas.engine.run import Engine
from eyas.engine.served import Served
from eyas.engine.settle import World
from eyas.engine.target import backend_of
from eyas.events import PromptAdded, SessionOpened
from eyas.families import by_name
from eyas.ledger import nano_dollars
from eyas.plan import routes
from eyas.providers.choose import allowed
from eyas.rehearse.light import NoLog
from eyas.sim import World as Market
from eyas.sim import load
from eyas.sim.clock import now, play
from eyas.sim.played import PlayedTransport
from eyas.sim.text import lengths
from eyas.state import State
from eyas.types import Prompt, StopReason, Verdict, Work

FAMILY = by_name("kimi-k2.5")
PROMPT = 200
MOST_SESSIONS = 50


def config_of(args, mode, quota=None):
    budget = {"usd": args.usd, "mode": mode} | ({"output_tokens": quota} if quota else {})
    return RunConfig.model_validate({
        "run": {"dir": "r"},
        "target": {"model": "moonshotai/kimi-k2.5", "base_url": "https://api.test/api/v1", "max_tokens": args.max_tokens},
        "budget": budget,
        "limits": {"in_flight": args.in_flight, "connects_per_second": 1000},
        "datasets": [{"name": "A", "source": "a"}],
    })  # fmt: skip


async def run(config, scenario, kimi, args, seed):
    """A run; where every provider was set aside it is run again, as its user would. Gives the state, the market and (virtual seconds, settled) now and then."""
    market = Market(scenario, seed, kimi.vocab, now, lambda *_: PROMPT)
    backend = backend_of(config, SecretStr("sk-bench"))
    offer = await list_endpoints(config, backend, PlayedTransport(market.handle))
    barred = [verdict.endpoint for verdict in offer.verdicts if not verdict.use]
    served = Served(routes(config, allowed(offer.verdicts), barred))
    prompts = tuple(Prompt(f"{i:016x}", "A", ({"role": "user", "content": f"say {i}"},)) for i in range(args.prompts))
    counts = {("A", prompt.id): PROMPT for prompt in prompts}
    parts = session.Parts(config, backend, Tokenizer(FAMILY, kimi), Inputs(prompts, counts, (), 0), offer)
    transport = PlayedTransport(market.handle)
    books = session.books_of(parts, served, World(transport, NoLog(), now, now), State())
    reader = Here(transport, backend, books.setting.deadlines, now)
    cap = nano_dollars(config.budget.usd)
    books.state.apply(
        SessionOpened(
            at=now(), model="m", cap=cap, quotas={"A": config.quota("A")}, waste_limit=cap // 10, samples={},
            family="kimi-k2.5", thinking={"A": True},
        )
    )  # fmt: skip
    for prompt in prompts:
        books.state.apply(PromptAdded(at=now(), dataset="A", prompt_id=prompt.id, tokens=PROMPT))
    books.pool = Pool.of(Candidate(Work("A", p.id), p, PROMPT) for p in prompts)
    began, curve, reason = now(), [], StopReason.OWED
    for _ in range(MOST_SESSIONS):
        books.pace = Pace(config.limits.in_flight)
        engine = Engine(books, session.admission_of(books), reader)
        engine.on_tick = lambda e: curve.append((now() - began, books.state.money.settled, len(e.flights)))
        reason = await engine.run()
        if reason is not StopReason.OWED:
            break
    return reason, books.state, market, curve, now() - began


def caps(args, kimi):
    failed = False
    print(
        f"{args.scenario}: ${args.usd:.2f}, max_tokens {args.max_tokens}, {args.in_flight} in flight, {args.seeds} seeds"
    )
    print(
        f"{'mode':8} {'seed':>4} {'end':8} {'billed/cap':>10} {'held/cap':>8} {'min to 99 %':>11} {'min':>6} {'mean fly':>8} {'partial':>7} {'waste':>6} {'cpu s':>6}"
    )
    times = {}
    for seed in range(args.first, args.first + args.seeds):
        for mode in args.modes:
            scenario = market_of(args)
            cpu = time.process_time()
            reason, state, market, curve, seconds = play(
                lambda m=mode, s=scenario, n=seed: run(config_of(args, m), s, kimi, args, n)
            )
            cap, billed = state.money.cap, market.books.billed
            line = 0.99 * (cap - state.money.unknown)
            reached = next((at for at, settled, _ in curve if settled >= line), seconds)
            partial = sum(d.ended.get("partial", 0) for d in state.datasets.values())
            mean = statistics.mean(fly for _, _, fly in curve) if curve else 0
            waste = state.money.wasted / max(1, state.money.settled)
            print(
                f"{mode:8} {seed:4} {reason:8} {billed / cap:10.4f} {state.money.unknown / cap:8.4f} {reached / 60:11.1f} {seconds / 60:6.1f} {mean:8.0f} {partial:7} {waste:6.2%} {time.process_time() - cpu:6.1f}",
                flush=True,
            )
            times.setdefault(mode, []).append(reached)
            # Money held for outcomes that nobody can look up is not there to be used.
            used = (state.money.settled + state.money.unknown) / cap
            failed |= used < 0.99 or billed / cap > (1.0 if mode == "strict" else 1.005)
    for mode, found in times.items():
        print(f"{mode}: mean minutes to 99 %: {statistics.mean(found) / 60:.1f}")
    if len(times) == 2:
        share = statistics.mean(times["metered"]) / statistics.mean(times["strict"])
        print(f"metered takes {share:.0%} of strict's time")
        failed |= share > 0.6
    return failed


def market_of(args):
    # Long pieces are cheap to play; slots let 2000 fly at the cheap providers, whose streams can be ended. Nobody
    # misserves: in a storm every provider would soon be set aside for it, and the cap would not be what ends the run.
    scenario = load(args.scenario)
    return replace(
        scenario, faults=replace(scenario.faults, misserved=0.0, wrong_mode=0.0), cut="block", keep_ids=False, length_median=1200.0, length_sigma=1.1, length_max=args.max_tokens,
        tps=40.0, slots=0, comments=0.0, drift=0.0,
    )  # fmt: skip


def quotas(args, kimi):
    """Lengths are compared with the whole lengths of all answers that were begun, so that luck in drawing them is out."""
    failed, means = False, []
    print(f"quota {args.tokens:,}, {args.scenario}, {args.in_flight} in flight; answers kept include cut ones")
    for seed in range(args.first, args.first + args.seeds):
        cpu = time.process_time()
        reason, state, market, _, seconds = play(
            lambda n=seed: run(config_of(args, "strict", args.tokens), market_of(args), kimi, args, n)
        )
        error = state.datasets["A"].quota.kept / args.tokens - 1
        kept = [known.tokens for known in state.works.values() if known.answer is not None]
        whole = [known.tokens for known in state.works.values() if known.verdict is Verdict.DONE]
        begun = statistics.mean(entry.total for entry in market.books.entries.values())
        bias = statistics.mean(whole) / begun - 1
        means.append(statistics.mean(whole))
        print(
            f"seed {seed:3} {reason:9} error {error:+.2%}, {len(kept)} answers; whole ones {statistics.mean(whole):.0f} tokens, {bias:+.2%}; with the {len(kept) - len(whole)} that providers cut {statistics.mean(kept) / begun - 1:+.2%}; {seconds / 60:.1f} min, cpu {time.process_time() - cpu:.0f} s",
            flush=True,
        )
        failed |= abs(error) > 0.01 or abs(bias) > 0.02
    rng = random.Random(1)
    law = statistics.mean(lengths(1200.0, 1.1, args.max_tokens, rng) for _ in range(400_000))
    print(f"mean of the seeds {statistics.mean(means):.0f}, of the law they are drawn from {law:.0f} tokens")
    return failed | (abs(statistics.mean(means) / law - 1) > 0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cap", "quota"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--scenario", default="rough")
    parser.add_argument("--modes", nargs="+", default=["strict", "metered"])
    parser.add_argument("--max-tokens", type=int, default=32768)
    parser.add_argument("--in-flight", type=int, default=2000)
    parser.add_argument("--prompts", type=int, default=20_000)
    parser.add_argument("--usd", type=float, default=20.0)
    parser.add_argument("--tokens", type=int, default=5_000_000)
    parser.add_argument("--deviations", type=float)
    args = parser.parse_args()
    if args.deviations is not None:
        admit.DEVIATIONS = args.deviations
    if args.what == "quota":
        args.usd = max(args.usd, 1000.0)
    kimi = FAMILY.load(vocab.kimi_folder())
    sys.exit(1 if {"cap": caps, "quota": quotas}[args.what](args, kimi) else 0)


main()
