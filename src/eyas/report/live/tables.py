"""The tables of a live view: datasets and those who answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eyas.report.amounts import short
from eyas.report.live.frame import Line, Piece, cell, inert
from eyas.report.live.pulse import Lane
from eyas.report.live.rows import BAD, DIM, FLIES, GOOD, LABEL, LOOK, MAIN, WIDE, Glyphs, bar
from eyas.report.live.snapshot import Server, Set, Snapshot, Worker

MOST_NAME, MOST_TAG = 16, 30
LEAST_BAR, MOST_BAR = 9, 16
WIDER = 112
"""Columns from which a table says what each endpoint has cost."""


def sets(shown: Snapshot, most: int, width: int, glyphs: Glyphs) -> Iterator[Line]:
    """A bar of tokens for each dataset, of answers where no quota is set; the last of too many are one line."""
    names = min(MOST_NAME, max((len(inert(each.name)) for each in shown.sets), default=0))
    digits = max((len(f"{each.works:,}") for each in shown.sets), default=1)
    lost = any(each.lost for each in shown.sets)
    head = max(LABEL, names + 3)
    told = [_told(each, digits, width, lost=lost) for each in shown.sets]
    room = max(LEAST_BAR, width - head - 1 - max((sum(len(p.text) for p in line) for line in told), default=0))
    whole = most >= len(shown.sets)
    for each, line in list(zip(shown.sets, told, strict=True))[: most if whole else most - 1]:
        name = Piece(f" {cell(each.name, names)}".ljust(head), MAIN if each.flying.answers else "")
        yield (name, *_set_bar(each, room, glyphs), *line)
    if not whole:
        rest = shown.sets[most - 1 :]
        answered, works = sum(each.answered for each in rest), sum(each.works for each in rest)
        yield (Piece(f" and {len(rest)} more sets: {answered:,} of {works:,} answers", DIM),)


def _set_bar(each: Set, width: int, glyphs: Glyphs) -> Iterator[Piece]:
    if each.limit:
        there, flying, total = each.kept, each.flying.tokens, each.limit
    else:
        there, flying, total = each.answered, each.flying.answers, each.works
    return bar(width, ((there, glyphs.there, GOOD), (flying, glyphs.flying, FLIES)), total, glyphs.rest)


def _told(each: Set, digits: int, width: int, *, lost: bool) -> list[Piece]:
    """The figures of a dataset beside its bar."""
    there, total = (each.kept, each.limit) if each.limit else (each.answered, each.works)
    share = f"{min(1.0, there / total):.0%}" if total else "-"
    answers = f"{each.answered:>{digits},} of {each.works:>{digits},} answers"
    if each.limit:
        line = [Piece(f" {share:>4}", MAIN), Piece(f" of {short(each.limit):>6} tokens")]
        more = answers
    else:
        line = [Piece(f" {share:>4}", MAIN), Piece(f"  {answers}")]
        more = f"{short(each.kept):>6} tokens"
    if width >= 64:
        line.append(Piece(f"  {more}"))
    if width >= WIDE:
        line.append(Piece(f"  {each.flying.answers:>5,} in flight"))
    if lost:
        line.append(Piece(f"  {each.lost:,} lost" if each.lost else "", BAD))
    return line


def servers_head(shown: Snapshot, width: int) -> Line:
    """What stands in the columns of `servers`."""
    name, narrow = "server" if shown.local else "provider", _narrow(width)
    tags, bars = _widths(shown, width)
    head = f" {name:<{tags}}  {'in flight':<{bars}}{'':>7}{'limit':>7}{'tokens/s':>9}{'answers':>9}"
    if not narrow:
        head += f"{'errors':>7}{'429, 503':>9}"
    if width >= WIDER:
        head += f"{'tokens':>9}" + (f"{'usd':>10}" if shown.purse is not None else "")
    return (Piece(head, DIM),)


def servers(shown: Snapshot, most: int, width: int, glyphs: Glyphs) -> Iterator[Line]:
    """Those who answer, the cheapest first; the last of too many are one line."""
    tags, bars = _widths(shown, width)
    whole = most >= len(shown.servers)
    for each in shown.servers[: most if whole else most - 1]:
        style = LOOK if each.lane.aside else "" if each.asked else DIM
        line = [Piece(f" {cell(each.tag, tags)}  ", style), *_lane(shown, each, bars, glyphs)]
        yield (*line, *_did(shown, [each], width))
    if not whole:
        rest = shown.servers[most - 1 :]
        flying = sum(each.lane.in_flight for each in rest)
        name = f"and {len(rest)} more" if most > 1 else f"{len(rest)} in all"
        line = [
            Piece(f" {cell(name, tags)}  {'':<{bars}}", DIM),
            Piece(f"{flying if shown.running else '':>7}{'':>7}", DIM),
        ]
        yield (*line, *_did(shown, rest, width, style=DIM))


def _narrow(width: int) -> bool:
    return width < 76


def _widths(shown: Snapshot, width: int) -> tuple[int, int]:
    """Columns for names and for bars."""
    tags = max((len(inert(each.tag)) for each in shown.servers), default=0)
    fixed = 3 + 32 + (0 if _narrow(width) else 16) + (19 if width >= WIDER else 0)
    tags = min(max(tags, len("provider")), MOST_TAG, max(8, width - fixed - LEAST_BAR - 1))
    return tags, max(LEAST_BAR, min(MOST_BAR, width - fixed - tags - 1))


def _lane(shown: Snapshot, each: Server, bars: int, glyphs: Glyphs) -> Iterator[Piece]:
    """What flies there, or why nothing does."""
    lane = each.lane
    if lane.aside and not lane.in_flight:
        yield Piece(cell(f"aside: {lane.aside}", bars + 14), LOOK)
    elif not each.asked:
        yield Piece(cell("not asked now" if shown.running else "", bars + 14), DIM)
    elif lane.paused and not lane.in_flight:
        yield Piece(cell(f"paused {lane.paused:.0f} s", bars + 14), LOOK)
    else:
        yield from _flies(lane, bars, glyphs)


def _flies(lane: Lane, bars: int, glyphs: Glyphs) -> Iterator[Piece]:
    yield from bar(bars, ((lane.in_flight, glyphs.flying, FLIES),), lane.limit, glyphs.rest)
    yield Piece(f"{lane.in_flight:>7,}")
    yield Piece(f"{lane.limit:>7,}", DIM)


def _did(shown: Snapshot, group: Sequence[Server], width: int, style: str = "") -> Iterator[Piece]:
    """What they did, together."""
    speed = sum(each.tokens_per_second or 0.0 for each in group)
    yield Piece(f"{speed:>9,.0f}{sum(each.answers for each in group):>9,}", style)
    if not _narrow(width):
        for width_, count in ((7, sum(e.errors for e in group)), (9, sum(e.refusals for e in group))):
            yield Piece(f"{count or '-':>{width_}}", LOOK if count else DIM)
    if width >= WIDER:
        yield Piece(f"{short(sum(each.tokens for each in group)):>9}", style)
        if shown.purse is not None:
            yield Piece(f"{sum(each.usd for each in group):>10,.2f}", style)


def crew_head(shown: Snapshot, width: int) -> Line:
    """What stands in the columns of `crew`."""
    names, bars = _crew_widths(shown, width)
    head = f" {'worker':<{names}}  {'in flight':<{bars}}{'':>7}{'limit':>7}{'tokens/s':>9}{'answers':>9}"
    if shown.purse is not None and not _narrow(width):
        head += f"{'usd':>9}{'apart':>9}"
    return (Piece(head, DIM),)


def crew(shown: Snapshot, most: int, width: int, glyphs: Glyphs) -> Iterator[Line]:
    """The workers of a run over many machines; the last of too many are one line."""
    names, bars = _crew_widths(shown, width)
    whole = most >= len(shown.crew)
    for each in shown.crew[: most if whole else most - 1]:
        name = Piece(f" {cell(each.name, names)}  ", DIM if each.left else "")
        lane = (Piece(cell(each.left, bars + 14), DIM),) if each.left else _flies(each.lane, bars, glyphs)
        yield (name, *lane, *_earned(shown, [each], width))
    if not whole:
        rest = shown.crew[most - 1 :]
        name = f"and {len(rest)} more" if most > 1 else f"{len(rest)} in all"
        flying = sum(each.lane.in_flight for each in rest)
        line = Piece(f" {cell(name, names)}  {'':<{bars}}{flying if shown.running else '':>7}{'':>7}", DIM)
        yield (line, *_earned(shown, rest, width, style=DIM))


def _crew_widths(shown: Snapshot, width: int) -> tuple[int, int]:
    """Columns for names and for bars."""
    fixed = 3 + 32 + (0 if _narrow(width) or shown.purse is None else 18)
    names = max((len(inert(each.name)) for each in shown.crew), default=0)
    names = min(max(names, len("worker")), MOST_TAG, max(8, width - fixed - LEAST_BAR - 1))
    return names, max(LEAST_BAR, min(MOST_BAR, width - fixed - names - 1))


def _earned(shown: Snapshot, group: Sequence[Worker], width: int, style: str = "") -> Iterator[Piece]:
    """What they did, together."""
    speed = sum(each.lane.tokens_per_second for each in group)
    yield Piece(f"{speed:>9,.0f}{sum(each.answers for each in group):>9,}", style)
    if shown.purse is not None and not _narrow(width):
        yield Piece(f"{sum(each.usd for each in group):>9,.2f}{sum(each.leased for each in group):>9,.2f}", style)
