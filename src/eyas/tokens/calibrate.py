"""How each provider counts tokens and cuts its stream, learned from the run's own answers (pure).

Every recorded Kimi answer is explained by three switches of counting: whether `<think>` is counted in the prompt or in
the completion, whether the stop token is counted, and whether a space at the end of the reasoning is an artefact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import product

import msgspec

_SURE_ANSWERS = 30
"""So many answers without whitespace at an end of a text mean that the provider strips it."""

_SURE_PIECES = 32
"""Fewer streamed pieces say nothing of where a stream is cut."""

_MOST = 0.9


class Cut(StrEnum):
    """Where a provider cuts its stream: at each token, after some whole tokens, or anywhere in the text."""

    TOKEN = "token"  # noqa: S105  # no password
    BURST = "burst"
    ANYWHERE = "anywhere"
    UNKNOWN = "unknown"


class Habits(msgspec.Struct, frozen=True):
    """How one provider counts and cuts, in one mode.

    Attributes:
        answers: how many answers it was learned from.
        explained: how many of them it explains exactly.
        think_counted: where `<think>` is counted, "prompt" or "completion".
        stop_counted: whether completion_tokens counts the stop token.
        artefact_space: whether a space at the end of the reasoning was added by the server.
        cut: where the stream is cut.
        keeps_whitespace: whether whitespace at the ends of texts arrives; None: not known.
        keeps_arguments: whether tool arguments arrive as sampled; None: no tool call seen.
        reasoning_count: what reasoning_tokens counts: "R", "R+1" (with `</think>`), "other" or "unknown".
    """

    answers: int = 0
    explained: int = 0
    think_counted: str = "prompt"
    stop_counted: bool = True
    artefact_space: bool = False
    cut: Cut = Cut.UNKNOWN
    keeps_whitespace: bool | None = None
    keeps_arguments: bool | None = None
    reasoning_count: str = "unknown"

    @property
    def prompt_offset(self) -> int:
        """What usage.prompt_tokens is to the rendered prompt: 0, or -1 where `<think>` is counted as an answer's token."""
        return 0 if self.think_counted == "prompt" else -1

    def expected(self, total: int, *, stop: bool) -> int:
        """The completion_tokens that an answer of `total` ids has, the stop token (if `stop`) among them."""
        return total - (stop and not self.stop_counted) - self.prompt_offset


class Evidence(msgspec.Struct, frozen=True):
    """What one answer says about its provider; all counts are tokens.

    Attributes:
        key: provider and mode, see `habit_key`.
        prompt_off: usage.prompt_tokens minus the rendered prompt.
        counted: usage.completion_tokens.
        stop: whether the answer ended by its stop token.
        whole, pieced: ids of the answer when its texts are encoded whole, or piece by piece; None: not tried.
        whole_trimmed, pieced_trimmed: the same without a space at the end of the reasoning.
        pieces, singles: streamed pieces, and how many of them are one vocabulary entry.
        edges: whether a text begins or ends with whitespace.
        tools: whether it calls tools.
        reasoning_off: usage.reasoning_tokens minus the ids of the reasoning; None: not said, or no reasoning.
    """

    key: str
    prompt_off: int
    counted: int
    stop: bool
    whole: int | None
    pieced: int | None
    whole_trimmed: int | None
    pieced_trimmed: int | None
    pieces: int
    singles: int
    edges: bool
    tools: bool
    reasoning_off: int | None


def habit_key(provider: str, *, thinking: bool) -> str:
    """The name under which habits are kept: the provider's display name; instant mode is counted apart."""
    return provider if thinking else f"{provider} (instant)"


def learn(evidence: Iterable[Evidence]) -> dict[str, Habits]:
    """Habits by key: the switches that explain the most answers; the plainest ones where several explain as many.

    So a provider with few answers keeps the defaults unless they fail and other switches explain what is there.
    """
    groups: defaultdict[str, list[Evidence]] = defaultdict(list)
    for item in evidence:
        groups[item.key].append(item)
    return {key: _learn_one(groups[key]) for key in sorted(groups)}


def habits_for(habits: Mapping[str, Habits], provider: str, *, thinking: bool) -> Habits:
    """The habits of a provider, the defaults if nothing was learned of it."""
    return habits.get(habit_key(provider, thinking=thinking), _PLAIN)


_PLAIN = Habits()

_SWITCHES = tuple(
    Habits(think_counted=think, stop_counted=stop, artefact_space=artefact)
    for artefact, stop, think in product((False, True), (True, False), ("prompt", "completion"))
)
"""All ways of counting, the plainest first."""


def _learn_one(group: Sequence[Evidence]) -> Habits:
    # max() keeps the first of equals, so the plainest switches win a tie.
    switches = max(_SWITCHES, key=lambda way: sum(_explains(way, item) for item in group))
    explained = [item for item in group if _explains(switches, item)]
    tools = [_explains(switches, item) for item in group if item.tools]
    return msgspec.structs.replace(
        switches,
        answers=len(group),
        explained=len(explained),
        cut=_cut(switches, explained),
        keeps_whitespace=True if any(i.edges for i in group) else False if len(group) >= _SURE_ANSWERS else None,
        keeps_arguments=sum(tools) >= _MOST * len(tools) if tools else None,
        reasoning_count=_reasoning_count(explained),
    )


def _explains(way: Habits, item: Evidence) -> bool:
    return item.prompt_off == way.prompt_offset and (_by_pieces(way, item) or _by_whole(way, item))


def _by_pieces(way: Habits, item: Evidence) -> bool:
    total = item.pieced_trimmed if way.artefact_space else item.pieced
    return total is not None and item.counted == way.expected(total, stop=item.stop)


def _by_whole(way: Habits, item: Evidence) -> bool:
    total = item.whole_trimmed if way.artefact_space else item.whole
    return total is not None and item.counted == way.expected(total, stop=item.stop)


def _cut(way: Habits, explained: Sequence[Evidence]) -> Cut:
    """Where the stream is cut: where pieces are whole tokens, their sum is the count of nearly every answer."""
    streamed = [item for item in explained if item.pieces > 1]
    pieces = sum(item.pieces for item in streamed)
    if pieces < _SURE_PIECES:
        return Cut.UNKNOWN
    if sum(_by_pieces(way, item) for item in streamed) < _MOST * len(streamed):
        return Cut.ANYWHERE
    return Cut.TOKEN if sum(item.singles for item in streamed) >= _MOST * pieces else Cut.BURST


def _reasoning_count(explained: Sequence[Evidence]) -> str:
    offs = [item.reasoning_off for item in explained if item.reasoning_off is not None]
    for off, name in ((0, "R"), (1, "R+1")):
        if offs and offs.count(off) >= _MOST * len(offs):
            return name
    return "other" if offs else "unknown"
