"""The Python interface: a directive of Sphinx for each name that `import eyas` offers, so that its own words are shown."""

from __future__ import annotations

import inspect

import eyas
from made.markdown import code


def text() -> str:
    """Markdown: a head and a directive for each public name; functions first."""
    named = {name: getattr(eyas, name) for name in eyas.__all__ if not name.startswith("_")}
    calls = [name for name, value in named.items() if inspect.isfunction(value)]
    classes = [name for name, value in named.items() if inspect.isclass(value)]
    return "\n\n".join(
        ["## Functions", *map(_function, calls), "## Classes", *(_class(name, named[name]) for name in classes)]
    )


def _function(name: str) -> str:
    return f"### {name}\n\n```{{eval-rst}}\n.. autofunction:: eyas.{name}\n```"


def _class(name: str, value: type) -> str:
    if issubclass(value, BaseException) or name == "Config":
        return f"### {name}\n\n{_first(value)} {_SEE[name]}"
    return f"### {name}\n\n```{{eval-rst}}\n.. autoclass:: eyas.{name}\n   :members:\n   :exclude-members: __new__\n```"


def _first(value: type) -> str:
    """The first sentence of what a class says of itself."""
    return (inspect.getdoc(value) or code(value.__name__)).partition("\n")[0]


_SEE = {
    "EyasError": "All errors: [reference-errors.md](reference-words.md#errors).",
    "Config": "Its keys: [reference-keys.md](reference-keys.md).",
}
