"""What a report says: the figures of a run, or of several together, as `eyas report --json` prints them. Frozen values only.

The keys are an interface that other programs read (docs/report.md): more may be added, none is renamed. Money is in US
dollars, times are seconds, `at` is seconds since 1970.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The first figures. `supervised_*` is what a strict export would train on; `yield` its share of the dollars paid.

    None where there is nothing to divide by.
    """

    prompts: int
    answers: int
    output_tokens: int
    supervised_tokens: int
    paid_usd: float
    wasted_usd: float
    unknown_usd: float
    yield_share: float | None
    usd_per_m_supervised: float | None
    tokens_per_second: float | None
    seconds: float


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """How the run went, at a few hundred moments. All lists are of one length, but `sessions`.

    Attributes:
        at: the moments, rising; between `sessions` no process ran.
        settled_usd, reserved_usd, unknown_usd: at that moment; together they are the exposure, never above the cap.
        cap_usd: the cap at that moment, None where there is none.
        tokens_per_second: output tokens kept since the moment before, a second; 0 at the first moment of a session.
        in_flight: the most requests that flew at once since the moment before.
        errors_per_minute, rejects_per_minute: failures of other kinds; 429, 503 and the like.
        answered: answers there at that moment.
        sessions: (opened, ended) of each process that carried the run.
    """

    at: list[float]
    settled_usd: list[float]
    reserved_usd: list[float]
    unknown_usd: list[float]
    cap_usd: list[float | None]
    tokens_per_second: list[float]
    in_flight: list[int]
    errors_per_minute: list[float]
    rejects_per_minute: list[float]
    answered: list[int]
    sessions: list[tuple[float, float]]


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of a figure; None where nothing was measured."""

    p50: float | None
    p95: float | None


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint or server that was asked. `labels` are those of a strict export, `failures` by kind.

    `tokens_per_second` is that of single answers: output tokens by the time from the first token to the end.
    """

    tag: str
    name: str
    answers: int
    output_tokens: int
    supervised_tokens: int
    usd: float
    usd_per_m_output: float | None
    usd_per_m_supervised: float | None
    first_token_seconds: Spread
    seconds: Spread
    tokens_per_second: Spread
    failures: dict[str, int]
    labels: dict[str, int]


class Histogram(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of tokens an answer has: `counts[i]` have `edges[i]` or more and fewer than `edges[i + 1]`.

    There is one edge more than counts. Histograms of one kind have the same edges in all datasets; no answers, no edges.
    """

    edges: list[int]
    counts: list[int]


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the prompts, the reasoning and the answers proper (content and calls) of one dataset."""

    prompt: Histogram
    reasoning: Histogram
    answer: Histogram


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """The last answers: how long they kept the run from its end.

    `shares` of the answers (0.5 … 1.0) were there after `seconds` in which a process ran. `slowest` are the answers that took
    longest, longest first: id, dataset, provider, tag, seconds, first_token_seconds, completion_tokens, finish, usd,
    ended_after_seconds (of running).
    """

    shares: list[float]
    seconds: list[float]
    slowest: list[dict[str, Any]]


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """Our books beside the API's on one UTC day; `api_*` is None where the API's figures were not given."""

    day: str
    requests: int
    prompt_tokens: int
    completion_tokens: int
    usd: float
    unknown_usd: float
    api_requests: int | None = None
    api_usd: float | None = None


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """Our books beside the API's by UTC day, and how the costs of requests became known.

    Attributes:
        days: what was settled on them; answers that were imported, or that servers of the user's gave beside an API, are not in it.
        source: where the API's figures are from, else how to get them: a sentence.
        known_by: requests by "answer" (their cost came with it), "lookup" (it came later), "written_off", "unknown".
    """

    days: list[Day]
    source: str
    known_by: dict[str, int]


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The share of the supervised tokens that the most frequent ids cover, `sizes` of them: by dataset, and of all (`total`)."""

    sizes: list[int]
    total: list[float]
    datasets: dict[str, list[float]]
    distinct: int
    vocab_size: int


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of what went wrong: `usd` were paid for no answer, `example` is the last one in words (empty with --no-text)."""

    kind: str
    count: int
    usd: float
    example: str


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    r"""One answer to be read, with its token boundaries.

    Attributes:
        messages: the prompt, as it was asked: role, content, tool_calls (function.name, function.arguments). Where it is long,
            a message has `left_out`: characters that its content went on for, or, with the role "…", messages between.
        tools: names of the tools that were offered.
        tokens: texts of the completion's ids, in order; a part of a character is written as \xNN.
        mask: lengths of runs of one mask value in `tokens`, the first run being of mask 1 (it may be 0 long).
        channels: (channel, tokens) runs over `tokens`: "reasoning", "content", "call", "marker".
        left_out: tokens of the completion that follow and are not here.
        supervised_tokens: those that a strict export trains on; 0 where it leaves the answer out.
        detail: why the label is what it is, or why the answer is left out; may be empty.
    """

    id: str
    dataset: str
    provider: str
    tag: str
    label: str
    detail: str
    finish: str
    usd: float | None
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    supervised_tokens: int
    first_token_seconds: float | None
    seconds: float
    messages: list[dict[str, Any]]
    tools: list[str]
    tokens: list[str]
    mask: list[int]
    channels: list[tuple[str, int]]
    left_out: int = 0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `status` are the figures of `eyas status --json`, `yields` those of the manifest of a strict export.

    Attributes:
        runs: the run directories, by their names.
        state: as in `status`: running, stopped, partial or complete.
        backend: "api", "local", or "both".
        began: when the first session did, 0 where none has.
        finishes, labels: answers by dataset, and within it by why they ended ("none": they were cut) or by label.
        samples: some answers of each (dataset, provider, label, finish), the rarest first; empty with --no-text.
        notes: sentences on what could not be told.
    """

    made_at: float
    eyas: str
    runs: list[str]
    state: str
    model: str
    family: str
    backend: str
    began: float
    headline: Headline
    status: dict[str, Any]
    yields: dict[str, Any]
    course: Course
    endpoints: list[Endpoint]
    lengths: dict[str, Lengths]
    finishes: dict[str, dict[str, int]]
    labels: dict[str, dict[str, int]]
    tail: Tail
    reconciliation: Reconciliation
    coverage: Coverage | None
    troubles: list[Trouble]
    samples: list[Sample]
    notes: list[str]
    schema: int = 1
