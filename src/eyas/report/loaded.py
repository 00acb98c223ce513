"""What the sources of a run held, in words: what the columns were taken for, and which rows are not asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eyas.prompts import LoadedSet


def sentences(sets: Iterable[LoadedSet]) -> Iterator[str]:
    """A sentence a set on its columns, and another one where rows of it are not asked."""
    for one in sets:
        yield f"{one.name}: {one.guess}"
        if gone := ", ".join(_gone(one)):
            yield f"{one.name}: {len(one.prompts)} prompts of {one.rows} rows; left out: {gone}"


def _gone(one: LoadedSet) -> Iterator[str]:
    """What became of the rows that are no prompts: first what needs nobody's attention, last what does."""
    if one.duplicates:
        yield f"{one.duplicates} duplicate{'s' if one.duplicates > 1 else ''}"
    if one.images:
        yield f"{one.images} with images"
    for key, rows in one.removed.items():
        yield f"{rows} by {key}" + (" (listed in contaminated.jsonl)" if key == "decontaminate" else "")
    if one.quarantined:
        first = one.quarantined[0]
        yield (
            f"{len(one.quarantined)} that cannot be asked (listed in quarantine.jsonl of the run directory; the first, line "
            f"{first.line}: {first.reason})"
        )
