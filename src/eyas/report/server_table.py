"""`eyas providers` of servers of the user's own, for people: who answers, with how much room, and why another does not. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eyas.report.columns import columns, plain
from eyas.report.fit import fit


def table(figures: Mapping[str, Any], width: int) -> str:
    """The figures of `eyas providers --json`, for a terminal of that many characters, at least 60."""
    width, rows = max(60, width), figures["endpoints"]
    ran = any("run" in row for row in rows)
    names = ("server", "context", "slots", *(("answers", "tokens") if ran else ()), "verdict")
    cells = [
        (
            plain(row["tag"], 40),
            _number(row["context"]),
            _number(row["slots"]),
            *((f"{row['run']['answers']:,}", f"{row['run']['output_tokens']:,}") if ran else ()),
            row["verdict"],
        )
        for row in rows
    ]
    lines = columns([names, *cells], left=(0, -1))
    head = f"{plain(figures['model'], 120)} at {figures['backend']}: servers of your own, no dollars"
    text = [*fit(head, width).split("\n"), "", lines[0]]
    for line, row in zip(lines[1:], rows, strict=True):
        why = [] if row["verdict"] == "use" else fit(f"    {plain(row['reason'], 400)}", width, "").split("\n")
        text += [line, *why]
    usable = sum(row["verdict"] == "use" for row in rows)
    last = f"{usable} of {len(rows)} can be asked now."
    if not usable:
        return "\n".join([*text, "", f"{last} A run would not start."])
    if usable < len(rows):
        last += " A run begins with those, and asks the others once they answer."
    last += " Whether ids come back and the tokenizer agrees, `eyas doctor RUN.toml` tries."
    return "\n".join([*text, "", fit(last, width, "")])


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
