"""Exit codes, errors and labels, as the code has them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise

from eyas import errors as tree
from eyas.api.ending import Ending
from eyas.export.options import LABELS
from eyas.types import STRICT, Label
from made.markdown import code, prose, table


def exit_codes() -> str:
    """A table: how a run ended, by the exit code of `eyas run`."""
    said = _attributes(Ending)
    return table(
        ("code", "name", "meaning"), [(str(each.value), code(each.name), prose(said[each.name])) for each in Ending]
    )


def errors() -> str:
    """The tree as its module draws it, and a table of what each class says of itself."""
    drawn = (tree.__doc__ or "").partition("\n\n")[2].rpartition("\n\n")[0]
    rows = [(code(each.__name__), prose(inspect.getdoc(each) or "")) for each in _classes(tree.EyasError)]
    return f"```text\n{inspect.cleandoc(drawn)}\n```\n\n{table(('class', 'when'), rows)}"


def labels() -> str:
    """A table: the labels from the surest to the unusable, and which `--labels` take them."""
    rows = [
        (code(each.value), "yes" if each in STRICT else "no", "yes" if each in LABELS["loose"] else "no")
        for each in Label
    ]
    return table(("label", "strict", "loose"), rows)


def _classes(base: type[Exception]) -> Iterator[type[Exception]]:
    yield base
    for each in base.__subclasses__():
        if each.__module__ == tree.__name__:
            yield from _classes(each)


def _attributes(of: type) -> dict[str, str]:
    """What stands below each attribute of a class, by its name."""
    (parsed,) = ast.parse(inspect.getsource(of)).body
    body = parsed.body if isinstance(parsed, ast.ClassDef) else []
    return {
        target.id: str(below.value.value)
        for each, below in pairwise(body)
        if isinstance(each, ast.Assign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
