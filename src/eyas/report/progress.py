"""What a person sees of a run: one plain line every few seconds, and a table at the end. Text only, no control codes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from eyas.ledger import usd
from eyas.report import who, workers
from eyas.report.columns import columns, plain
from eyas.report.end import End, words
from eyas.report.fit import fit
from eyas.report.habits import sentences
from eyas.state import State
from eyas.types import STRICT, Verdict

__all__ = ["Line", "columns", "plain", "table"]

ENDS = ("partial", "refused", "failed", "unknown", "skipped", "pending")
"""Columns of a run's table that mostly hold zeros."""
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

    def tick(self, state: State, in_flight: int, last_error: str, end: End | None = None) -> None:
        """Time passed; `end` is when it will be over, where that is known."""
        now = self.clock()
        if now < self._next:
            return
        tokens = sum(dataset.quota.kept for dataset in state.datasets.values())
        rate = (tokens - self._tokens) / (now - self._when) if self._when else 0.0
        self._next, self._tokens, self._when = now + self.every, tokens, now
        width = shutil.get_terminal_size().columns - 1 if self.out.isatty() else 0
        text = _line(state, in_flight, (tokens, rate), width, words(end))
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
    others = sum(ended[v] for v in (Verdict.REFUSED, Verdict.FAILED, Verdict.UNKNOWN))
    full = (
        f"{ended[Verdict.DONE]}/{works} done, {ended[Verdict.PARTIAL]} partial, {others} failed | {in_flight} in flight | "
        f"{tokens[0]:,} tokens, {tokens[1]:,.0f}/s"
    )
    end = f" | {end}" if end else ""
    by = who.words(state)
    by = f" | {by}" if by else ""
    failed = f", {others} failed" if others else ""
    head = f"{ended[Verdict.DONE] + ended[Verdict.PARTIAL]}/{works} answered{failed} | {in_flight} in flight"
    rate = f"{head} | {tokens[1]:,.0f} tokens/s"
    if who.free(state):
        forms, least = (full + by + end, full + end, rate + end, head + end, head), head
    else:
        spent, more = _spent(state)
        dollars = full + f" | {spent}{more}"
        forms = (
            dollars + by + end,
            dollars + end,
            f"{rate} | {spent}{end}",
            f"{head} | {spent}{end}",
            f"{head} | {spent}",
        )
        least = spent
    return next((form for form in forms if not width or len(form) <= width), least)


def _spent(state: State) -> tuple[str, str]:
    """Dollars spent and unknown, and after that what is reserved."""
    money = state.money
    cap = "" if money.cap is None else f" of ${usd(money.cap):.2f}"
    unknown = f" + ${usd(money.unknown):.2f} unknown" if money.unknown else ""
    return f"${usd(money.settled):.2f}{cap} spent{unknown}", f", ${usd(money.reserved):.2f} reserved"


def table(status: dict[str, Any], width: int = 0) -> str:
    """The end of a run, set by set, from the figures of `eyas status --json`.

    Where the terminal is narrower (`width`; 0: it is not), columns of zeros are left out.
    """
    money, length = status["money"], status["length"]
    free = money["cap"] is None and not (money["settled"] or money["reserved"] or money["unknown"])
    labels = ", ".join(f"{name} {count}" for name, count in status["labels"].items()) or "none yet"
    warning = "; raise max_tokens" if length["share"] > MOST_LENGTH else ""
    cost = "" if free else f", ${length['usd']:.4f}"
    return "\n".join(
        (
            *_sets(status["datasets"], width, free=free),
            *(() if free else (_money(money),)),
            *who.table(status),
            *workers.table(status),
            f"cut at max_tokens: {length['answers']} answers ({length['share']:.1%}){cost}{warning}",
            f"labels (provisional): {labels}",
            *(f"habits: {plain(line, 240)}" for line in sentences(status["habits"])),
            *(f"alarm: {plain(alarm, 240)}" for alarm in status["alarms"]),
            _answers(status) if free else _yield(status["yield"]),
        )
    )


def _yield(paid: dict[str, Any]) -> str:
    if not paid["paid_usd"]:
        return "yield: nothing is paid yet"
    share = paid["exported_usd"] / paid["paid_usd"]
    return f"yield: {share:.1%} of the dollars paid are answers whose ids may be exported (strict)"


def _answers(status: dict[str, Any]) -> str:
    """The yield of a run that costs nothing."""
    answers = sum(each["done"] + each["partial"] for each in status["datasets"].values())
    if not answers:
        return "yield: no answer is there yet"
    strict = sum(status["labels"].get(label.value, 0) for label in STRICT)
    return f"yield: {strict / answers:.1%} of the answers have ids that may be exported (strict)"


def _sets(datasets: dict[str, Any], width: int, *, free: bool) -> list[str]:
    head = ["set", "prompts", "done", "partial", "refused", "failed", "unknown", "skipped", "pending", "tokens", "usd"]
    rows = [
        [name, *(str(d[key]) for key in head[1:-2]), f"{d['output_tokens']:,}", f"{d['usd']:.4f}"]
        for name, d in datasets.items()
    ]
    if free:
        head, rows = head[:-1], [row[:-1] for row in rows]
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
