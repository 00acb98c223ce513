"""What is in the wheel and the sdist. They are built by hatchling as it stands here: no network."""

from __future__ import annotations

import email
import hashlib
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = (
    "eyas/py.typed",
    "eyas/examples/SOURCES.md",
    "eyas/examples/B3.jsonl",
    "eyas/examples/B8.jsonl",
    "eyas/report/page/static/page.html",
    "eyas/report/page/static/page.js",
    "eyas/report/page/static/uPlot.iife.min.js",
    "eyas/report/page/static/uPlot.LICENSE",
)
"""Of each kind of file that is not Python, one that must be there; the others are held by the comparison with the tree."""
KINDS = {".py", ".typed", ".jsonl", ".md", ".html", ".css", ".js", ".LICENSE"}
LICENCES = {"LICENSE", "examples/demo/SOURCES.md", "src/eyas/report/page/static/uPlot.LICENSE"}
TOP = {
    ".ci", ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "PKG-INFO", "README.md",
    "bench", "docs", "examples", "pyproject.toml", "release", "src", "tests", "tests_ray", "tests_real", "trainers",
}  # fmt: skip
"""What an sdist may hold: the source and nothing that was made from it."""


def build(kind: str, source: Path, folder: Path) -> Path:
    """The one file that `hatchling build` makes of a tree."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(folder)],
        cwd=source, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of this tree."""
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def again(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the sdist, unpacked where no git is."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as file:
        file.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return build("wheel", source, tmp_path_factory.mktemp("again"))


def contents(wheel: Path) -> dict[str, str]:
    """Name and hash of each file in a wheel."""
    with zipfile.ZipFile(wheel) as file:
        return {name: hashlib.sha256(file.read(name)).hexdigest() for name in file.namelist()}


def source_of(name: str) -> Path:
    """The file of this tree that stands under that name in a wheel."""
    inside = name.removeprefix("eyas/examples/")
    return ROOT / "examples" / "demo" / inside if inside != name else ROOT / "src" / name


def metadata(wheel: Path) -> email.message.Message:
    """METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(file.read(name))


def test_the_wheel_is_the_package_and_its_data_and_nothing_else(wheel: Path) -> None:
    """Every file of the package is in the wheel, the demo's prompts too, and no test, cache or note of somebody's."""
    names = {name for name in contents(wheel) if ".dist-info/" not in name}
    package = {path for path in (ROOT / "src" / "eyas").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    demo = {path for path in (ROOT / "examples" / "demo").iterdir() if path.is_file()}
    assert {source_of(name) for name in names} == package | demo
    assert set(DATA) <= names
    assert {Path(name).suffix for name in names} <= KINDS


def test_the_sdist_makes_the_same_wheel(wheel: Path, again: Path) -> None:
    """What is installed from the sdist is what is installed from the wheel: the same name, version and bytes."""
    assert again.name == wheel.name
    assert contents(again) == contents(wheel)


def test_the_sdist_is_the_source(sdist: Path) -> None:
    """An sdist has tests and documentation, and none of the environments, caches and pages that are made beside them."""
    with tarfile.open(sdist) as file:
        names = [Path(*Path(name).parts[1:]) for name in file.getnames()]
    assert {name.parts[0] for name in names} <= TOP
    assert {"src", "tests", "docs", "examples", "LICENSE", "PKG-INFO"} <= {name.parts[0] for name in names}
    assert not [name for name in names if "__pycache__" in name.parts or name.suffix == ".pyc"]


def test_what_an_index_is_told(wheel: Path) -> None:
    """The metadata name the oldest Python, the licences of all that the wheel holds, and a version that is one."""
    told = metadata(wheel)
    assert told["Requires-Python"] == ">=3.11"
    assert told["License-Expression"] == "Apache-2.0 AND MIT"
    assert set(told.get_all("License-File") or []) == LICENCES
    assert all(f"/licenses/{path}" in "".join(contents(wheel)) for path in LICENCES)
    assert told["Version"][0].isdigit()


def test_a_tree_without_git_is_built_too(tmp_path: Path) -> None:
    """A tree that has neither tags nor git, as a downloaded archive has none, is built; its version says that it is no release."""
    bare = tmp_path / "bare"
    for name in ("pyproject.toml", "README.md", "LICENSE", "examples/demo/SOURCES.md", "src/eyas/__init__.py"):
        path = bare / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((ROOT / name).read_bytes())
    assert build("wheel", bare, tmp_path / "made").name == "eyas-0.1.0.dev0-py3-none-any.whl"
