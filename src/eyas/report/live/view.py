"""A snapshot as lines of a terminal: what matters first, more where there is room, never more than there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eyas.report.live import rows, tables
from eyas.report.live.frame import Frame, Line
from eyas.report.live.rows import Glyphs
from eyas.report.live.snapshot import Snapshot

LEAST_WIDTH, LEAST_HEIGHT = 20, 4
"""A terminal that says it is smaller is taken to be so large."""
MOST_WIDTH = 140
"""Columns that a line is spread over; more would only pull its ends apart."""


@dataclass(slots=True)
class _Part:
    """Lines of one kind: a head, and rows of which some may be left out, the last ones first."""

    head: tuple[Line, ...]
    rows: int
    draw: Callable[[int], Iterator[Line]]
    given: int = 0

    @property
    def lines(self) -> int:
        """Lines that it takes now."""
        return len(self.head) + self.given if self.given else 0


def view(shown: Snapshot, width: int, height: int, glyphs: Glyphs = rows.UNICODE) -> Frame:
    """The snapshot in at most `height` lines of `width` columns.

    Where lines are short, single endpoints go first (the rest of them is one line), then workers, old errors, and datasets;
    what stands at the top never goes.
    """
    width, height = max(LEAST_WIDTH, width), max(LEAST_HEIGHT, height)
    wide = min(width, MOST_WIDTH)
    top = rows.top(shown, wide, glyphs)
    sets = _Part((), len(shown.sets), lambda most: tables.sets(shown, most, wide, glyphs))
    servers = _Part(
        (tables.servers_head(shown, wide),) if shown.servers else (),
        len(shown.servers),
        lambda most: tables.servers(shown, most, wide, glyphs),
    )
    crew = _Part(
        (tables.crew_head(shown, wide),) if shown.crew else (),
        len(shown.crew),
        lambda most: tables.crew(shown, most, wide, glyphs),
    )
    errors = _Part((), len(shown.seen), lambda most: rows.errors(shown, most, wide))
    bottom = rows.worth(shown, wide)
    room = height - len(top) - len(bottom)
    parts = (sets, errors, crew, servers)
    few = ((errors, 3), (crew, 3), (servers, 3)) if crew.rows else ()
    for part, most in (
        *((part, 1) for part in parts),
        (sets, 8),
        *few,
        (errors, 5),
        (crew, 8),
        (servers, 99),
        (crew, 99),
        (sets, 99),
    ):
        _grant(part, most, room - sum(each.lines for each in parts if each is not part))
    blocks = (top, [*sets.draw(sets.given)], _drawn(crew), _drawn(servers), bottom, _drawn(errors))
    return Frame.of(_spaced([block for block in blocks if block], height), width, height)


def _grant(part: _Part, most: int, room: int) -> None:
    """Give a part as many of its rows as there is room for, `most` at the most; never fewer than it has."""
    part.given = max(part.given, min(part.rows, most, room - len(part.head)))


def _drawn(part: _Part) -> list[Line]:
    return [*part.head, *part.draw(part.given)] if part.given else []


def _spaced(blocks: list[list[Line]], height: int) -> Iterator[Line]:
    """The blocks, with an empty line between two where there is room for all of these."""
    apart = sum(map(len, blocks)) + len(blocks) - 1 <= height
    for number, block in enumerate(blocks):
        if number and apart:
            yield ()
        yield from block
