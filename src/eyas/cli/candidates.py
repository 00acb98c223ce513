"""What may stand at the place where TAB was pressed, found in milliseconds; nothing where nothing is known.

Each function takes the arguments and options that stand on the line already, and the word that was begun.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from click.shell_completion import CompletionItem

from eyas.cli.declared.tools import SCENARIOS
from eyas.engine.where import FIELDS, NUMBERS
from eyas.journal import glance
from eyas.journal.database import NAME

MOST = 50
"""Names that are offered at most."""

_LAST_CONDITION = re.compile(r"(?P<before>.*(?:,\s*|\s+and\s+))?(?P<last>.*)", re.DOTALL | re.IGNORECASE)
_BEGUN = re.compile(r"(?P<head>\s*(?P<field>\w+)\s*(?:!=|==|=)\s*)(?P<value>.*)", re.DOTALL)

Params = Mapping[str, Any]
Items = list[CompletionItem[str]]


def rundirs(_: Params, incomplete: str) -> Items:
    """Run directories: those that the folder's RUN.toml files name, and those on the way that was begun."""
    named = (str(table["run"]["dir"]) for table in map(_table, Path().glob("*.toml")) if _names_dir(table))
    found = {name for name in named if name.startswith(incomplete) and (Path(name) / NAME).is_file()}
    for folder in _beneath(incomplete):
        deeper = [folder] if (folder / NAME).is_file() else _folders(folder)
        found |= {_as_typed(each, incomplete) for each in deeper if (each / NAME).is_file()}
    return _items(found) or [CompletionItem(incomplete, type="dir")]


def configs(_: Params, incomplete: str) -> Items:
    """RUN.toml files; any file where there is none."""
    return _files(incomplete, (".toml",))


def plans(_: Params, incomplete: str) -> Items:
    """RUN.toml files and plans."""
    return _files(incomplete, (".toml", ".json"))


def rundirs_and_configs(params: Params, incomplete: str) -> Items:
    """Run directories and RUN.toml files."""
    found = [item for item in (*rundirs(params, incomplete), *configs(params, incomplete)) if item.type == "plain"]
    return found or files(params, incomplete)


def files(_: Params, incomplete: str) -> Items:
    """Any file, as the shell finds them."""
    return [CompletionItem(incomplete, type="file")]


def datasets(params: Params, incomplete: str) -> Items:
    """Names of the datasets in the RUN.toml, or run directory, that stands on the line."""
    return _items(name for name in _datasets(params) if name.startswith(incomplete))


def works(params: Params, incomplete: str) -> Items:
    """Ids of the run on the line, as far as DATASET/PROMPTID16."""
    folder = _rundir(params)
    return _items(glance.prompts(folder, incomplete)) if folder else []


def changes(params: Params, incomplete: str) -> Items:
    """What `eyas tune` takes, with the tags of endpoints that the run asks."""
    folder = _rundir(params)
    tags = glance.tags(folder) if folder else []
    offered = ["in_flight=", *(f"drop={tag}" for tag in tags), *(f"take={tag}" for tag in tags)]
    return [CompletionItem(each) for each in offered if each.startswith(incomplete)]


def where(params: Params, incomplete: str) -> Items:
    """Fields of `--where`, and the values of the one that was begun; what stands before the last condition is kept."""
    match = _LAST_CONDITION.fullmatch(incomplete)
    before, last = (match["before"] or "", match["last"]) if match else ("", incomplete)
    begun = _BEGUN.fullmatch(last)
    if begun:
        head, start, values = begun["head"], begun["value"], _values(params, begun["field"].casefold())
    else:
        head, start, values = "", last, [*(f"{field}=" for field in FIELDS), *(f"{field}>" for field in NUMBERS)]
    offered = [value for value in values if value.casefold().startswith(start.casefold())]
    if not begun and len(offered) == 1 and offered[0].endswith("="):
        field = offered[0].removesuffix("=")
        offered += [f"{field}={value}" for value in _values(params, field)]
    return [CompletionItem(f"{before}{head}{value}") for value in offered[:MOST]]


def scenarios(_: Params, incomplete: str) -> Items:
    """Markets of the simulator."""
    return _items(name for name in SCENARIOS if name.startswith(incomplete))


def _values(params: Params, field: str) -> list[str]:
    known = FIELDS.get(field)
    if known is not None:
        return [each.value for each in known if each.value != "again"]
    folder = _rundir(params)
    if field == "dataset":
        return _datasets(params)
    if folder is None:
        return []
    look = {"tag": glance.tags, "provider": glance.providers, "id": glance.prompts}.get(field)
    return look(folder) if look else []


def _datasets(params: Params) -> list[str]:
    path = next((Path(params[name]) for name in ("config_file", "rundir", "run") if params.get(name)), None)
    if path is None:
        return []
    rows: Any = _table(path / "run.toml" if path.is_dir() else path).get("datasets")
    return [str(row["name"]) for row in rows or () if "name" in row]


def _rundir(params: Params) -> Path | None:
    return Path(params["rundir"]) if params.get("rundir") else None


def _table(path: Path) -> dict[str, Any]:
    """A TOML file; nothing where it is none."""
    with contextlib.suppress(OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return tomllib.loads(path.read_text(encoding="utf-8"))
    return {}


def _names_dir(table: Mapping[str, Any]) -> bool:
    run: Any = table.get("run")
    return isinstance(run, dict) and "dir" in run


def _beneath(incomplete: str) -> list[Path]:
    """Folders that the way begun may lead to."""
    base, _, name = incomplete.rpartition("/")
    folder = Path(f"{base}/" if base or incomplete.startswith("/") else ".").expanduser()
    return [each for each in _folders(folder) if each.name.startswith(name)]


def _folders(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [each for each in folder.iterdir() if each.is_dir() and not each.name.startswith(".")][: 4 * MOST]
    return []


def _files(incomplete: str, endings: tuple[str, ...]) -> Items:
    base, slash, name = incomplete.rpartition("/")
    found: list[str] = []
    with contextlib.suppress(OSError):
        for each in Path(f"{base}{slash}" or ".").expanduser().iterdir():
            if each.suffix in endings and each.name.startswith(name) and each.is_file():
                found.append(f"{base}{slash}{each.name}")  # noqa: PERF401  # what was found before an error stays
    return _items(found) or files({}, incomplete)


def _as_typed(path: Path, incomplete: str) -> str:
    """A path as it goes on from what was typed: `~` and `./` stay."""
    text = str(path)
    if incomplete.startswith("~/"):
        return f"~/{path.relative_to(Path.home())}"
    return f"./{text}" if incomplete.startswith("./") else text


def _items(names: Iterable[str]) -> Items:
    return [CompletionItem(name) for name in sorted(names)[:MOST]]
