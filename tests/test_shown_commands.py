"""Every command that the docs show is run, in the order of its page, in a sandbox that has what the page takes for granted."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from eyas.cli import COMMANDS
from eyas.cli.examples import EXAMPLES as EXAMPLES_OF_HELP
from eyas.cli.examples import FIRST_EVENING as FIRST
from eyas.cli.examples import Example
from tests import vocabularies
from tests.shown import heads, lines, pages
from tests.shown.explained import explained
from tests.shown.pages import Block
from tests.shown.play import Ended, Playing
from tests.shown.scenes import EXAMPLES, FIRST_EVENING, HELP, HELPS, NARROW, SCENES, Scene, nothing
from tests.shown.stage import KIMI, QWEN, Stage
from tests.shown.world import KEY

PAGES = {name: pages.page(name) for name in pages.names()}


@pytest.fixture(scope="session")
def stage(
    request: pytest.FixtureRequest, kimi_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Stage]:
    """What all pages share."""
    qwen = vocabularies.folder("qwen3", request)
    tokenizers = {
        KIMI: kimi_folder,
        "moonshotai/Kimi-K2.5": kimi_folder,
        "~/.cache/eyas/kimi-k2.5": kimi_folder,
        QWEN: qwen,
        "Qwen/Qwen3-32B": qwen,
    }
    with ExitStack() as stack:
        yield Stage(tokenizers, tmp_path_factory.mktemp("stage"), stack)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kimi_folder: Path) -> None:
    """A key, a cache with the built-in vocabulary, nothing of the machine's own."""
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "eyas").mkdir(parents=True)
    (tmp_path / "cache" / "eyas" / "kimi-k2.5").symlink_to(kimi_folder)


def steps(page: pages.Page) -> list[lines.Shown | Block]:
    """What is played of a page, in its order: its commands, and blocks that are files or Python."""
    found = list[lines.Shown | Block]()
    for block in page.blocks:
        if block.title or block.language == "python":
            found.append(block)
        found += (each for each in lines.of_block(block) if not each.usage and explained(each) is None)
    return found


README = "examples/README.md"
PLAYED = [name for name, page in PAGES.items() if steps(page) and name != README]


@pytest.mark.parametrize("name", PLAYED)
def test_the_commands_of_a_page_run(name: str, stage: Stage, tmp_path: Path) -> None:
    """Each ends with 0, or with the code that the page says."""
    play(PAGES[name], SCENES.get(name, Scene()), stage, tmp_path)


@pytest.mark.parametrize("backend", EXAMPLES)
def test_each_example_runs(backend: str, stage: Stage, tmp_path: Path) -> None:
    """The commands of the examples' page, in the folder of each backend, at a stand-in of its server."""
    play(PAGES[README], EXAMPLES[backend], stage, tmp_path)


@pytest.mark.parametrize("command", [each for each in EXAMPLES_OF_HELP if each in COMMANDS])
def test_the_examples_of_help_run(command: str, stage: Stage, tmp_path: Path) -> None:
    """What `eyas COMMAND --help` shows as examples does what it says."""
    page = helped(f"eyas {command} --help", EXAMPLES_OF_HELP[command])
    play(page, HELPS.get(command, HELP), stage, tmp_path)


def test_the_first_evening_runs(stage: Stage, tmp_path: Path) -> None:
    """The commands that `eyas --help` ends with, one after the other."""
    play(helped("eyas --help", FIRST), FIRST_EVENING, stage, tmp_path)


def test_scenes_are_of_pages_that_are_there() -> None:
    """No scene is left of a page, a command or a help that is gone."""
    for name, scene in SCENES.items():
        texts = {each.text for each in lines.commands(PAGES[name])}
        assert set(scene.before) <= texts, f"{name}: no command {set(scene.before) - texts}"
    assert set(HELPS) <= set(EXAMPLES_OF_HELP)


def helped(name: str, examples: Sequence[Example]) -> pages.Page:
    """Examples of help as a page."""
    block = Block(name, 1, lines.CONSOLE, "", "", tuple(f"$ {each.line}" for each in examples))
    return pages.Page(name, (block,), ())


def play(page: pages.Page, scene: Scene, stage: Stage, tmp_path: Path) -> None:
    """Play a page in a sandbox of its own."""
    with ExitStack() as stack:
        folder = stage.template.sandbox(tmp_path / "sandbox", scene.runs)
        playing = Playing(folder, stage.world(scene.servers), stage, stack)
        scene.prepare(playing)
        for step in steps(page):
            if isinstance(step, Block):
                _block(playing, step)
                continue
            scene.before.get(step.text, nothing)(playing)
            ended = playing.command(step)
            assert ended.code == step.code, told(step, ended)
            stale = [head for head in heads.missing(step.output, ended.out + ended.err) if head not in NARROW]
            assert not stale, f"{step.where}: `{step.text}` does not print this table any more: {stale}\n{ended.out}"


def _block(playing: Playing, block: Block) -> None:
    """A file is written, Python is played."""
    if block.title:
        path = playing.folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        if path.suffix == ".py":
            compile(block.text, f"{block.page}:{block.line}", "exec")
        return
    playing.python("\n" * (block.line - 1) + block.text, str(pages.ROOT / block.page))


def told(step: lines.Shown, ended: Ended) -> str:
    """What went wrong, for whoever reads the test's output."""
    return f"{step.where}: `{step.text}` ended with {ended.code}, not {step.code}\n{ended.out[-1500:]}\n{ended.err[-1500:]}"
