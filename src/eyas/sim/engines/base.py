"""What every wire of a stand-in has in common: its settings, what a request asks for, how its answer is written."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from eyas.families.base import Loaded
from eyas.sim.cutting import Texts
from eyas.sim.engines.author import Answer, Modes
from eyas.sim.engines.playing import Delta, Player
from eyas.sim.reply import Reply


class Told(Enum):
    """Which of the sampled ids a server gives back, if it is asked for them: all, all but the stop token, or none."""

    ALL = "all"
    NO_STOP = "no stop token"
    NONE = "none"


class Streams(Enum):
    """What an event of SGLang's native stream holds: all so far, or what is new."""

    CUMULATIVE = "cumulative"
    INCREMENTAL = "incremental"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a stand-in was started.

    Attributes:
        model: the name that it serves.
        slots: answers at the same time; further ones wait in the order of their arrival.
        speed: tokens a second of one answer; `total_speed` of all together, None is no limit.
        latency: seconds from the start of an answer to its first token.
        context: the most tokens of prompt and answer together.
        interval: tokens in one piece of a stream.
        told, streams: see there.
        fail_after: how many whole answers it lives; None is for ever.
    """

    model: str
    slots: int = 256
    speed: float = 50.0
    total_speed: float | None = None
    latency: float = 0.1
    context: int = 131_072
    interval: int = 1
    told: Told = Told.ALL
    streams: Streams = Streams.CUMULATIVE
    fail_after: int | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """What a wire needs: the settings, the model's family with its tokenizer, its modes, the texts of its tokens."""

    settings: Settings
    loaded: Loaded
    modes: Modes
    texts: Texts

    def known(self, ids: Sequence[int]) -> bool:
        """Whether the ids are a prompt: there is one, and all of them stand in the vocabulary."""
        try:
            for number in set(ids):
                self.texts.of(number)
        except KeyError:
            return False
        return bool(ids)


@dataclass(slots=True)
class Job:
    """One answer in the making.

    Attributes:
        number: counts from 0 in the order of arrival.
        created: Unix time in seconds.
        sent: tokens that the client has been sent.
        arrived, begun, ended: seconds on the server's clock; None: not yet.
        status: queued, running, full (sent to its end) or cancelled (the client went away).
    """

    number: int
    asked: Asked
    answer: Answer
    created: int
    arrived: float
    sent: int = 0
    begun: float | None = None
    ended: float | None = None
    status: str = "queued"

    @property
    def id(self) -> str:
        """32 hexadecimal digits, as a UUID."""
        return f"{self.created:08x}{self.number:024x}"


class Form(Protocol):
    """How one answer is written."""

    @property
    def early(self) -> bool:
        """Whether a stream's head is sent at once, while the request still waits for a slot."""
        ...

    def player(self, answer: Answer) -> Player:
        """Reads the answer token by token."""
        ...

    def head(self, job: Job) -> bytes:
        """What stands before the first token; may be empty."""
        ...

    def piece(self, job: Job, deltas: Sequence[Delta]) -> bytes:
        """The next tokens."""
        ...

    def end(self, job: Job) -> bytes:
        """What stands after the last token; may be empty."""
        ...

    def whole(self, job: Job, deltas: Sequence[Delta]) -> bytes:
        """The body of an answer that is not streamed."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for an answer.

    Attributes:
        prompt: its ids.
        limit: the most tokens of the answer.
        seed: the request's own, if it has one.
        form: how the answer is written.
    """

    prompt: array[int]
    thinking: bool
    limit: int
    stream: bool
    form: Form
    seed: int | None = None


class Wire(Protocol):
    """The paths of a server and what is asked and answered there."""

    @property
    def path(self) -> str:
        """How the base URL ends that a user is given."""
        ...

    def get(self, path: str) -> Reply | None:
        """The reply to a GET; None where there is nothing."""
        ...

    def post(self, path: str, data: bytes) -> Asked | Reply | None:
        """What a POST asks for, or the reply to it; None where there is nothing."""
        ...
