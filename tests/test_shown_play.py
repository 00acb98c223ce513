"""How commands of the docs are played: nothing leaves the machine, and a page goes on where its last line left off."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.shown.heads import heads, missing
from tests.shown.lines import Shown
from tests.shown.play import Playing
from tests.shown.stage import Stage
from tests.shown.world import KEY, NetworkReachedError, World

WORLD = World("127.0.0.1:1", {"org/name": "."}, {"127.0.0.1:8000": "127.0.0.1:2"})


@pytest.fixture
def playing(tmp_path: Path) -> Generator[Playing]:
    """A page in an empty folder."""
    with ExitStack() as stack:
        yield Playing(tmp_path, WORLD, Stage({}, tmp_path, stack), stack)


def shown(text: str) -> Shown:
    """A command on a page."""
    return Shown("p.md", 1, text)


def test_nothing_leaves_the_machine() -> None:
    """The API is the simulator, a shown address its server, loopback is itself, and all else ends the test."""
    assert WORLD.route("https://openrouter.ai/api/v1/key") == "http://127.0.0.1:1/api/v1/key"
    assert WORLD.route("http://127.0.0.1:8000/v1/models") == "http://127.0.0.1:2/v1/models"
    assert WORLD.route("http://127.0.0.1:9000/v1") == "http://127.0.0.1:9000/v1"
    for url in ("https://huggingface.co/api", "http://10.0.0.1/v1"):
        with pytest.raises(NetworkReachedError):
            WORLD.route(url)


def test_no_tokenizer_is_fetched() -> None:
    """A hub id is a folder of the tests, or an error."""
    assert WORLD.tokenizer("org/name") == Path()
    with pytest.raises(NetworkReachedError):
        WORLD.tokenizer("org/other")


def test_a_page_goes_on(playing: Playing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is entered, a variable that is set and a name that is defined stay for the next command."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "")
    assert playing.command(shown("mkdir rows")).code == 0
    assert playing.command(shown("cd rows")).code == 0
    assert playing.command(shown("export OPENROUTER_API_KEY=…")).code == 0
    assert os.environ["OPENROUTER_API_KEY"] == KEY
    playing.python("from pathlib import Path\nwords = ['a', 'b']\n", "p.md")
    playing.python("Path('w.txt').write_text(' '.join(words))\nprint('written')\n", "p.md")
    assert (tmp_path / "rows" / "w.txt").read_text() == "a b"


def test_output_goes_where_the_line_says(playing: Playing, tmp_path: Path) -> None:
    """Into a file, or through another program; an error of eyas stays one."""
    assert playing.command(shown("eyas --version > version.txt")).code == 0
    assert "eyas" in (tmp_path / "version.txt").read_text()
    assert "eyas" in playing.command(shown("eyas --version | head -n 1")).out
    assert playing.command(shown("eyas status nowhere | head -n 1")).code == 2
    assert "eyas" in playing.command(shown("echo $(eyas --version)")).out


def test_heads_of_tables_are_told_from_rows() -> None:
    """A line of names above a line with figures is a head; it counts as printed whatever its spaces."""
    output = (
        "Looking:",
        "set   prompts  tok in  $ low",
        "B3        160      12   0.10",
        "money:  is  spent",
        "no figures here",
    )
    assert heads(output) == ["set prompts tok in $ low"]
    assert missing(output, "set  prompts    tok in  $ low\nB3  1  2  3\n") == []
    assert missing(output, "set  prompts  $ low\n") == ["set prompts tok in $ low"]
