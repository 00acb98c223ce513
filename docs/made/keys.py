"""Every key of RUN.toml: type, bounds and default from the classes that check the file, its meaning as `eyas init` writes it.

Of a key for which `eyas init` has no note the meaning is that of docs/run-toml.md.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from eyas.config import RunConfig, Section
from eyas.report.starter import Wish, run_toml, toml
from made.markdown import code, prose, table

_LISTED = re.compile(r"^#?(?P<key>\w+) = .*?  # (?:not set: )?(?P<note>.+)$")
_HEAD = re.compile(r"^## \[+(\w+)\]+$")
_ROW = re.compile(r"^\| (?P<keys>`\w+`(?:, `\w+`)*) \|.* \| (?P<meaning>[^|]+) \|$")
_PAGE = Path(__file__).parents[1] / "run-toml.md"
_WISH = Wish(model="moonshotai/kimi-k2.5", usd=5.0, name="b3", source="prompts/b3.jsonl")
_BOUNDS = (("ge", "at least {}"), ("gt", "above {}"), ("le", "at most {}"), ("lt", "below {}"))
_NAMES: Mapping[object, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    Any: "any value",
    type(None): "",
}


def text() -> str:
    """Markdown: a head for each section of RUN.toml, and a table of its keys."""
    return "\n\n".join(part for name, section, many in sections() for part in _section(name, section, many))


def sections() -> Iterator[tuple[str, type[Section], bool]]:
    """The sections of RUN.toml: name, class, whether there may be several."""
    for name, field in RunConfig.model_fields.items():
        for each in (field.annotation, *get_args(field.annotation)):
            if isinstance(each, type) and not get_args(each) and issubclass(each, Section):
                yield name, each, get_origin(field.annotation) is tuple


def notes() -> dict[str, dict[str, str]]:
    """What each key means, by section, from the RUN.toml that `eyas init` writes."""
    found: dict[str, dict[str, str]] = {}
    section = ""
    for line in run_toml(_WISH).splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif listed := _LISTED.match(line):
            found.setdefault(section, {})[listed["key"]] = listed["note"]
    return found


def explained() -> dict[str, dict[str, str]]:
    """What docs/run-toml.md says of each key, by section."""
    found: dict[str, dict[str, str]] = {}
    section = ""
    for line in _PAGE.read_text(encoding="utf-8").splitlines():
        if head := _HEAD.match(line):
            section = head[1]
        elif section and (row := _ROW.match(line)):
            found.setdefault(section, {}).update(dict.fromkeys(re.findall(r"\w+", row["keys"]), row["meaning"]))
    return found


def meanings(name: str) -> dict[str, str]:
    """What each key of a section means, as Markdown."""
    like = ["target", name] if name == "fallback" else [name]
    said = {key: text for each in like for key, text in explained().get(each, {}).items()}
    return said | {key: prose(note) for each in like for key, note in notes().get(each, {}).items()}


def _section(name: str, section: type[Section], many: bool) -> Iterator[str]:
    meaning = meanings(name)
    yield f"## {'[[' if many else '['}{name}{']]' if many else ']'}"
    about = (section.__doc__ or "").partition("\n")[0].partition(": ")[2]
    yield prose(about[:1].upper() + about[1:])
    rows = [
        (code(key), kind(field.annotation, field.metadata), _default(field), meaning.get(key, ""))
        for key, field in section.model_fields.items()
    ]
    yield table(("key", "type", "default", "meaning"), rows)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "not set" if value is None else code(toml(value))


def kind(annotation: Any, bounds: Iterable[Any] = ()) -> str:
    """A type in the words of TOML, with its bounds; empty for None."""
    said = f"{_kind(annotation)}{_bounds(bounds)}"
    return said.removeprefix(" or ")


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kind(inner[0], inner[1:])
    if origin is Literal:
        return ", ".join(code(toml(each)) for each in inner)
    if origin in (types.UnionType, Union):
        return " or ".join(filter(None, map(kind, inner)))
    if origin is tuple:
        return f"list of {_plural(kind(inner[0]))}"
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, Section)):
        return "table"
    return _NAMES[annotation]


def _plural(kind: str) -> str:
    return f"{kind}s" if kind in ("text", "table", "integer", "number") else kind


def _bounds(metadata: Iterable[Any]) -> str:
    found = [
        said.format(f"{getattr(each, name):g}") for each in metadata for name, said in _BOUNDS if hasattr(each, name)
    ]
    return f", {', '.join(found)}" if found else ""
