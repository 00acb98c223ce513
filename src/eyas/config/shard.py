"""`--shard i/n`: one run in n parts, each in a run directory of its own, with its share of prompts, cap, quotas and requests."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eyas.errors import UsageError

MOST = 1000


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` (from 1) of `of`."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def read(cls, text: str) -> Shard:
        """`2/4` as a shard.

        Raises:
            UsageError: it is none.
        """
        found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
        shard = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not 1 <= shard.number <= shard.of <= MOST:
            raise UsageError(f"--shard {text}: give its number and how many there are, such as 2/4; at most {MOST}")
        return shard

    def cut(self, whole: int) -> int:
        """This shard's share of a number; those of all shards add up to it."""
        return whole * self.number // self.of - whole * (self.number - 1) // self.of
