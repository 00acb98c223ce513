"""How each provider counts tokens and cuts its stream, learned from the run's own answers (pure).

Every recorded Kimi answer is explained by three switches of counting: whether `<think>` is counted in the prompt or in
the completion, whether the stop token is counted, and whether a space at the end of the reasoning is an artefact.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import msgspec

from eyas.tokens.habits import HELD_BACK, PLAIN, Cut, End, Evidence, Habits, instant

_SURE_ANSWERS = 30
"""So many answers without whitespace at an end of a text say something: the provider strips it, or the model has none."""

_CHANCE = 0.01
"""Below this chance of having seen no whitespace at an end by luck, the provider strips it; rarer whitespace says nothing."""

_SURE_PIECES = 32
"""Fewer streamed pieces say nothing of where a stream is cut."""

_MOST = 0.9
_HALF = 0.5
_JUDGED = 10
"""So many answers are needed to distrust a provider whose counts do not agree."""

_LOST = 4
"""A server that strips whitespace loses at most about so many tokens of an answer."""

_EXCEPTIONS = 0.001
"""So many answers whose pieces are no tokens are faults of the line, not the way of the provider."""


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
        peers = [seen[other] for other in seen if other != key and instant(other) == instant(key)]
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


def _learn_one(group: Sequence[Evidence], way: Habits, ends: _Ends) -> Habits:
    agreed = [item for item in group if item.prompt_off == way.counting.prompt]
    explained = [item for item in agreed if _explains(way, item)]
    cut = _cut(way, agreed)
    way = msgspec.structs.replace(way, cut=cut)
    return msgspec.structs.replace(
        way,
        answers=len(group),
        explained=len(explained),
        proves=cut is Cut.TOKEN and _proves(way, agreed),
        stripped=ends[0],
        open=ends[1],
        keeps_arguments=_keeps_arguments(way, group),
        prompt_form=_form(group),
        reasoning_count=_reasoning_count(way, explained),
        hidden=_hidden(group, way),
        trusted=_trusted(group, agreed, way),
    )


def _counting(group: Sequence[Evidence]) -> Habits:
    """The switches that explain most answers; max() keeps the first of equals, so the plainest win a tie.

    A model hardly ever ends its reasoning by a space: where all reasonings do, the server adds it, though a stop token
    that is not counted would explain the counts as well.
    """
    closed = [item.spaced for item in group if item.spaced is not None]
    adds_space = bool(closed) and sum(closed) >= _MOST * len(closed)
    shifts = (PLAIN, *group[0].shifts)
    ways = [
        Habits(counting=shift, stop_counted=stop, artefact_space=artefact)
        for artefact, stop, shift in product((False, True), (True, False), shifts)
    ]
    return max(ways, key=lambda way: (sum(_explains(way, item) for item in group), way.artefact_space == adds_space))


def _explains(way: Habits, item: Evidence) -> bool:
    return item.prompt_off == way.counting.prompt and 0 in (_off_pieces(way, item), _off_whole(way, item))


def _off_pieces(way: Habits, item: Evidence) -> int | None:
    """What the API counted beyond the pieces; None if they are not known."""
    size = item.pieced_trimmed if way.artefact_space else item.pieced
    return None if size is None else item.counted - way.expected(size.total, stop=item.stop)


def _off_whole(way: Habits, item: Evidence) -> int | None:
    size = item.whole_trimmed if way.artefact_space else item.whole
    return None if size is None else item.counted - way.expected(size.total, stop=item.stop)


def _cut(way: Habits, agreed: Sequence[Evidence]) -> Cut:
    """Where the stream is cut: pieces of whole tokens never add up to more than the count, unless text was rewritten."""
    streamed = [item for item in agreed if item.pieces > 1 and not item.tools]
    pieces = sum(item.pieces for item in streamed)
    if pieces < _SURE_PIECES:
        return Cut.UNKNOWN
    fits = sum(0 <= (_off_pieces(way, item) or 0) <= _LOST for item in streamed)
    if fits < _MOST * len(streamed):
        return Cut.ANYWHERE
    return Cut.TOKEN if sum(item.singles for item in streamed) >= _MOST * pieces else Cut.BURST


def _proves(way: Habits, agreed: Sequence[Evidence]) -> bool:
    """Whether pieces are tokens without exception; a gateway that cuts at words shows itself by words split otherwise.

    Beyond ASCII a server holds tokens back until a character is whole, which is no exception.
    """
    streamed = [item for item in agreed if item.pieces > 1 and not item.tools]
    odd = sum(item.odd > 0 for item in streamed)
    off = sum(not 0 <= (_off_pieces(way, item) or 0) <= HELD_BACK * item.letters for item in streamed)
    return len(streamed) >= _SURE_ANSWERS and odd <= _EXCEPTIONS * len(streamed) and off <= _CHANCE * len(streamed)


def _keeps_arguments(way: Habits, group: Sequence[Evidence]) -> bool | None:
    """Whether answers with tool calls are explained as often as those without."""
    tools = [_explains(way, item) for item in group if item.tools]
    others = [_explains(way, item) for item in group if not item.tools]
    usual = sum(others) / len(others) if others else 1.0
    return sum(tools) >= _MOST * usual * len(tools) if tools else None


def _form(group: Sequence[Evidence]) -> str:
    forms = Counter(item.form for item in group if item.form is not None)
    return max(sorted(forms), key=forms.__getitem__) if forms else ""


def _hidden(group: Sequence[Evidence], way: Habits) -> int:
    """The offset that nearly all prompts have, if it has no known cause."""
    off, times = Counter(item.prompt_off for item in group).most_common(1)[0]
    return off if off != way.counting.prompt and len(group) >= _JUDGED and times >= _MOST * len(group) else 0


def _trusted(group: Sequence[Evidence], agreed: Sequence[Evidence], way: Habits) -> bool:
    if len(group) < _JUDGED:
        return True
    offs = [(_off_pieces(way, item), _off_whole(way, item)) for item in agreed]
    fits = sum(any(off is not None and abs(off) <= _LOST for off in pair) for pair in offs)
    return fits >= _HALF * len(group)


def _reasoning_count(way: Habits, explained: Sequence[Evidence]) -> str:
    offs: list[int] = []
    for item in explained:
        whole, pieced = (item.whole_trimmed, item.pieced_trimmed) if way.artefact_space else (item.whole, item.pieced)
        size = (pieced if way.at_tokens else None) or whole or pieced
        if item.reasoning_said is not None and size is not None:
            offs.append(item.reasoning_said - size.reasoning)
    for off, name in ((0, "R"), (1, "R+1")):
        if offs and offs.count(off) >= _MOST * len(offs):
            return name
    return "other" if offs else "unknown"
