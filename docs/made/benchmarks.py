"""The scripts of bench/, with the question that each one answers."""

from __future__ import annotations

import ast
from pathlib import Path

from made.markdown import code, prose, table

_FOLDER = Path(__file__).parents[2] / "bench"


def text() -> str:
    """A table: how each script is run, and the first line of what it says of itself."""
    rows = [(code(f"python bench/{path.name}"), prose(_says(path))) for path in scripts()]
    return table(("script", "question"), rows)


def scripts() -> list[Path]:
    """What can be run there, by name."""
    return [path for path in sorted(_FOLDER.glob("*.py")) if "__main__" in path.read_text(encoding="utf-8")]


def _says(path: Path) -> str:
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0]
