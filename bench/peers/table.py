"""Results as a Markdown table, one for each case, and the machine that they were made on (pure)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from peers import figures, tools
from peers.figures import Trial

_Column = tuple[str, str, Callable[[float], str]]


def _plain(value: float) -> str:
    return f"{value:,.0f}"


def _fine(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


COLUMNS: tuple[_Column, ...] = (
    ("answers/s", "rate", _fine),
    ("of ideal", "share", _percent),
    ("whole run", "whole", _percent),
    ("CPU ms/answer", "cpu_ms", _fine),
    ("CPU µs/piece", "cpu_us", _fine),
    ("peak in flight", "peak", _plain),
    ("RSS MB", "rss_mb", _plain),
    ("lost", "lost", _plain),
    ("re-sent", "resent", _plain),
    ("to journal p99 ms", "journal_ms", _plain),
)


def cell(trials: Sequence[Trial], name: str, words: Callable[[float], str]) -> str:
    """Median, and the range where the runs differ."""
    found = figures.spread(trials, name)
    if found is None:
        return "-"
    middle, least, most = map(words, found)
    return middle if least == most else f"{middle} ({least} to {most})"


def remark(trials: Sequence[Trial]) -> str:
    """What a reader must know of a row."""
    said = [trial.error for trial in trials if trial.error][:1]
    cut = [trial for trial in trials if trial.cut]
    if cut:
        said.append(
            f"cut off after {cut[0].cut:.0f} s with {cut[0].answers or 0} answers ({len(cut)} of {len(trials)} runs)"
        )
    failed = sum(1 for trial in trials if trial.exit and not trial.cut)
    if failed:
        said.append(f"ended with an error in {failed} of {len(trials)} runs")
    late = figures.spread(trials, "late")
    if late and late[0] > 0.01:
        said.append(f"the server wrote {_percent(late[0])} of its pieces over 20 ms late")
    return "; ".join(said)


def markdown(case_name: str, ideal: str, trials: Sequence[Trial], runs: int) -> str:
    """One case: a row for each tool in the order of the trials; columns that no row has are left out."""
    names = list(dict.fromkeys(trial.tool for trial in trials))
    rows = {name: [trial for trial in trials if trial.tool == name] for name in names}
    columns = [column for column in COLUMNS if any(figures.spread(rows[name], column[1]) for name in names)]
    lines = [
        f"**{case_name}** ({ideal}; median of {runs} runs, range in brackets)",
        "",
        "| tool | keeps | " + " | ".join(head for head, _, _ in columns) + " | |",
        "|---|---|" + "---:|" * len(columns) + "---|",
    ]
    for name, own in rows.items():
        tool = tools.TOOLS[name]
        cells = [cell(own, field, words) for _, field, words in columns]
        lines.append(f"| {name} {tools.version(tool)} | {tool.keeps} | " + " | ".join(cells) + f" | {remark(own)} |")
    others = figures.spread(trials, "others")
    if others:
        lines += ["", f"Other programs took {others[0]:.2f} cores meanwhile (median; {others[2]:.2f} at most)."]
    return "\n".join(lines) + "\n"


def machine(about: dict[str, Any]) -> str:
    """The line that says where it was measured."""
    return ", ".join(f"{value}" for value in about.values())
