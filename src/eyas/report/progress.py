"""What a person sees of a run: one plain line every few seconds, and a table at the end. Text only, no control codes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from eyas.ledger import usd
from eyas.report.end import End, words
from eyas.report.fit import fit
from eyas.report.habits import sentences
from eyas.state import State
from eyas.types import Verdict

ENDS = ("partial", "refused", "failed", "unknown", "skipped", "pending")
"""Columns of a run's table that mostly hold zeros."""
MOST_LENGTH = 0.02
"""The share of answers cut at max_tokens above which there is a warning."""


def _unknown() -> End | None:
    """Nobody knows when it ends."""
    return None


@dataclass(slots=True)
class Line:
    """Writes a line about the run to a stream, at most every `every` seconds."""

    out: TextIO
    every: float = 10.0
    clock: Callable[[], float] = time.monotonic
    _next: float = 0.0
    _tokens: int = 0
    _when: float = 0.0
    _error: str = ""

    def tick(self, state: State, in_flight: int, last_error: str, predict: Callable[[], End | None] = _unknown) -> None:
        """Time passed; `predict` is called only when a line is due."""
        now = self.clock()
        if now < self._next:
            return
        tokens = sum(dataset.quota.kept for dataset in state.datasets.values())
        rate = (tokens - self._tokens) / (now - self._when) if self._when else 0.0
        self._next, self._tokens, self._when = now + self.every, tokens, now
        width = shutil.get_terminal_size().columns - 1 if self.out.isatty() else 0
        text = _line(state, in_flight, (tokens, rate), width, words(predict()))
        error = f" | last: {plain(last_error, 80)}" if last_error else ""
        if width and error and len(text) + len(error) > width:
            # A line of its own, once: the figures go before it.
            error = "" if last_error == self._error else "\n" + fit(f"  last: {plain(last_error, 160)}", width)
        self._error = last_error
        print(text + error, file=self.out)
        self.out.flush()


def _line(state: State, in_flight: int, tokens: tuple[int, float], width: int, end: str = "") -> str:
    """The line, as full as `width` columns take (0: they take all). `tokens` are those kept, and those a second.

    `end` says when it will be over, where that is known.
    """
    ended = {verdict: sum(d.ended.get(verdict, 0) for d in state.datasets.values()) for verdict in Verdict}
    works = sum(dataset.works for dataset in state.datasets.values())
    money = state.money
    cap = "" if money.cap is None else f" of ${usd(money.cap):.2f}"
    unknown = f" + ${usd(money.unknown):.2f} unknown" if money.unknown else ""
    others = sum(ended[v] for v in (Verdict.REFUSED, Verdict.FAILED, Verdict.UNKNOWN))
    full = (
        f"{ended[Verdict.DONE]}/{works} done, {ended[Verdict.PARTIAL]} partial, {others} failed | {in_flight} in flight | "
        f"{tokens[0]:,} tokens, {tokens[1]:,.0f}/s | ${usd(money.settled):.2f}{cap} spent{unknown}, "
        f"${usd(money.reserved):.2f} reserved"
    )
    end = f" | {end}" if end else ""
    failed = f", {others} failed" if others else ""
    head = f"{ended[Verdict.DONE] + ended[Verdict.PARTIAL]}/{works} answered{failed} | {in_flight} in flight"
    spent = f"${usd(money.settled):.2f}{cap} spent"
    short = f"{head} | {tokens[1]:,.0f} tokens/s | {spent}{unknown}"
    forms = (full + end, short + end, f"{head} | {spent}{end}", f"{head} | {spent}", spent)
    return next((form for form in forms if not width or len(form) <= width), spent)


def table(status: dict[str, Any], width: int = 0) -> str:
    """The end of a run, set by set, from the figures of `eyas status --json`.

    Where the terminal is narrower (`width`; 0: it is not), columns of zeros are left out.
    """
    money = status["money"]
    labels = ", ".join(f"{name} {count}" for name, count in status["labels"].items()) or "none yet"
    paid = status["yield"]
    share = paid["exported_usd"] / paid["paid_usd"] if paid["paid_usd"] else 0.0
    length = status["length"]
    warning = "; raise max_tokens" if length["share"] > MOST_LENGTH else ""
    return "\n".join(
        (
            *_sets(status["datasets"], width),
            _money(money),
            f"cut at max_tokens: {length['answers']} answers ({length['share']:.1%}), ${length['usd']:.4f}{warning}",
            f"labels (provisional): {labels}",
            *(f"habits: {plain(line, 240)}" for line in sentences(status["habits"])),
            *(f"alarm: {plain(alarm, 240)}" for alarm in status["alarms"]),
            f"yield: {share:.1%} of the dollars paid are answers whose ids may be exported (strict)"
            if paid["paid_usd"]
            else "yield: nothing is paid yet",
        )
    )


def _sets(datasets: dict[str, Any], width: int) -> list[str]:
    head = ["set", "prompts", "done", "partial", "refused", "failed", "unknown", "skipped", "pending", "tokens", "usd"]
    rows = [
        [name, *(str(d[key]) for key in head[1:-2]), f"{d['output_tokens']:,}", f"{d['usd']:.4f}"]
        for name, d in datasets.items()
    ]
    lines = columns([tuple(row) for row in (head, *rows)])
    if not width or len(lines[0]) <= width:
        return lines
    kept = [place for place, key in enumerate(head) if key not in ENDS or any(row[place] != "0" for row in rows)]
    return columns([tuple(row[place] for place in kept) for row in (head, *rows)])


def _money(money: dict[str, Any]) -> str:
    cap = "no cap" if money["cap"] is None else f"cap ${money['cap']:.2f}"
    reserved = f"; ${money['reserved']:.4f} reserved" if money["reserved"] else ""
    spent = f"${money['settled']:.4f} spent, of it ${money['wasted']:.4f} wasted"
    return f"money: {spent}; ${money['unknown']:.4f} unknown{reserved}; {cap}"


def columns(rows: list[tuple[str, ...]], left: tuple[int, ...] = (0,)) -> list[str]:
    """Rows as aligned text; the columns named in `left` (negative from the end) to the left, the others to the right."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    sides = [str.ljust if i in left or i - len(widths) in left else str.rjust for i in range(len(widths))]
    return [
        "  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)).rstrip()
        for row in rows
    ]


def plain(text: str, most: int) -> str:
    """Text of others as one line that cannot move the cursor or colour the screen."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"
