"""The notebook of examples/: its code runs from top to bottom, and what is kept of its output is small and of no machine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import eyas
from tests import kit

PATH = Path(__file__).parent.parent / "examples" / "notebook" / "look.ipynb"
FAST = {"tps": 400, "ttft": 0.05, "length_median": 120, "length_sigma": 0.5, "slots": 0}
MOST_BYTES = 600_000
FIGURES = 6


@pytest.fixture(scope="module")
def cells() -> list[dict[str, Any]]:
    """The cells of the notebook."""
    return json.loads(PATH.read_text(encoding="utf-8"))["cells"]


def sources(cells: list[dict[str, Any]]) -> list[str]:
    """The code, cell by cell."""
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_it_is_kept_with_its_figures(cells: list[dict[str, Any]]) -> None:
    """Every cell was run in order, six of them left a picture, none an error or a warning."""
    text = PATH.read_text(encoding="utf-8")
    assert len(text) < MOST_BYTES
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == FIGURES
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
    assert "error" not in {output["output_type"] for output in outputs}


def test_it_names_no_place_of_any_machine() -> None:
    """No absolute path, no user's name, no address stands in it."""
    text = re.sub(r'"image/png": "[^"]*"', "", PATH.read_text(encoding="utf-8"))
    assert not re.search(r"(?<![\w.])/(tmp|home|root|work|Users|usr|opt)\b|127\.0\.0\.1|[A-Z]:\\\\", text)


def test_its_code_runs(
    cells: list[dict[str, Any]], kimi_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cell after cell, on a run that was made here, each picture is drawn."""
    matplotlib = pytest.importorskip("matplotlib", reason="NO MATPLOTLIB: the notebook of examples/ does not run")
    matplotlib.use("agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    (tmp_path / "d").mkdir()
    with kit.simulator(kimi_folder, "clean", 3, **FAST, drift=0.2) as sim:
        kit.write_run(tmp_path / "d", sim, kimi_folder, 40)
        assert eyas.run(tmp_path / "d" / "RUN.toml", key=kit.KEY).complete
    monkeypatch.chdir(tmp_path)
    shown: list[int] = []

    def show() -> None:
        pyplot.gcf().canvas.draw()
        shown.append(len(pyplot.gcf().axes))
        pyplot.close("all")

    monkeypatch.setattr(pyplot, "show", show)
    names: dict[str, Any] = {}
    with matplotlib.rc_context():
        for source in sources(cells):
            exec(compile(source, str(PATH), "exec"), names)  # noqa: S102  # our own notebook
    assert len(shown) == FIGURES
    assert min(shown) > 0
    assert names["figures"]["state"] == "complete"
