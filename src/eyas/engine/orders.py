"""What the coordinator of a run and its workers tell each other. Either may be told the same twice: all of it is numbered.

Orders go to a worker, its report comes back; both say how far the other one was heard.
"""

from __future__ import annotations

import msgspec

from eyas.journal import Row
from eyas.report.live.pulse import Pulse
from eyas.types import Prompt, Work


class Handed(msgspec.Struct, frozen=True):
    """A work to ask, its prompt as it is asked now, and our count of that prompt's tokens."""

    work: Work
    prompt: Prompt
    tokens: int


class Grant(msgspec.Struct, frozen=True):
    """More to spend (nano-dollars), and more to ask. `number` counts the grants to a worker from 1."""

    number: int
    nano: int
    works: tuple[Handed, ...]


class Refusal(msgspec.Struct, frozen=True):
    """An endpoint (empty: the account) refused a request for want of room, at another worker; `retry_after` is seconds."""

    tag: str
    retry_after: float | None = None


class Orders(msgspec.Struct, frozen=True):
    """To a worker.

    Attributes:
        grants: those that it has not said to have taken.
        heard: the last row of its journal that is taken in.
        drop: datasets of which nothing more is wanted: works that are not begun come back.
        squeeze: money that its next request could not use comes back.
        finish: nothing more comes: it ends once nothing flies. Works that it has not begun come back where `drain` is set.
        abort: what flies is ended too, keeping its text.
        refusals: what others were refused since it was told last.
    """

    grants: tuple[Grant, ...] = ()
    heard: int = 0
    drop: tuple[str, ...] = ()
    squeeze: bool = False
    finish: bool = False
    drain: bool = False
    abort: bool = False
    refusals: tuple[Refusal, ...] = ()


class Report(msgspec.Struct, frozen=True):
    """From a worker.

    Attributes:
        rows: what its journal has more than was heard, in order; not always all of it.
        taken: the last grant that it took.
        waiting: works that it has and has not begun.
        in_flight: its requests.
        short: its next request does not fit its lease.
        ended: why its session is over, empty while it is not; `last` is then the last row of its journal.
        detail: the same as a sentence.
        error: the last failure, as a sentence.
        refusals: what it was refused since its last report.
        pulse: what it shows of itself; None before its first tick.
    """

    rows: tuple[Row, ...] = ()
    taken: int = 0
    waiting: int = 0
    in_flight: int = 0
    short: bool = False
    ended: str = ""
    last: int = 0
    detail: str = ""
    error: str = ""
    refusals: tuple[Refusal, ...] = ()
    pulse: Pulse | None = None
