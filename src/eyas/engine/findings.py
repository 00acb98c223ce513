"""What a check of `eyas doctor` found, in one shape; and what it makes of a run directory and of prompts. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import SecretStr

from eyas.config import RunConfig
from eyas.engine.inputs import Inputs
from eyas.report.summary import status
from eyas.report.who import free
from eyas.state import State


class Standing(StrEnum):
    """How a check came out: FAIL stops a run or makes it worthless, WARN may."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Trouble(StrEnum):
    """What a failure is about: as which kind of error `run` would end with it."""

    USAGE = "usage"
    KEY = "key"
    STORAGE = "storage"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, and what to do about it (empty where nothing is to do, or `says` has it)."""

    name: str
    standing: Standing
    says: str
    remedy: str = ""
    trouble: Trouble = Trouble.USAGE


Found = Finding | Iterable[Finding] | None
"""What a check gives back."""

Check = Callable[[], Found | Awaitable[Found]]


def run_directory(config: RunConfig, state: State, *, running: bool) -> list[Finding]:
    """Where the run stands that the directory holds, and whether RUN.toml still means the same one."""
    figures = status(state, running=running)
    sets, money = figures["datasets"].values(), figures["money"]
    answers = sum(each["done"] + each["partial"] for each in sets)
    spent = "" if free(state) else f", ${money['settled']:.2f} spent"
    says = f"{config.dir}: {figures['state']}, {answers:,} of {sum(each['prompts'] for each in sets):,} answered{spent}"
    found = [Finding("run directory", Standing.OK, says)]
    if running:
        found = [
            Finding("run directory", Standing.WARN, f"{says}; a process holds it", "wait for it, or press ^C there")
        ]
    if state.model not in ("", config.target.model):
        wrong = f"{config.dir} holds answers of {state.model}, RUN.toml asks {config.target.model}"
        found = [Finding("run directory", Standing.FAIL, wrong, "give it another [run] dir")]
    if money["unknown"]:
        held = f"${money['unknown']:.4f} is held for outcomes that are not known"
        found.append(Finding("run directory", Standing.WARN, held, f"eyas reconcile {config.dir}"))
    return found


def prompts(inputs: Inputs) -> Finding:
    """What the sources hold."""
    tokens = sum(inputs.counts.values())
    says = f"{len(inputs.prompts):,} prompts of {tokens:,} tokens in all"
    if inputs.duplicates:
        says += f"; {inputs.duplicates:,} duplicates count once"
    if not inputs.quarantined:
        return Finding("prompts", Standing.OK, says)
    first = inputs.quarantined[0]
    return Finding(
        "prompts",
        Standing.WARN,
        f"{says}; {len(inputs.quarantined):,} rows cannot be asked; the first, {first.file} line {first.line}: {first.reason}",
    )


def without(key: SecretStr, finding: Finding) -> Finding:
    """The finding with the key struck out, should any message hold it."""
    secret = key.get_secret_value()
    if not secret:
        return finding
    return replace(finding, says=finding.says.replace(secret, "[key]"), remedy=finding.remedy.replace(secret, "[key]"))
