"""The attempts of a run, by number. Those that are done with stay packed until somebody asks: most of a large run never are."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping, Sequence, ValuesView
from typing import Any, get_type_hints

import msgspec

from eyas.events import Settled
from eyas.standing import Attempt

_AT = Attempt.__struct_fields__.index("settled")
_SETTLED = get_type_hints(Settled)
_ATTEMPT = get_type_hints(Attempt)
_END: Any = msgspec.defstruct(
    "_END", [(name, _SETTLED[name]) for name in Settled.__struct_fields__], array_like=True, frozen=True
)
_Packed: Any = msgspec.defstruct(
    "_Packed",
    [(name, _END if name == "settled" else _ATTEMPT[name]) for name in Attempt.__struct_fields__],
    array_like=True,
)
"""An attempt without the names of its fields: a third of the bytes."""


def plain(attempt: Attempt) -> bool:
    """Whether an attempt is done with: it brought the answer that its work stands by, without a fault, at a known cost."""
    return (
        attempt.answered and attempt.cost is not None and attempt.settled is not None and attempt.settled.kind is None
    )


def pack(attempt: Attempt) -> bytes:
    """A plain attempt as bytes."""
    values = msgspec.structs.astuple(attempt)
    return _encode([msgspec.structs.astuple(each) if isinstance(each, Settled) else each for each in values])


def _unpack(raw: bytes) -> Attempt:
    values: list[Any] = [*msgspec.structs.astuple(_decode(raw))]
    values[_AT] = Settled(**dict(zip(_END.__struct_fields__, msgspec.structs.astuple(values[_AT]), strict=True)))
    return Attempt(*values)


class Attempts(MutableMapping[int, Attempt]):
    """Attempts by number, in its order. `unpacked` gives all but plain ones that nobody has asked for yet."""

    __slots__ = ("_last", "_live", "_packed", "_sorted")

    def __init__(self) -> None:
        self._live: dict[int, Attempt] = {}
        self._packed: dict[int, bytes] = {}
        self._last = 0
        self._sorted = True

    def __getitem__(self, number: int) -> Attempt:
        found = self._live.get(number)
        if found is None:
            found = _unpack(self._packed[number])
            self[number] = found
        return found

    def __setitem__(self, number: int, attempt: Attempt) -> None:
        self._packed.pop(number, None)
        self._sorted = self._sorted and number > self._last
        self._last = number
        self._live[number] = attempt

    def __delitem__(self, number: int) -> None:
        if self._packed.pop(number, None) is None:
            del self._live[number]

    def __contains__(self, number: object) -> bool:
        return number in self._live or number in self._packed

    def __iter__(self) -> Iterator[int]:
        plain = self._sorted and not self._packed
        return iter(self._live if plain else sorted((*self._packed, *self._live)))

    def __len__(self) -> int:
        return len(self._live) + len(self._packed)

    def __repr__(self) -> str:
        return f"Attempts({dict(self.items())!r})"

    def values(self) -> ValuesView[Attempt]:
        """All, to be looked at only: who changes one asks for it by its number."""
        return self._live.values() if self._sorted and not self._packed else _Looked(self)

    def items(self) -> ItemsView[int, Attempt]:
        """The same with their numbers."""
        return self._live.items() if self._sorted and not self._packed else _LookedItems(self)

    def unpacked(self) -> Iterator[Attempt]:
        """All but plain ones that nobody has asked for, in order, to be looked at only."""
        return (self._live[number] for number in (self._live if self._sorted else sorted(self._live)))

    def look(self) -> Iterator[Attempt]:
        """All, in order; those that are packed stay so."""
        for number in self:
            found = self._live.get(number)
            yield _unpack(self._packed[number]) if found is None else found

    def put_packed(self, numbers: Sequence[int], raws: Sequence[bytes]) -> None:
        """Plain attempts as they were packed; they stand over others of their numbers."""
        for number in () if self._live.keys().isdisjoint(numbers) else numbers:
            self._live.pop(number, None)
        self._packed.update(zip(numbers, raws, strict=True))


class _Looked(ValuesView[Attempt]):
    """All attempts, unpacked one by one."""

    def __init__(self, attempts: Attempts) -> None:
        super().__init__(attempts)
        self._attempts = attempts

    def __iter__(self) -> Iterator[Attempt]:
        return self._attempts.look()


class _LookedItems(ItemsView[int, Attempt]):
    """The same with their numbers."""

    def __init__(self, attempts: Attempts) -> None:
        super().__init__(attempts)
        self._attempts = attempts

    def __iter__(self) -> Iterator[tuple[int, Attempt]]:
        return ((attempt.id, attempt) for attempt in self._attempts.look())


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Packed).decode
