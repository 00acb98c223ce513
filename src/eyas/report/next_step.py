"""What to do after a plan, in one sentence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eyas.config import RunConfig

Figures = Mapping[str, Any]
_MODES = {
    ("strict", "metered"): '; with [budget] mode = "metered" it would take less time',
    ("metered", "strict"): '; with [budget] mode = "strict" it would hardly take longer, and could not pass the cap',
}


def next_step(figures: Figures, config: RunConfig, run_toml: Path, plan: Path | None) -> str:
    """The command to type next, or what to change first.

    Args:
        figures: those of `eyas plan --json`.
        config: of that RUN.toml.
        run_toml: as the user named it.
        plan: where the plan was written, if it was.
    """
    if not figures["total"]["answers"]:
        return f"`eyas export {config.dir} --out rows` writes what is there"
    if "source" in figures.get("local", ()):
        return _own(figures, run_toml, plan)
    if not figures["fits"]:
        return f"{_change(figures, config)}, then `eyas plan {run_toml}` again"
    run = f"`eyas run {plan or run_toml}`"
    if any(each["length"]["source"] == "prior" for each in figures["datasets"].values()):
        return f"`eyas run {run_toml} --limit 20` asks a first few; `eyas plan {run_toml}` then goes by their lengths"
    return run + _MODES.get((figures["mode"], figures["advised_mode"]), "")


def _own(figures: Figures, run_toml: Path, plan: Path | None) -> str:
    """After a plan for servers of one's own, where a first few answers cost nothing but a little time."""
    if figures["local"]["source"] == "unknown":
        return f"`eyas plan {run_toml} --pilot 50` asks a first few, and then knows how long the rest takes"
    return f"`eyas run {plan or run_toml}`"


def _change(figures: Figures, config: RunConfig) -> str:
    """What makes it fit."""
    chosen = [each["output_tokens"] for each in figures["scenarios"] if each["chosen"]]
    quota = chosen[0] if chosen else figures["largest_output_tokens"]
    if not quota:
        return "raise [budget] usd or the key's limit"
    if figures["quotas"] == "several":
        return "lower the quotas in RUN.toml, or raise [budget] usd"
    instead = " in place of total_output_tokens" if config.budget.total_output_tokens else ""
    return f"set [budget] output_tokens = {quota:_}{instead}"
