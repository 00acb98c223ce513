"""What of a State may have changed since it was last kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from eyas.types import Work


@dataclass(slots=True)
class Touched:
    """Ids of attempts, works, labels (by attempt) and prompts (dataset, id): what changed is among them, and some that did not."""

    attempts: set[int] = field(default_factory=set[int])
    works: set[Work] = field(default_factory=set[Work])
    labels: set[int] = field(default_factory=set[int])
    prompts: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
