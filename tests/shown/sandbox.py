"""The folder that the pages take for granted: prompts, a RUN.toml, and run directories of runs that have ended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eyas.records import Run
from eyas.types import Work

SETS = ("B3", "B4", "B5", "B6", "B7", "B8")
PROMPTS = 5
"""Rows of each prompt file."""
RUN_TOML = """\
[run]
dir = {dir}
[target]
model = "moonshotai/kimi-k2.5"
max_tokens = 100
[budget]
usd = 100.0
"""
DATASET = """\
[[datasets]]
name = "{name}"
source = "{source}"
"""
_FROZEN = "# frozen by eyas; relative paths start from "


def run_toml(folder: str = "run", datasets: Mapping[str, str] | None = None) -> str:
    """A RUN.toml with that run directory; without datasets it has the six sets."""
    sets = datasets or {name: f"prompts/{name.lower()}.jsonl" for name in SETS}
    head = RUN_TOML.format(dir=json.dumps(folder))
    return head + "".join(DATASET.format(name=name, source=source) for name, source in sets.items())


def write_prompts(folder: Path) -> None:
    """prompts/b3.jsonl to b8.jsonl."""
    (folder / "prompts").mkdir()
    for name in SETS:
        rows = [{"question": f"{name}: what is {n} + {n}?", "answer": str(2 * n)} for n in range(PROMPTS)]
        write_rows(folder / "prompts" / f"{name.lower()}.jsonl", rows)


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """A file of JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


@dataclass(frozen=True)
class Template:
    """A folder with a finished run, made once: `folder` holds `prompts` and the run directory `run`."""

    folder: Path

    def sandbox(self, folder: Path, runs: Sequence[str]) -> Path:
        """A fresh folder with prompts, RUN.toml, and a copy of the run under each of these names."""
        folder.mkdir()
        write_prompts(folder)
        (folder / "RUN.toml").write_text(run_toml(), encoding="utf-8")
        for name in runs:
            self.place(folder, name)
        return folder

    def place(self, folder: Path, name: str) -> None:
        """Copy the finished run to a run directory of that name, as if it had been made there."""
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.folder / "run", target)
        frozen = target / "run.toml"
        text = frozen.read_text(encoding="utf-8").partition("\n")[2]
        text = text.replace('dir = "run"', f"dir = {json.dumps(name)}")
        frozen.write_text(f"{_FROZEN}{json.dumps(str(folder.resolve()))}\n{text}", encoding="utf-8")


def works(folder: Path) -> list[Work]:
    """The works of a run, in a fixed order."""
    run = Run(folder)
    run.close()
    return sorted(run.state.works)
