"""Completion on TAB: what is offered at each place of a line, in each shell, quietly and without what is heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.cli import eyas
from eyas.cli.declared.tools import SHELLS
from eyas.cli.shells import Bash, script
from eyas.journal import glance
from eyas.types import Record
from tests import exportkit

HEAVY = ("pydantic", "numpy", "rich", "asyncio", "httptools", "tiktoken", "uvloop", "jinja2")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, answer: Callable[..., Record], kimi_folder: Path) -> Path:
    """A folder with runs/a, a run of twelve answers, a RUN.toml that names it, and files of other kinds."""
    folder = tmp_path_factory.mktemp("place")
    exportkit.write_run(folder / "runs" / "a", kimi_folder, exportkit.good(answer, range(12)))
    (folder / "runs" / "other").mkdir()
    sets = "".join(f'[[datasets]]\nname = "{name}"\nsource = "x.jsonl"\n' for name in ("B3", "B4"))
    (folder / "RUN.toml").write_text(f'[run]\ndir = "runs/a"\n{sets}')
    (folder / "plan.json").write_text("{}")
    (folder / "broken.toml").write_text("[[[")
    return folder


def offered(folder: Path, line: str, shell: str = "bash") -> list[str]:
    """What a process answers to a shell whose line ends at the cursor; nothing on stderr, whatever the line."""
    words = line.split(" ")
    lines = {"EYAS_LINE": line, "COMP_WORDS": line, "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - 1)}
    ended = subprocess.run([sys.executable, "-m", "eyas"], cwd=folder, capture_output=True, text=True, check=False,
                           env={**os.environ, **lines, "_EYAS_COMPLETE": f"{shell}_complete"})  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("eyas sta", ["plain,status"]),
        ("eyas status ", ["plain,runs/a"]),
        ("eyas status r", ["plain,runs/a"]),
        ("eyas status ./runs/", ["plain,./runs/a"]),
        ("eyas status nowhere", ["dir,nowhere"]),
        ("eyas plan R", ["plain,RUN.toml"]),
        ("eyas run pl", ["plain,plan.json"]),
        ("eyas run RUN.toml --dataset ", ["plain,B3", "plain,B4"]),
        ("eyas run RUN.toml --dataset=B", ["plain,B3", "plain,B4"]),
        ("eyas import runs/a rows.jsonl --dataset B4", ["plain,B4"]),
        ("eyas import r", ["plain,runs/a"]),
        ("eyas init some", ["file,some"]),
        ("eyas export runs/a --format p", ["plain,parquet"]),
        ("eyas export runs/a --dr", ["plain,--draft-vocab"]),
        ("eyas show runs/a B3/000000000000000a", ["plain,B3/000000000000000a"]),
        ("eyas show runs/a B3/000000000000000a/t0", ["plain,B3/000000000000000a"]),
        ("eyas show broken.toml B", []),
        ("eyas tune runs/a in", ["open,in_flight="]),
        ("eyas tune runs/a drop=", ["plain,p"]),
        ("eyas retry runs/a --where fin", ["open,finish=", "plain,finish=stop", "plain,finish=tool_calls"]),
        ("eyas retry runs/a --where finish=sto", ["plain,stop"]),
        ("eyas retry runs/a --where finish!=sto", ["plain,stop"]),
        ('eyas retry runs/a --where "finish=stop and dataset=', ["plain,finish=stop and dataset=B3"]),
        ("eyas show runs/a --where dataset=B", ["plain,B3", "plain,B4"]),
        ("eyas rehearse --scenario fo", ["plain,founding", "plain,founding-fast"]),
        ("eyas completion f", ["plain,fish"]),
        ('eyas show "', ["plain,runs/a"]),
    ],
)
def test_bash_is_offered(place: Path, line: str, some: list[str]) -> None:
    """The beginning of what is offered; of a value behind `=` only the value, for bash puts it there."""
    found = offered(place, line)
    assert found[: len(some)] == some
    assert some or not found


def test_other_shells_are_offered_whole_words(place: Path) -> None:
    """Zsh and fish replace the whole word, what stands before `=` included."""
    assert "tune" in " ".join(offered(place, "eyas tu", "zsh"))
    assert any("drop=p" in line for line in offered(place, "eyas tune runs/a dr", "zsh"))
    assert any("drop=p" in line for line in offered(place, "eyas tune runs/a dr", "fish"))


def test_a_completion_loads_nothing_heavy(place: Path) -> None:
    """Not even one that looks into the journal."""
    code = (
        "import json, sys\nfrom eyas.cli import main\ntry:\n    main()\n"
        "except SystemExit:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    variables = {"EYAS_LINE": "eyas show runs/a B", "_EYAS_COMPLETE": "bash_complete"}
    ended = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True, check=True,
                           env={**os.environ, **variables})  # fmt: skip
    assert "B3/0000000000000000" in ended.stdout
    assert not set(json.loads(ended.stderr)).intersection(HEAVY)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_each_shell_asks_eyas(shell: str) -> None:
    """It names the variable that eyas looks for, and the command that it completes."""
    written = script(shell, eyas)
    assert f"_EYAS_COMPLETE={shell}_complete" in written
    assert "eyas" in written.splitlines()[-1] + written.splitlines()[0] + written.splitlines()[-2]


def test_bash_takes_the_script(place: Path) -> None:
    """A bash that has read it offers the values behind `=` alone."""
    ask = 'COMP_LINE="eyas tune runs/a drop="; COMP_POINT=${#COMP_LINE}; _eyas_completion eyas; echo "${COMPREPLY[@]}"'
    folder = Path(sys.executable).parent
    ended = subprocess.run(["/bin/bash", "-c", f"compopt() {{ :; }}\n{script('bash', eyas)}\n{ask}"], cwd=place, check=True,
                           capture_output=True, text=True, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})  # fmt: skip
    assert ended.stdout.strip() == "p"


@settings(max_examples=60, deadline=None)
@given(line=st.text(st.sampled_from("eyas -=:/'\"\\ shortw,"), max_size=30))
def test_any_line_is_cut_into_words(line: str) -> None:
    """Whatever stands on the line, it is cut or nothing is offered: the rest of it is click's."""
    os.environ["EYAS_LINE"] = f"eyas {line}"
    try:
        words, begun = Bash(eyas, {}, "eyas", "_EYAS_COMPLETE").get_completion_args()
    finally:
        del os.environ["EYAS_LINE"]
    assert all(isinstance(each, str) for each in (*words, begun))
    assert not line.endswith(" ") or begun == "" or any(sign in line for sign in "'\"\\")
    assert issubclass(Bash, ShellComplete)


def test_a_journal_that_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    """No journal, an empty one, one that is none: no name and no error."""
    assert glance.prompts(tmp_path) == []
    (tmp_path / "journal.db").write_bytes(b"")
    assert glance.tags(tmp_path) == []
    (tmp_path / "journal.db").write_bytes(b"no database at all" * 400)
    assert glance.providers(tmp_path) == []
