"""Events of a run: what the journal holds, and all that State is folded from.

`at` is wall time in seconds since 1970; money is nano-dollars. An event is small: the text that belongs to it (a prompt, a
request's body, an answer) is its payload in the journal.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eyas.types import FailureKind, Finish, Label, Prices, StopReason, Verdict, Work


class _Origin(msgspec.Struct, frozen=True, kw_only=True):
    worker: int = 0
    seq: int = 0


class Event(_Origin, frozen=True, tag_field="e", omit_defaults=True):
    """Something that happened, appended to the journal. `at` is wall time in seconds since 1970.

    Where it happened at a worker of the run, `worker` is its number and `seq` that of the event in its own journal.
    """

    at: float


class SessionOpened(Event, frozen=True, tag="open"):
    """A process took up the run. `cap` is nano-dollars (None: no dollar cap); quotas are output tokens by dataset.

    `samples` are answers wanted to each prompt, by dataset where it is not 1; `thinking` is the mode by dataset.
    """

    model: str
    cap: int | None
    quotas: dict[str, int | None]
    waste_limit: int | None = None
    samples: dict[str, int] = {}
    family: str = ""
    thinking: dict[str, bool] = {}


class SessionClosed(Event, frozen=True, tag="close"):
    """The process gave the run back in order; without it the process was killed."""

    reason: StopReason


class PromptAdded(Event, frozen=True, tag="prompt"):
    """A prompt joined the run, or has other later turns now; its text is the payload (Prompt).

    `tokens` is our own count of the rendered prompt, `turns` how many turns of the user come after it.
    """

    dataset: str
    prompt_id: str
    tokens: int
    turns: int = 0


class PromptRemoved(Event, frozen=True, tag="unprompt"):
    """A prompt left the run, confirmed by the user; answers that it has stay."""

    dataset: str
    prompt_id: str


class TurnAdded(Event, frozen=True, tag="turn"):
    """A later turn of a conversation can be asked, the turn before it being answered.

    Its prompt with the history as it is now is the payload (Prompt), `tokens` our own count of it. Should the turn before it
    be answered anew, the event comes again.
    """

    work: Work
    tokens: int


class TurnRefused(Event, frozen=True, tag="noturn"):
    """A later turn cannot be asked, as `detail` says in a sentence; nothing was sent. Its prompt is the payload (Prompt)."""

    work: Work
    detail: str = ""


class Forgotten(Event, frozen=True, tag="forgotten"):
    """The user had prompts removed for good: their texts and answers are erased, these (dataset, prompt id) are left.

    They are never asked again, also where the sources still hold them. What they cost stays booked, as waste.
    """

    prompts: tuple[tuple[str, str], ...]


class Retried(Event, frozen=True, tag="retried"):
    """The user has a work that ended asked again. An answer that it has stands until a better one is durable."""

    work: Work


class Intent(Event, frozen=True, tag="intent"):
    """About to send; durable before the first byte leaves. The exact body is the payload. `reserved` is nano-dollars."""

    attempt: int
    work: Work
    number: int
    tag: str
    prices: Prices
    reserved: int
    mark: str = ""


class Headers(Event, frozen=True, tag="headers"):
    """The API took the request; the generation id finds its cost again."""

    attempt: int
    generation_id: str


class Settled(Event, frozen=True, tag="settled"):
    """An attempt ended: data and money in one event. The answer, if any text came, is the payload (Completion).

    Attributes:
        cost: nano-dollars booked; None keeps the whole reservation as unknown until a correction.
        tokens: output tokens kept for the work (0 unless done or partial).
        kind: what went wrong, if anything.
        counts: (prompt, completion, reasoning) tokens by the API, if it said.
    """

    attempt: int
    verdict: Verdict
    cost: int | None
    tokens: int = 0
    provider: str = ""
    kind: FailureKind | None = None
    finish: Finish | None = None
    counts: tuple[int, int, int | None] | None = None
    first_token: float | None = None
    seconds: float = 0.0
    detail: str = ""
    counted_try: bool = True


class Corrected(Event, frozen=True, tag="corrected"):
    """What an attempt cost became known later, or was written off; costs are nano-dollars and replace the former one."""

    attempt: int
    cost: int
    counts: tuple[int, int, int | None] | None = None
    provider: str = ""
    written_off: bool = False


class Labelled(Event, frozen=True, tag="label"):
    """A provisional label of an answer, for the status; export computes labels anew."""

    attempt: int
    label: Label


class Learned(Event, frozen=True, tag="learned"):
    """What was learned of the providers so far, by provider and mode, for the status; export learns anew."""

    habits: dict[str, dict[str, Any]]


class WorkerJoined(Event, frozen=True, tag="joined"):
    """A worker takes part from now on. Its number is never given again, so that none can be taken for another one."""

    who: int
    node: str = ""


class Granted(Event, frozen=True, tag="granted"):
    """A worker may spend so much more (nano-dollars), and asks these conversations to their ends (dataset -> `Work.rest`).

    `number` counts the grants to it from 1: whoever hears of one twice takes it once.
    """

    to: int
    number: int
    nano: int
    works: dict[str, tuple[str, ...]]


class GivenBack(Event, frozen=True, tag="back"):
    """A worker gave back money that it does not need and conversations that it has not begun. `number` as in `Granted`."""

    by: int
    number: int
    nano: int
    works: dict[str, tuple[str, ...]] = {}


class WorkerLeft(Event, frozen=True, tag="left"):
    """Nothing more comes of a worker: its journal was read to the end and nobody writes it; else it is `written_off`."""

    who: int
    written_off: bool = False


class Capped(Event, frozen=True, tag="capped"):
    """A worker, in its own journal: it may spend `cap` nano-dollars in all from now on (None: nothing is counted)."""

    cap: int | None


class Returned(Event, frozen=True, tag="returned"):
    """A worker, in its own journal: so much it may spend less, and these conversations it leaves. What stands before it counts."""

    number: int
    nano: int
    works: dict[str, tuple[str, ...]] = {}


class Tuned(Event, frozen=True, tag="tuned"):
    """The user changed the running session (`eyas tune`), as sentences say; the next session begins from RUN.toml again."""

    changes: tuple[str, ...]


class Alarm(Event, frozen=True, tag="alarm"):
    """Something that must not happen did, as a sentence: a bill above its reservation, answers that disagree with counts."""

    detail: str
    attempt: int | None = None


AnyEvent = (
    SessionOpened
    | SessionClosed
    | PromptAdded
    | PromptRemoved
    | TurnAdded
    | TurnRefused
    | Forgotten
    | Retried
    | Intent
    | Headers
    | Settled
    | Corrected
    | Labelled
    | Learned
    | Alarm
    | Tuned
    | WorkerJoined
    | Granted
    | GivenBack
    | WorkerLeft
    | Capped
    | Returned
)
