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
"""So many answers without whitespace at an end of a text say something: the provider strips it, or the model has none."""

_CHANCE = 0.01
"""Below this chance of having seen no whitespace at an end by luck, the provider strips it; rarer whitespace says nothing."""

_SURE_PIECES = 32
"""Fewer streamed pieces say nothing of where a stream is cut."""

_MOST = 0.9


_INSTANT = " (instant)"


class Cut(StrEnum):
    """Where a provider cuts its stream: at each token, after some whole tokens, or anywhere in the text."""

    TOKEN = "token"  # noqa: S105  # no password
    BURST = "burst"
    ANYWHERE = "anywhere"
    UNKNOWN = "unknown"


class End(StrEnum):
    """An end of a text of an answer, where a server may take whitespace off."""

    REASONING_START = "reasoning_start"
    REASONING_END = "reasoning_end"
    CONTENT_START = "content_start"
    CONTENT_END = "content_end"


class Habits(msgspec.Struct, frozen=True):
    """How one provider counts and cuts, in one mode.

    Attributes:
        answers: how many answers it was learned from.
        explained: how many of them it explains exactly.
        think_counted: where `<think>` is counted, "prompt" or "completion".
        stop_counted: whether completion_tokens counts the stop token.
        artefact_space: whether a space at the end of the reasoning was added by the server.
        cut: where the stream is cut.
        stripped: ends of texts where the provider takes whitespace off, since other providers' answers have it there.
        open: ends of texts of which that is not known yet.
        keeps_arguments: whether tool arguments arrive as sampled; None: no tool call seen.
        reasoning_count: what reasoning_tokens counts: "R", "R+1" (with `</think>`), "other" or "unknown".
    """

    answers: int = 0
    explained: int = 0
    think_counted: str = "prompt"
    stop_counted: bool = True
    artefact_space: bool = False
    cut: Cut = Cut.UNKNOWN
    stripped: frozenset[End] = frozenset()
    open: frozenset[End] = frozenset(End)
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
        edges: for each end of a text that is not empty, whether whitespace stands there.
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
    edges: dict[End, bool]
    tools: bool
    reasoning_off: int | None


def habit_key(provider: str, *, thinking: bool) -> str:
    """The name under which habits are kept: the provider's display name; instant mode is counted apart."""
    return provider if thinking else provider + _INSTANT


def learn(evidence: Iterable[Evidence]) -> dict[str, Habits]:
    """Habits by key: the switches that explain the most answers; the plainest ones where several explain as many.

    So a provider with few answers keeps the defaults unless they fail and other switches explain what is there.
    """
    groups: defaultdict[str, list[Evidence]] = defaultdict(list)
    for item in evidence:
        groups[item.key].append(item)
    ways = {key: _counting(group) for key, group in groups.items()}
    ends = _learn_ends(groups, {key for key, way in ways.items() if way.artefact_space})
    return {key: _learn_one(groups[key], ways[key], ends[key]) for key in sorted(groups)}


def habits_for(habits: Mapping[str, Habits], provider: str, *, thinking: bool) -> Habits:
    """The habits of a provider, the defaults if nothing was learned of it."""
    return habits.get(habit_key(provider, thinking=thinking), _PLAIN)


_PLAIN = Habits()

_SWITCHES = tuple(
    Habits(think_counted=think, stop_counted=stop, artefact_space=artefact)
    for artefact, stop, think in product((False, True), (True, False), ("prompt", "completion"))
)
"""All ways of counting, the plainest first."""


class _Seen(msgspec.Struct):
    """Whitespace seen at one end: in how many of how many texts."""

    white: int = 0
    texts: int = 0


_Ends = tuple[frozenset[End], frozenset[End]]


def _learn_ends(groups: Mapping[str, Sequence[Evidence]], artefacts: set[str]) -> dict[str, _Ends]:
    """(stripped, open) ends by key. Providers of one mode are held against each other: they serve the same model.

    A space that a server adds to the reasoning (`artefacts`) says nothing of what the model samples.
    """
    seen = {key: {end: _count(group, end) for end in End} for key, group in groups.items()}
    for key in artefacts:
        seen[key][End.REASONING_END] = _Seen()
    found: dict[str, _Ends] = {}
    for key, own in seen.items():
        peers = [seen[other] for other in seen if other != key and _instant(other) == _instant(key)]
        others = {
            end: _Seen(sum(peer[end].white for peer in peers), sum(peer[end].texts for peer in peers)) for end in End
        }
        keeps_some = any(own[end].white for end in End)
        states = {end: _state(own[end], others[end], keeps_some=keeps_some) for end in End}
        found[key] = (
            frozenset(end for end in End if states[end] is False),
            frozenset(end for end in End if states[end] is None),
        )
    return found


def _count(group: Sequence[Evidence], end: End) -> _Seen:
    texts = [item.edges[end] for item in group if end in item.edges]
    return _Seen(sum(texts), len(texts))


def _state(own: _Seen, others: _Seen, *, keeps_some: bool) -> bool | None:
    """Whether whitespace at an end arrives: True, False, or None where that is not known."""
    if own.white:
        return True
    share = others.white / others.texts if others.texts else 0.0
    if share >= _CHANCE:
        return False if (1 - min(share, 0.999)) ** own.texts <= _CHANCE else None
    if keeps_some or (others.texts and own.texts + others.texts >= _SURE_ANSWERS):
        return True
    return False if not others.texts and own.texts >= _SURE_ANSWERS else None


def _instant(key: str) -> bool:
    return key.endswith(_INSTANT)


def _learn_one(group: Sequence[Evidence], switches: Habits, ends: _Ends) -> Habits:
    explained = [item for item in group if _explains(switches, item)]
    tools = [_explains(switches, item) for item in group if item.tools]
    return msgspec.structs.replace(
        switches,
        answers=len(group),
        explained=len(explained),
        cut=_cut(switches, explained),
        stripped=ends[0],
        open=ends[1],
        keeps_arguments=sum(tools) >= _MOST * len(tools) if tools else None,
        reasoning_count=_reasoning_count(explained),
    )


def _counting(group: Sequence[Evidence]) -> Habits:
    """The switches that explain most answers; max() keeps the first of equals, so the plainest win a tie."""
    return max(_SWITCHES, key=lambda way: sum(_explains(way, item) for item in group))


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
