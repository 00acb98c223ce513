"""The documentation is built without a warning, and the built pages need no network."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUILDERS = ("sphinx", "furo", "myst_parser")
LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\ssrc=[\"']([^\"']+)|<link\b[^>]*\shref=[\"']([^\"']+)"
)
"""What a browser loads by itself, other than what a reader follows."""
STYLED = re.compile(r"@import[^;]*|url\(([^)]+)\)")
missing = [name for name in BUILDERS if find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(missing),
    reason=f"the documentation is not built here: {', '.join(missing)} not installed; `make docs` does both",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. That it is there says that nothing was said, and no warning given."""
    folder = tmp_path_factory.mktemp("docs")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "--fail-on-warning",
        "--keep-going",
        "--quiet",
        "-d",
        str(folder / "doctrees"),
    ]
    built = subprocess.run(
        [*command, str(ROOT / "docs"), str(folder / "site")], capture_output=True, text=True, timeout=170, check=False
    )
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    return folder / "site"


def test_every_page_is_built(site: Path) -> None:
    """Each page of docs/ is one of the site, with what is made from the code in it."""
    for path in (ROOT / "docs").glob("*.md"):
        html = (site / f"{path.stem}.html").read_text(encoding="utf-8")
        assert "made: " not in html.replace("<!-- made: NAME -->", ""), path.name
    assert "--draft-vocab" in (site / "reference-commands.html").read_text(encoding="utf-8")


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """No page, style or font comes over a network: opened from a disk, the site is whole."""
    for path in site.glob("*.html"):
        for found in LOADED.findall(path.read_text(encoding="utf-8")):
            target = re.split(r"[?#]", found[0] or found[1])[0]
            assert target.startswith("data:") or (site / target).exists(), f"{path.name} loads {target}"
    for path in site.glob("**/*.css"):
        for found in STYLED.finditer(path.read_text(encoding="utf-8")):
            assert "//" not in found[0] or "data:" in found[0], f"{path.name} loads {found[0]}"


def test_the_search_works_from_files(site: Path) -> None:
    """The index is a script, which a page opened as a file may load."""
    assert (site / "searchindex.js").read_text(encoding="utf-8").startswith("Search.setIndex(")
