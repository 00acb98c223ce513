"""What is known before anything is asked: each dataset's prompts and their tokens, and the endpoints' prices. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from eyas.config import RunConfig
from eyas.ledger import cost_of, prompt_upper
from eyas.plan.route import Route
from eyas.plan.works import forgotten
from eyas.providers.cancel import stops
from eyas.providers.choose import can_serve
from eyas.state import State
from eyas.types import Endpoint, Prices, Prompt, Verdict, Work

BUCKET = 32
"""Prompts are told apart by their length in steps of so many tokens."""

TURN_CHARACTERS = 4
"""Characters that a token of a later user turn is taken to hold; only first turns are counted exactly."""


@dataclass(frozen=True, slots=True)
class Rung:
    """Endpoints of one tag: the dearest of their prices, the way that leads to them, and whether their bill can be ended.

    A request reserves at the prices of its route, which may lead to dearer endpoints too; `stops` holds for all of those.
    """

    tag: str
    prices: Prices
    endpoints: tuple[Endpoint, ...]
    route: Route
    stops: bool


def ladder(routes: Sequence[Route]) -> tuple[Rung, ...]:
    """The tags that may answer, as they are preferred; a gateway's one route is told apart by tag, cheapest first."""
    rungs: list[Rung] = []
    for route in routes:
        by_tag: dict[str, list[Endpoint]] = {}
        for endpoint in route.endpoints:
            by_tag.setdefault(endpoint.tag, []).append(endpoint)
        ended = all(map(stops, route.endpoints))
        made = [Rung(tag, _dearest(group), tuple(group), route, ended) for tag, group in by_tag.items()]
        rungs += sorted(made, key=lambda rung: (cost_of(rung.prices, 1_000_000, 4_000_000), rung.tag))
    return tuple(rungs)


def _dearest(endpoints: Sequence[Endpoint]) -> Prices:
    return Prices(
        max(e.prices.prompt for e in endpoints),
        max(e.prices.completion for e in endpoints),
        max(e.prices.request for e in endpoints),
    )


@dataclass(slots=True)
class Group:
    """Works still owed that the same rungs serve: how many, their prompts' tokens, and earlier answers in their history."""

    works: int = 0
    prompt_tokens: int = 0
    history: int = 0


@dataclass(slots=True)
class SetFacts:
    """One dataset.

    Attributes:
        rows, duplicates, quarantined, left_out: what its source held beside prompts; 0 where that is not told.
        prompts, prompt_tokens: its prompts, and their tokens by the target's own tokenizer.
        works: answers still owed. `unserved` works are too long for every endpoint and in no group.
        kept: output tokens that the run has already.
        groups: owed works by the rungs that serve them (indexes into the ladder).
        sizes: owed works by the length of their prompt in steps of BUCKET tokens.
        checksum: of ids, counts and turns, whatever their order.
    """

    name: str
    max_tokens: int
    thinking: bool
    quota: int | None
    rows: int = 0
    duplicates: int = 0
    quarantined: int = 0
    left_out: int = 0
    prompts: int = 0
    prompt_tokens: int = 0
    kept: int = 0
    unserved: int = 0
    groups: dict[tuple[int, ...], Group] = field(default_factory=dict[tuple[int, ...], Group])
    sizes: Counter[int] = field(default_factory=Counter[int])
    checksum: int = 0

    @property
    def works(self) -> int:
        """Answers still owed that some endpoint can give."""
        return sum(group.works for group in self.groups.values())

    @property
    def digest(self) -> str:
        """32 hex digits that change with any prompt."""
        return f"{self.checksum:032x}"


def gather(
    config: RunConfig, state: State, prompts: Iterable[Prompt], counts: Mapping[tuple[str, str], int],
    rungs: Sequence[Rung],
) -> dict[str, SetFacts]:  # fmt: skip
    """Look at every prompt once: what its dataset holds, what of it is owed, and who can serve it."""
    found = {
        each.name: SetFacts(
            each.name, config.max_tokens(each.name), config.thinking(each.name), config.quota(each.name)
        )
        for each in config.datasets
    }
    samples = {each.name: each.samples for each in config.datasets}
    for name, known in state.datasets.items():
        if name in found:
            found[name].kept = known.quota.kept
    for prompt in prompts:
        of, tokens = found[prompt.dataset], counts[prompt.dataset, prompt.id]
        of.prompts += 1
        of.prompt_tokens += tokens
        of.checksum = (of.checksum + _checksum(prompt, tokens)) % (1 << 128)
        if not forgotten(state, prompt):
            _owe(of, state, prompt, (tokens, samples[prompt.dataset]), rungs)
    return found


def _checksum(prompt: Prompt, tokens: int) -> int:
    text = f"{prompt.id} {tokens} {len(prompt.turns)}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


def _owe(of: SetFacts, state: State, prompt: Prompt, size: tuple[int, int], rungs: Sequence[Rung]) -> None:
    tokens, samples = size
    going = list(range(samples))
    for turn in range(1 + len(prompt.turns)):
        if turn:
            tokens += -(-len(prompt.turns[turn - 1]) // TURN_CHARACTERS)
        known = {sample: state.works.get(Work(prompt.dataset, prompt.id, turn, sample)) for sample in going}
        owed = sum(each is None or each.owed for each in known.values())
        # A turn that ended without a whole answer ends its conversation.
        going = [sample for sample, each in known.items() if each is None or each.owed or each.verdict is Verdict.DONE]
        if not owed:
            continue
        serve = _serve(rungs, tokens, of.max_tokens, tools=bool(prompt.tools))
        if not serve:
            of.unserved += owed
            continue
        group = of.groups.setdefault(serve, Group())
        group.works += owed
        group.prompt_tokens += owed * tokens
        group.history += owed * turn
        of.sizes[tokens // BUCKET] += owed


def _serve(rungs: Sequence[Rung], prompt_tokens: int, max_tokens: int, *, tools: bool) -> tuple[int, ...]:
    size = prompt_upper(prompt_tokens)
    return tuple(
        place
        for place, rung in enumerate(rungs)
        if any(can_serve(endpoint, size, max_tokens, tools=tools) for endpoint in rung.endpoints)
    )
