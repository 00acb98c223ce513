"""What the pages show is collected whole: each command is run or explained, each target, extra and script is there."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.shown import lines, pages
from tests.shown.explained import EXPLAINED, explained
from tests.shown.lines import Shown
from tests.shown.play import PLAYS

PAGES = [pages.page(name) for name in pages.names()]
COMMANDS = [each for page in PAGES for each in lines.commands(page)]
SPANS = [Shown(span.page, span.line, span.text) for page in PAGES for span in page.spans]
PROJECT = tomllib.loads((pages.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (pages.ROOT / "Makefile").read_text(encoding="utf-8")
PAGE = """\
# Head

Text with `eyas status RUNDIR` and ``a `tick` ``.

    $ eyas run RUN.toml --yes   # exit 3
    set  done
    B3      1
    $ eyas export run \\
    >   --out rows

```console
$ cat rows/README.md
eyas is no command here
```

    # RUN.toml
    [run]
    dir = "run"

    eyas init [SOURCE]
              [--yes]
    python - <<'E'
    print(1)
    E

!!! note
    eyas is text here: `make demo`.

```toml title="own.toml"
# eyas plan own.toml
```
"""


def test_a_page_is_read_whole() -> None:
    """Prompts, output, comments, lines that go on, files, notes: each is what it is to a reader."""
    page = pages.read("p.md", PAGE)
    shown = lines.commands(page)
    assert [(each.line, each.text, each.code, each.usage) for each in shown] == [
        (5, "eyas run RUN.toml --yes", 3, False),
        (8, "eyas export run --out rows", 0, False),
        (12, "cat rows/README.md", 0, False),
        (20, "eyas init [SOURCE] [--yes]", 0, True),
        (22, "python - <<'E'\nprint(1)\nE", 0, False),
    ]
    assert shown[0].output == ("set  done", "B3      1")
    assert [block.title for block in page.blocks if block.title] == ["RUN.toml", "own.toml"]
    assert [span.text for span in page.spans] == ["eyas status RUNDIR", "a `tick`", "make demo"]


def test_comments_of_settings_are_read() -> None:
    """What a RUN.toml says in its comments is a page too, on the same lines."""
    page = pages.commented("RUN.toml", "# Start it:\n#   vllm serve M\nx = 1  # see `eyas plan RUN.toml`\n")
    assert [(each.line, each.text) for each in lines.commands(page)] == [(2, "vllm serve M")]
    assert [(each.line, each.text) for each in page.spans] == [(3, "eyas plan RUN.toml")]


def test_an_open_block_is_an_error() -> None:
    """A fence that is never closed would hide the rest of the page."""
    with pytest.raises(AssertionError, match="line 2"):
        pages.read("p.md", "text\n```console\n$ eyas demo\n")


def test_every_command_is_run_or_explained() -> None:
    """No page shows a command that no test runs and the table does not explain."""
    unknown = [
        f"{each.where}: `{each.text}` is neither run nor explained: play it (tests/shown/play.py), or say in "
        "tests/shown/explained.py why it is not run and what is done instead"
        for each in COMMANDS
        if explained(each) is None and each.program not in PLAYS
    ]
    assert not unknown, "\n".join(unknown)


@pytest.mark.parametrize("start", EXPLAINED)
def test_the_table_explains_what_is_shown(start: str) -> None:
    """An entry that no page needs any more goes."""
    assert any(explained(each) == start for each in COMMANDS)


def test_targets_are_there() -> None:
    """Every `make TARGET` names a target of the Makefile."""
    targets = set(re.findall(r"^([a-z][\w-]*):", MAKEFILE, flags=re.MULTILINE))
    for each in (*COMMANDS, *SPANS):
        if each.text.startswith("make "):
            named = {word for word in each.text.split()[1:] if re.fullmatch(r"[a-z][\w-]*", word)}
            assert named <= targets, f"{each.where}: {each.text}: the Makefile has {', '.join(sorted(targets))}"


def test_extras_are_there() -> None:
    """Every extra that is installed is one of pyproject.toml."""
    extras = set(PROJECT["project"]["optional-dependencies"])
    for each in (*COMMANDS, *SPANS):
        for found in re.findall(r"(?:eyas|\.)\[([a-z,]+)\]", each.text) if "pip install" in each.text else ():
            assert set(found.split(",")) <= extras, f"{each.where}: {each.text}: there is {', '.join(sorted(extras))}"


SCRIPTS = [
    each
    for each in (*COMMANDS, *SPANS)
    if re.match(r"(?:python )?bench/\w+\.py\b", each.bare) and not each.bare.endswith("=")
]


@pytest.mark.parametrize(
    "shown", SCRIPTS, ids=lambda each: f"{each.where}-{each.bare.split('bench/')[1].split('.')[0]}"
)
def test_benchmarks_take_what_is_shown(shown: Shown) -> None:
    """A script that is named is there, and its help names every option shown."""
    path = pages.ROOT / re.findall(r"bench/\w+\.py", shown.text)[0]
    assert path.is_file(), shown.where
    options = re.findall(r"(?<=\s)--[a-z][\w-]*", shown.text)
    assert all(option in helped(path) for option in options), f"{shown.where}: {shown.text}"


@cache
def helped(path: Path) -> str:
    """What a script says with --help."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(sys, "argv", [str(path), "--help"])
        patch.setattr(sys, "path", [str(path.parent), *sys.path])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(path), run_name="__main__")
    assert not ended.value.code, path
    return out.getvalue()
