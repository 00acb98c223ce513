"""What only the process that carries a run knows of it, as it leaves it for others to show. A view, and no truth of the run."""

from __future__ import annotations

import msgspec

from eyas.report.end import By, End

FILE = "pulse.json"
"""Its name in a run directory."""
STALE = 15.0
"""Seconds after which a pulse tells nothing of now: its process writes one every second."""


class Lane(msgspec.Struct, frozen=True, omit_defaults=True):
    """One endpoint asked: requests in flight, how many its window lets fly, and output tokens a second.

    `paused` is seconds until it is asked again, `aside` why it is not asked any more (empty: it is).
    """

    in_flight: int
    limit: int
    tokens_per_second: float = 0.0
    paused: float = 0.0
    aside: str = ""


class Flying(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answers of one dataset in flight, the tokens that they have so far, as far as can be guessed, and whole seconds, all together."""

    answers: int = 0
    tokens: int = 0
    seconds: int = 0


class Pulse(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A session at one moment.

    Attributes:
        pid: its process.
        at: the moment, seconds since 1970.
        in_flight, limit: requests that fly, and how many may.
        lanes: the endpoints asked, by tag.
        workers: what each of them has in flight, by its number, in a run over many machines.
        flying: what flies, by dataset.
        tokens_per_second: output tokens that came a second, over the last minute; None in the first seconds.
        lag: age in seconds of the oldest write that is not on the disk yet.
        commit: seconds that the journal's last commit took.
        ends_at: when the session will be over (seconds since 1970) and what ends it (`by`); None while that is not known.
        stopping: why nothing more is started, empty while something is.
    """

    pid: int
    at: float
    in_flight: int = 0
    limit: int = 0
    lanes: dict[str, Lane] = {}
    workers: dict[int, Lane] = {}
    flying: dict[str, Flying] = {}
    tokens_per_second: float | None = None
    lag: float = 0.0
    commit: float = 0.0
    ends_at: float | None = None
    by: By | None = None
    stopping: str = ""

    def end(self, now: float) -> End | None:
        """The predicted end, as seen from `now` (wall seconds)."""
        if self.ends_at is None or self.by is None:
            return None
        return End(max(0.0, self.ends_at - now), 0.0, self.by)

    @property
    def lane(self) -> Lane:
        """All that it asks, as one."""
        return Lane(self.in_flight, self.limit, self.tokens_per_second or 0.0)


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Pulse).decode
"""From the bytes of the file; raises msgspec.MsgspecError for others."""


def current(pulse: Pulse, now: float, pid: int | None) -> bool:
    """Whether a pulse is one of now (wall seconds), of the process that holds the run."""
    return pulse.pid == pid and abs(now - pulse.at) < STALE
