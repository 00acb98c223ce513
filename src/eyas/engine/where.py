"""The language of `--where`: conditions on what came of a work, joined by `and` or commas. Pure."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from eyas.errors import UsageError
from eyas.types import FailureKind, Finish, Label, Verdict

FIELDS: Mapping[str, type[StrEnum] | None] = {
    "verdict": Verdict,
    "kind": FailureKind,
    "finish": Finish,
    "label": Label,
    "provider": None,
    "tag": None,
    "dataset": None,
    "id": None,
}
"""What may be asked for as text, and the values that it can have where they are fixed."""
NUMBERS: Mapping[str, str] = {
    "tokens": "completion tokens of the answer",
    "usd": "dollars that the answer cost",
    "tries": "attempts made",
    "seconds": "from the send to the end of the answer",
}
"""What may be compared as a number."""
JOIN = "join conditions by `and` or commas"

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip
_EXACT = ("dataset", "id")
_JOINT = re.compile(r"\s*,\s*|\s+and\s+", re.IGNORECASE)
_TERM = re.compile(r"\s*(\w+)\s*(!=|==|>=|<=|=|>|<)\s*(.*)", re.DOTALL)

Facts = Mapping[str, str | float]
"""What is known of a work: text by `FIELDS` in lower case (dataset and id as they are), numbers by `NUMBERS`; no key, no fact."""


class Term(NamedTuple):
    """One condition: a field compared with a value. A work without that field does not meet it, whatever the operator.

    `column` is where its value begins in the expression, from 1.
    """

    field: str
    compare: str
    value: str
    column: int = 1

    def holds(self, facts: Facts) -> bool:
        """Whether a work of those facts meets it."""
        found = facts.get(self.field, "")
        if found == "":
            return False
        if self.field in NUMBERS:
            return _COMPARE[self.compare](float(found), float(self.value))
        same = found == self.value
        if self.field == "id":
            same = same or str(found).startswith(f"{self.value}/")
        return same is (self.compare != "!=")


def parse(text: str) -> tuple[Term, ...]:
    """Conditions such as `finish=length and provider=Chutes`, or `usd>0.01, tries>=2`.

    Raises:
        UsageError: it is no such thing; the sentence names the column, and what is nearest to what was written.
    """
    return tuple(_term(part, column) for part, column in _parts(text))


def asked(text: str) -> str | None:
    """The field that an expression names and says nothing of, as `label`: its values are wanted; None if it is another one."""
    name = text.strip().casefold()
    return name if name in FIELDS or name in NUMBERS else None


def nearest(word: str, among: Iterable[str]) -> str:
    """`did you mean X? `, or nothing where nothing is near."""
    known = {each.casefold(): each for each in among}
    found = difflib.get_close_matches(word.casefold(), known, n=1, cutoff=0.6)
    return f"did you mean {known[found[0]]}? " if found else ""


def _parts(text: str) -> Iterable[tuple[str, int]]:
    """The conditions, each with the column at which it begins."""
    start = 0
    for joint in _JOINT.finditer(text):
        yield text[start : joint.start()], start + 1
        start = joint.end()
    yield text[start:], start + 1


def _term(text: str, column: int) -> Term:
    match = _TERM.fullmatch(text)
    if match is None:
        near = "" if not text.strip() else nearest(text, [*FIELDS, *NUMBERS])
        form = f"write FIELD=VALUE or FIELD!=VALUE, and {JOIN}"
        raise UsageError(f"{_at(column)}: {text.strip()!r} is no condition: {near}{form}")
    name, compare, value = match[1].casefold(), match[2], match[3].strip("'\" ")
    here, there = _at(column + match.start(1)), _at(column + match.start(3))
    if name in NUMBERS:
        return Term(name, compare, _number(name, value, there), column + match.start(3))
    if name not in FIELDS:
        names = [*FIELDS, *NUMBERS]
        raise UsageError(
            f"{here}: there is no field {match[1]!r}: {nearest(name, names)}choose among {', '.join(names)}"
        )
    if compare in (">", ">=", "<", "<="):
        raise UsageError(f"{here}: {name} is no number: compare it by = or !=; numbers are {', '.join(NUMBERS)}")
    value = value if name in _EXACT else value.casefold()
    known = FIELDS[name]
    values = [each.value for each in known if each.value != Verdict.AGAIN.value] if known else []
    if not value or (values and value not in values):
        raise UsageError(f"{there}: {name} is never {match[3].strip()!r}: {_choice(value, values)}")
    return Term(name, compare, value, column + match.start(3))


def _at(column: int) -> str:
    return f"--where, column {column}"


def _choice(value: str, values: Sequence[str]) -> str:
    if not values:
        return "give one"
    if " or " in value:
        return f"there is no `or`: give the command once for each; {JOIN}; choose among {', '.join(values)}"
    return f"{nearest(value, values)}choose among {', '.join(values)}"


def _number(name: str, value: str, at: str) -> str:
    try:
        number = float(value.lstrip("$").replace("_", ""))
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(
            f"{at}: {name} is a number ({NUMBERS[name]}), and {value!r} is none: write for example {name}>1"
        )
    return repr(number)
