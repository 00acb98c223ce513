"""What the API says was used, by day: the answer of its activity endpoint, or the table that its activity page exports.

`GET /api/v1/activity` gives rows of a UTC day and an endpoint: date, model, model_permaslug, provider_name, usage (US
dollars), requests, prompt_tokens, completion_tokens; it needs a management key, and holds the last 30 whole days
(https://openrouter.ai/docs/api/api-reference/analytics/get-user-activity). The table of the page has a row a request
(created_at, cost_total, model_permaslug); one a day is read by the endpoint's names.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from eyas.errors import UsageError
from eyas.ledger import nano_dollars

HINT = (
    "The API's figures were not given. OpenRouter's activity endpoint has them for whole UTC days, to a management key: "
    'curl -H "Authorization: Bearer $OPENROUTER_MANAGEMENT_KEY" https://openrouter.ai/api/v1/activity > activity.json, '
    "then eyas report RUNDIR --activity activity.json."
)
_DAYS, _MODELS, _COSTS = ("date", "created_at"), ("model", "model_permaslug"), ("usage", "cost_total")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?=$|[T ])")


class OfDay(NamedTuple):
    """Requests and nano-dollars of one day."""

    requests: int
    cost: int


class Activity(NamedTuple):
    """The API's figures of one model by UTC day, and in words where they are from."""

    days: Mapping[str, OfDay]
    source: str


def read(path: Path, model: str) -> Activity:
    """The figures of a model in a file, JSON or CSV.

    Raises:
        UsageError: the file cannot be read, or is neither; the message names the line or the row.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--activity {path}: cannot be read ({error}): give the file that the API gave") from error
    found = _of_json(path, text) if text.lstrip()[:1] in ("{", "[") else _of_csv(path, text)
    days: dict[str, OfDay] = {}
    rows = 0
    for where, row in found:
        day, requests, cost, names = _read_row(path, where, row)
        rows += 1
        if any(_same(name, model) for name in names):
            known = days.get(day, OfDay(0, 0))
            days[day] = OfDay(known.requests + requests, known.cost + cost)
    return Activity(days, _words(path, model, rows, days))


def _words(path: Path, model: str, rows: int, days: Mapping[str, OfDay]) -> str:
    if not days:
        return f"{path.name} has {rows} rows, none of {model}: the API lists a day once it is over."
    return f"{path.name}: what the API says of {model}, by whoever used it with the account or key it was asked for."


def _of_json(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--activity {path}: no JSON ({error}): give the API's answer as it came") from error
    if isinstance(data, dict):
        data = cast("dict[str, Any]", data).get("data")
    if not isinstance(data, list):
        raise UsageError(f'--activity {path}: no "data" with a list of rows: give the answer of GET /api/v1/activity')
    for number, row in enumerate(cast("list[Any]", data), 1):
        if not isinstance(row, dict):
            raise UsageError(f"--activity {path}, row {number}: no object: give the answer of GET /api/v1/activity")
        yield f"row {number}", cast("dict[str, Any]", row)


def _of_csv(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text))
    names = reader.fieldnames or ()
    for wanted in (_DAYS, _MODELS, _COSTS):
        if not any(name in names for name in wanted):
            raise UsageError(
                f"--activity {path}, line 1: no column {' or '.join(wanted)}: give the answer of GET /api/v1/activity, or "
                "the CSV that OpenRouter's activity page exports"
            )
    for row in reader:
        yield f"line {reader.line_num}", row


def _read_row(path: Path, where: str, row: Mapping[str, Any]) -> tuple[str, int, int, list[str]]:
    """Day, requests, nano-dollars, and the names of the model."""
    day = _DAY.match(str(_first(row, _DAYS)))
    names = [str(row[name]) for name in _MODELS if row.get(name)]
    if not day or not names:
        raise UsageError(
            f"--activity {path}, {where}: needs a day such as 2026-01-31 in {' or '.join(_DAYS)}, and a model in "
            f"{' or '.join(_MODELS)}: give the API's file as it came"
        )
    try:
        requests = int(row.get("requests", 1))
        cost = nano_dollars(_first(row, _COSTS))
    except (TypeError, ValueError, UsageError) as error:
        raise UsageError(f"--activity {path}, {where}: {error}; give the API's file as it came") from error
    return day[0], requests, cost, names


def _first(row: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), "")


def _same(name: str, model: str) -> bool:
    """Whether a name is that of the model: without its variant, or with the date of its version (kimi-k2.5-0127)."""
    plain, ours = name.lower().partition(":")[0], model.lower().partition(":")[0]
    return plain == ours or (plain.startswith(f"{ours}-") and plain[len(ours) + 1 :].replace("-", "").isdecimal())
