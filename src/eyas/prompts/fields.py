"""Which fields of the objects in a column hold the speaker's role and what was said."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any, cast

from eyas.prompts.columns import CONTENT, ROLE, Fields
from eyas.prompts.parts import cell
from eyas.prompts.talk import ROLES, speaker, unzipped

_ROLE = (*ROLE, "speaker", "author", "sender")
_CONTENT = (*CONTENT, "text", "message", "utterance", "body")
_LOOKED_AT = 2000


def messages_in(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, of a list of lists, or of an object of equally long lists; none of anything else."""
    value = cell(value)
    if isinstance(value, dict):
        return unzipped(cast("dict[str, Any]", value)) or []
    if not isinstance(value, list) or not value:
        return []
    items = cast("list[Any]", value)
    if all(isinstance(item, list) for item in items):
        items = list(chain.from_iterable(cast("list[list[Any]]", items)))
    return items if all(isinstance(item, dict) for item in items) else []


def fields_of(cells: Sequence[Any]) -> Fields | None:
    """The fields of the objects in a column's cells; None if there are none.

    The role is a field of a known name whose values are text, or else one with the known names of speakers, a user's
    among them. The content is a field of a known name, or else the one with the longest texts.
    """
    items = list(islice(chain.from_iterable(messages_in(value) for value in cells), _LOOKED_AT))
    names = tuple(dict.fromkeys(name for item in items for name in item))
    if not names:
        return None
    values = {name: [item[name] for item in items if item.get(name) is not None] for name in names}
    role = next((name for name in _ROLE if _texts(values.get(name, []))), None) or next(
        (name for name in names if _speakers(values[name])), None
    )
    content = next((name for name in _CONTENT if name != role and values.get(name)), None)
    if content is None:
        lengths = {name: sum(map(len, values[name])) for name in names if name != role and _texts(values[name])}
        content = max(lengths, key=lambda name: lengths[name], default=None)
    return Fields(names, role, content)


def _texts(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)


def _speakers(values: list[Any]) -> bool:
    said = [ROLES.get(name) if (name := speaker(value)) else None for value in values]
    return "user" in said and 2 * sum(role is not None for role in said) >= len(said)
