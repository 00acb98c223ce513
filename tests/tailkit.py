"""Sessions of bare admission: answers whose length goes with the size of their prompt, some hundred in flight, no network."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

from eyas.engine.admit import Admitted, Candidate, Pool, Strict
from eyas.engine.pace import Pace
from eyas.engine.quotas import Quotas
from eyas.events import Intent, PromptAdded, SessionOpened, Settled
from eyas.ledger import nano_dollars
from eyas.plan import Route
from eyas.state import State
from eyas.types import Endpoint, Prices, Prompt, Verdict, Work

MOST = 8192
PRICES = Prices(500_000_000, 2_000_000_000)
ENDPOINT = Endpoint("m", "P", "p", "p/int4", PRICES, "int4", 10**6, MOST)
ROUTES = (Route("p/int4", (ENDPOINT,), PRICES, {}),)


@dataclass
class Tale:
    """One run over several sessions. `asked` are the works in the order they were asked, `ends` the seconds of each session."""

    seed: int
    prompts: int = 600
    quota: int | None = None
    usd: float | None = None
    in_flight: int = 100
    sets: tuple[str, ...] = ("A", "B")
    state: State = field(default_factory=State)
    asked: list[Work] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        works = [Work(name, f"{number:016x}") for number in range(self.prompts) for name in self.sets]
        self.sizes = {work: round(20 * 2 ** rng.uniform(0, 6)) for work in works}
        self.lengths = {
            work: min(MOST, 1 + round(rng.lognormvariate(0, 0.7) * 60 * size**0.5)) for work, size in self.sizes.items()
        }

    def session(self, stop_after: int | None = None) -> list[Work]:
        """Ask until nothing is admitted and nothing flies, or until so many answers came: what flies then is lost.

        Gives the works asked, in order.
        """
        cap = None if self.usd is None else nano_dollars(self.usd)
        self.state.apply(
            SessionOpened(at=0, model="m", cap=cap, quotas=dict.fromkeys(self.sets, self.quota), waste_limit=None)
        )
        for work, size in self.sizes.items():
            self.state.apply(PromptAdded(at=0, dataset=work.dataset, prompt_id=work.prompt_id, tokens=size))
        owed = [work for work in self.sizes if work not in self.state.works or self.state.works[work].owed]
        pool = Pool.of(Candidate(work, Prompt(work.prompt_id, work.dataset, ()), self.sizes[work]) for work in owed)
        shares = dict.fromkeys(self.sets, 1.0) if self.quota else {}
        self.quotas = Quotas.of(self.state, dict.fromkeys(self.sets, MOST), shares)
        admission = Strict(self.state, pool, self.quotas, ROUTES, Pace(self.in_flight), lambda _: MOST)
        before = len(self.asked)
        self._play(admission, stop_after)
        return self.asked[before:]

    def _play(self, admission: Strict, stop_after: int | None) -> None:
        flying: list[tuple[float, int, Work]] = []
        now, came, looked = 0.0, 0, -1.0
        while True:
            if now >= looked + 1.0:
                self._refresh(flying, now)
                looked = now
            while len(flying) < self.in_flight and isinstance(found := admission.next(now), Admitted):
                heapq.heappush(flying, self._start(found, now))
            if not flying or came == stop_after:
                break
            now, number, work = heapq.heappop(flying)
            self._settle(number, work, now)
            came += 1
        for _, number, _ in flying:
            self.state.apply(Settled(at=now, attempt=number, verdict=Verdict.AGAIN, cost=0))
        self.ends.append(now)

    def _start(self, found: Admitted, now: float) -> tuple[float, int, Work]:
        number, work = self.state.last_attempt + 1, found.candidate.work
        self.asked.append(work)
        self.state.apply(
            Intent(at=now, attempt=number, work=work, number=1, tag="p/int4", prices=PRICES, reserved=found.reserved)
        )
        return now + self.lengths[work] / 20, number, work

    def _settle(self, number: int, work: Work, now: float) -> None:
        tokens = self.lengths[work]
        cost = (self.sizes[work] * PRICES.prompt + tokens * PRICES.completion) // 1_000_000
        self.state.apply(Settled(at=now, attempt=number, verdict=Verdict.DONE, cost=cost, tokens=tokens))
        self.quotas.learn(work, self.sizes[work], tokens)

    def _refresh(self, flying: list[tuple[float, int, Work]], now: float) -> None:
        so_far: dict[str, list[int]] = {}
        for ends, _, work in flying:
            so_far.setdefault(work.dataset, []).append(max(0, self.lengths[work] - round((ends - now) * 20)))
        self.quotas.refresh(so_far)

    def numbers(self) -> dict[str, list[int]]:
        """The prompts asked, by set, ascending; their ids are their numbers in the order."""
        found: dict[str, set[int]] = {name: set() for name in self.sets}
        for work in self.asked:
            found[work.dataset].add(int(work.prompt_id, 16))
        return {name: sorted(numbers) for name, numbers in found.items()}
