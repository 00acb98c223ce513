"""The system turn of rows that bring none: one text, or one drawn for each prompt from a pool."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from eyas.config import System
from eyas.errors import UsageError
from eyas.prompts.order import seed_key

Draw = Callable[[str], str | None]
"""The system text for a prompt, by its id without a system turn; None: no system turn."""


def system_of(system: str | tuple[System, ...] | None, base: Path, seed: int) -> Draw | None:
    """What `system` in RUN.toml gives to each prompt; None: nothing.

    A pool's draw hangs on the seed, the prompt and the texts with their weights alone: the order of rows and of the pool
    does not matter, and a further text takes its share from the others and moves nothing between them. An empty text stands for
    no system turn.

    Args:
        system: one text, or a pool.
        base: the folder that the files of a pool start from; each is read once.
        seed: the seed of the run.

    Raises:
        UsageError: a file of the pool cannot be read or is empty.
    """
    if not system:
        return None
    if isinstance(system, str):
        return lambda _: system
    weights: dict[str, float] = {}
    for each in system:
        text = each.text if each.text is not None else _read(each.file or "", base)
        weights[text] = weights.get(text, 0.0) + each.weight
    pool = list(weights.items())
    return lambda prompt_id: draw(pool, seed, prompt_id) or None


def draw(pool: Sequence[tuple[str, float]], seed: int, prompt_id: str) -> str:
    """The text of a pool that falls to a prompt: each in proportion to its weight (weighted rendezvous hashing)."""
    key = seed_key(seed)

    def score(one: tuple[str, float]) -> float:
        text, weight = one
        digest = hashlib.blake2b(f"{prompt_id}/{text}".encode(), digest_size=7, key=key, person=b"system").digest()
        return -math.log((int.from_bytes(digest, "big") + 0.5) / 2**56) / weight

    return min(pool, key=score)[0]


def _read(name: str, base: Path) -> str:
    path = base / Path(name).expanduser()
    try:
        text = path.read_text(encoding="utf-8").rstrip("\n")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"system: the file {name} cannot be read ({error}): name a UTF-8 file, absolute or relative to {base}"
        ) from error
    if not text.strip():
        raise UsageError(f'system: the file {name} is empty: fill it, or write text = "" for no system turn')
    return text
