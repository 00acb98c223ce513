"""The lines of a live view that are not tables: title, money, speed, errors, labels, yield, the last errors. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from eyas.report.end import words
from eyas.report.live.frame import Line, Piece, cell, inert
from eyas.report.live.snapshot import Snapshot
from eyas.types import STRICT, StopReason

LABEL = 9
"""Columns before the figures of a line."""
WIDE = 100
"""Columns from which lines say more."""
MOST_CUT = 0.02
"""The share of answers cut at max_tokens from which it is worth a look."""
LATE, TOO_LATE = 1.0, 5.0
"""Seconds that the journal may be behind until it is worth a look, and until it is bad."""
DIM, GOOD, LOOK, BAD, MAIN, FLIES = "dim", "green", "yellow", "red", "bold", "cyan"
GO_ON = "`eyas run RUN.toml` goes on"
_ENDED = {
    StopReason.CAP: ("at its cap", LOOK, "raise [budget] usd to go on"),
    StopReason.KEY: ("stopped by key or credits", BAD, GO_ON),
    StopReason.ALARM: ("stopped by an alarm", BAD, ""),
    StopReason.INTERRUPTED: ("interrupted", LOOK, GO_ON),
    StopReason.STORAGE: ("stopped by the disk", BAD, GO_ON),
    StopReason.ERROR: ("stopped by an error", BAD, GO_ON),
}
"""How a session ended in words, their style, and what to do next."""


class Glyphs(NamedTuple):
    """What bars are drawn with: what is there, in flight, unknown, set apart for workers, and not there yet."""

    there: str
    flying: str
    unknown: str
    apart: str
    rest: str


UNICODE, ASCII = Glyphs("█", "▒", "▓", "░", "·"), Glyphs("#", "+", "?", "-", ".")


def label(name: str) -> Piece:
    """What a line is about."""
    return Piece(f" {name}".ljust(LABEL), DIM)


def bar(width: int, parts: Sequence[tuple[float, str, str]], total: float, rest: str) -> Iterator[Piece]:
    """Amounts side by side, each with its glyph and style, and what they lack of the total; exactly `width` columns."""
    before, so_far = 0, 0.0
    for amount, glyph, style in parts:
        so_far += amount
        edge = min(width, round(width * so_far / total)) if total > 0 else 0
        yield Piece(glyph * (edge - before), style)
        before = edge
    yield Piece(rest * (width - before), DIM)


def between(left: Line, right: Line, width: int) -> Line:
    """Two texts at both ends of a line; the right one only if there is room for both."""
    used, wanted = (sum(len(piece.text) for piece in line) for line in (left, right))
    room = width - used - wanted - 1
    return (*left, Piece(" " * room), *right) if room >= 2 else left


def packed(first: Line, groups: Sequence[Line], width: int, gap: str = "   ") -> Line:
    """Groups of pieces behind a first one, those left out for which there is no room."""
    line, used = list(first), sum(len(piece.text) for piece in first)
    for group in groups:
        wanted = sum(len(piece.text) for piece in group) + (len(gap) if len(line) > len(first) else 0)
        if used + wanted < width:
            line += (*((Piece(gap),) if len(line) > len(first) else ()), *group)
            used += wanted
    return tuple(line)


def fitting(forms: Sequence[Line], width: int) -> Line:
    """The first of several forms of a line that has room; else the last."""
    return next((form for form in forms if sum(len(piece.text) for piece in form) < width), forms[-1])


def clock(seconds: float) -> str:
    """A time that runs: 0:07, 12:31, 1:02:31."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def ago(seconds: float) -> str:
    """How long ago, in at most six characters."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def short_time(seconds: float) -> str:
    """A delay: 9 ms, 0.8 s, 12 s."""
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def top(shown: Snapshot, width: int, glyphs: Glyphs) -> list[Line]:
    """What stands first: title, money, speed, errors."""
    return [_title(shown, width), *_money(shown, width, glyphs), _speed(shown, width), _errors(shown, width)]


def _title(shown: Snapshot, width: int) -> Line:
    state, style, next_step = _standing(shown)
    right = (Piece(words(shown.end), MAIN),) if shown.end else (Piece(next_step, DIM),)
    name = inert(shown.model)
    if len(name) + len(state) + len(right[0].text) + 6 > width:
        name = name.rpartition("/")[2]
    return between((Piece(f" {name}", MAIN), Piece(f"  {state}", style)), right, width)


def _standing(shown: Snapshot) -> tuple[str, str, str]:
    """Where the run stands in words, their style, and what to do next."""
    time = clock(shown.seconds)
    if shown.running and shown.stopping:
        flying = shown.pulse.in_flight if shown.pulse else 0
        return f"ending {time}, {flying:,} in flight may land", LOOK, ""
    if shown.running:
        return f"running {time}", GOOD, "" if shown.pulse else "its process shows nothing of itself"
    if shown.standing == "complete":
        return f"complete, took {time}", GOOD, ""
    if shown.reason is None:
        return "not running", BAD, GO_ON if shown.sessions else "it has not begun"
    how, style, next_step = _ENDED.get(shown.reason, ("ended", LOOK, "`eyas status RUNDIR` says what is left"))
    return f"{how}, after {time}", style, next_step


def _money(shown: Snapshot, width: int, glyphs: Glyphs) -> Iterator[Line]:
    purse = shown.purse
    if purse is None:
        return
    parts = [
        (purse.settled, glyphs.there, GOOD, "settled"),
        (purse.reserved, glyphs.flying, FLIES, "in flight"),
        (purse.unknown, glyphs.unknown, LOOK, "unknown"),
    ]
    if shown.crew:
        parts.append((purse.leased, glyphs.apart, FLIES, "apart"))
    if purse.cap is not None:
        amounts = [(amount, glyph, style) for amount, glyph, style, _ in parts]
        yield (label("money"), *bar(width - LABEL - 1, amounts, purse.cap, glyphs.rest))
    first = label("money" if purse.cap is None else "")
    last = Piece("no cap" if purse.cap is None else f"of ${purse.cap:,.2f}")

    def form(gap: str, *, named: bool = True, first: Piece = first) -> Line:
        told = [
            (
                Piece(f"{glyph} ", style),
                Piece(f"${amount:,.2f}", MAIN),
                Piece(f" {name}{gap}" if named else gap),
            )
            for amount, glyph, style, name in parts
        ]
        return (first, *(piece for group in told for piece in group), last)

    # Four amounts need the room below the label, too.
    near = () if purse.cap is None else (form("  ", first=Piece(" ")), form(" ", first=Piece(" ")))
    yield fitting((form("   "), form("  "), *near, form("  ", named=False)), width)


def _speed(shown: Snapshot, width: int) -> Line:
    rate = "-" if shown.tokens_per_second is None else f"{shown.tokens_per_second:,.0f}"
    over = not shown.running and shown.seconds
    groups: list[Line] = [(Piece(f"{rate:>7}", MAIN), Piece(f" tokens/s{' on average' if over else ''}"))]
    if shown.pulse is not None:
        groups.append((Piece(f"{shown.pulse.in_flight:>5,}", MAIN), Piece(f"/{shown.pulse.limit:,} in flight")))
    if shown.first is not None:
        p50, p95 = short_time(shown.first.p50), short_time(shown.first.p95)
        name = "first token p50 " if width >= WIDE else "first token "
        groups.append((Piece(name), Piece(p50, MAIN), Piece(f", p95 {p95}")))
    if width >= WIDE:
        groups.append((Piece(f"{shown.tokens:,} tokens kept"),))
    return packed((label("speed"),), groups, width, "   " if width >= WIDE else "  ")


def _errors(shown: Snapshot, width: int) -> Line:
    groups: list[Line] = [
        (Piece(f"{shown.failed:>4}/min", LOOK if shown.failed else ""),),
        (Piece("429, 503 "), Piece(f"{shown.refused:>4}/min", LOOK if shown.refused else "")),
    ]
    if shown.pulse is not None:
        lag = shown.pulse.lag
        style = BAD if lag >= TOO_LATE else LOOK if lag >= LATE else ""
        groups.append((Piece("journal "), Piece(f"{short_time(lag):>6}", style), Piece(" behind")))
        groups.append((Piece(f"commit {short_time(shown.pulse.commit):>6}"),))
    return packed((label("errors"),), groups, width)


def worth(shown: Snapshot, width: int) -> list[Line]:
    """What the answers are worth: labels, yield, and the last alarm if there is one."""
    alarms = [(label("alarm"), Piece(cell(alarm, width - LABEL - 1), BAD)) for alarm in shown.alarms]
    return [_labels(shown, width), _yield(shown, width), *alarms]


def _labels(shown: Snapshot, width: int) -> Line:
    """Shares of the answers that have a label, those that are not strict as one where there is little room."""
    total = sum(shown.labels.values())
    if not total:
        return (label("labels"), Piece("none yet", DIM))
    strict = {name.value: count for name, count in shown.labels.items() if name in STRICT}
    others = {name.value: count for name, count in shown.labels.items() if name not in STRICT}
    lost = {"not strict": sum(others.values())} if others else {}
    kept = {"strict": sum(strict.values())}

    def form(strict: Mapping[str, int], others: Mapping[str, int]) -> Line:
        line = [label("labels")]
        for counts, style in ((strict, ""), (others, LOOK)):
            for name, count in counts.items():
                line += (Piece(f"{name} ", style), Piece(f"{count / total:.0%}  ", MAIN))
        return tuple(line)

    return fitting((form(strict, others), form(strict, lost), form(kept, lost)), width)


def _yield(shown: Snapshot, width: int) -> Line:
    share = shown.share
    if share.strict is None:
        return (label("yield"), Piece("no answer is there yet", DIM))
    paid = shown.purse is not None and share.wasted is not None
    strict = f" of the {'dollars' if paid else 'answers'} are strict" if width >= WIDE else " strict"
    groups: list[Line] = [(Piece(f"{share.strict:.1%}", MAIN), Piece(strict))]
    if shown.purse is not None and share.wasted is not None:
        groups.append((Piece(f"waste {share.wasted:.1%}, ${shown.purse.wasted:,.2f}"),))
    if share.cut is not None:
        groups.append((Piece(f"cut at max_tokens {share.cut:.1%}", LOOK if share.cut > MOST_CUT else ""),))
    return packed((label("yield"),), groups, width)


def errors(shown: Snapshot, most: int, width: int) -> Iterator[Line]:
    """The last errors: how long ago (before the end, of a run that is over), how often, where, and in words."""
    tags = max((len(inert(each.tag)) for each in shown.seen), default=0)
    room = min(tags, 28 if width >= WIDE else 18)
    for number, each in enumerate(shown.seen[:most]):
        head = f"{ago(shown.now - each.at):>6}  {f'{each.times:,}x':>6}  "
        kind = each.kind.value.replace("_", " ")
        left = max(0, width - LABEL - len(head) - room - 2 - len(kind) - 2 - 1)
        yield (
            label("" if number else "latest"),
            Piece(head, DIM),
            Piece(f"{cell(each.tag, room)}  "),
            Piece(f"{kind}: ", LOOK),
            Piece(cell(each.detail, left)),
        )
