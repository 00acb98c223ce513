"""What a person sees of a run: one plain line every few seconds, and a table at the end. Text only, no control codes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from eyas.ledger import usd
from eyas.report.habits import sentences
from eyas.state import State
from eyas.types import Verdict

MOST_LENGTH = 0.02
"""The share of answers cut at max_tokens above which there is a warning."""


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

    def tick(self, state: State, in_flight: int, last_error: str) -> None:
        """Time passed."""
        now = self.clock()
        if now < self._next:
            return
        tokens = sum(dataset.quota.kept for dataset in state.datasets.values())
        rate = (tokens - self._tokens) / (now - self._when) if self._when else 0.0
        self._next, self._tokens, self._when = now + self.every, tokens, now
        text = _line(state, in_flight, tokens, rate) + (f" | last: {plain(last_error, 80)}" if last_error else "")
        print(plain(text, shutil.get_terminal_size().columns - 1) if self.out.isatty() else text, file=self.out)
        self.out.flush()


def _line(state: State, in_flight: int, tokens: int, rate: float) -> str:
    ended = {verdict: sum(d.ended.get(verdict, 0) for d in state.datasets.values()) for verdict in Verdict}
    works = sum(dataset.works for dataset in state.datasets.values())
    money = state.money
    cap = "" if money.cap is None else f" of ${usd(money.cap):.2f}"
    unknown = f" + ${usd(money.unknown):.2f} unknown" if money.unknown else ""
    others = sum(ended[v] for v in (Verdict.REFUSED, Verdict.FAILED, Verdict.UNKNOWN))
    return (
        f"{ended[Verdict.DONE]}/{works} done, {ended[Verdict.PARTIAL]} partial, {others} failed | {in_flight} in flight | "
        f"{tokens:,} tokens, {rate:,.0f}/s | ${usd(money.settled):.2f}{cap} spent{unknown}, ${usd(money.reserved):.2f} reserved"
    )


def table(status: dict[str, Any]) -> str:
    """The end of a run, set by set, from the figures of `eyas status --json`."""
    head = ("set", "prompts", "done", "partial", "refused", "failed", "unknown", "skipped", "pending", "tokens", "usd")
    rows = [
        (name, *(str(d[key]) for key in head[1:-2]), f"{d['output_tokens']:,}", f"{d['usd']:.4f}")
        for name, d in status["datasets"].items()
    ]
    money = status["money"]
    labels = ", ".join(f"{name} {count}" for name, count in status["labels"].items()) or "none yet"
    paid = status["yield"]
    share = paid["exported_usd"] / paid["paid_usd"] if paid["paid_usd"] else 0.0
    length = status["length"]
    warning = "; raise max_tokens" if length["share"] > MOST_LENGTH else ""
    return "\n".join(
        (
            *columns([head, *rows]),
            _money(money),
            f"cut at max_tokens: {length['answers']} answers ({length['share']:.1%}), ${length['usd']:.4f}{warning}",
            f"labels (provisional): {labels}",
            *(f"habits: {plain(line, 240)}" for line in sentences(status["habits"])),
            *(f"alarm: {plain(alarm, 240)}" for alarm in status["alarms"]),
            f"yield: {share:.1%} of the dollars paid are answers whose ids may be exported (strict)",
        )
    )


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
