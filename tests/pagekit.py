"""Reports made by hand for the tests of the page: of a run of 30 000 answers, of servers without dollars, of nothing."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec

from eyas.report import workers
from eyas.report.document import (
    Course,
    Coverage,
    Day,
    Endpoint,
    Headline,
    Lengths,
    Reconciliation,
    Report,
    Tail,
    Trouble,
)
from tests.pageparts import (
    BEGAN,
    DATASETS,
    FINISHES,
    LABELS,
    PROVIDERS,
    course,
    histogram,
    sample,
    shared,
    spread,
    yield_table,
)

_WORKERS = [
    ("10.0.0.1", "left", 15_850, 5_900_000, 45.15, 0.0, 0),
    ("10.0.0.2", "written off", 14_000, 6_100_000, 41.25, 0.0, 0),
    ("10.0.0.3", "away or at work", 0, 0, 0.0, 1.75, 12),
]
LED: dict[str, Any] = {
    "alarms": [],
    "workers": {str(number): dict(zip(workers.HEADS, each, strict=True)) for number, each in enumerate(_WORKERS, 1)},
}
"""What `eyas status --json` says of a run over three machines, as far as the page reads it."""


def report(*, samples: int = 60, tokens: int = 500, usd: float = 86.4, **changes: Any) -> Report:
    """A run of 30 000 answers for so many dollars; none for servers of one's own."""
    dice = random.Random(7)
    each = usd / len(PROVIDERS)
    made = Report(
        made_at=BEGAN + 5600,
        eyas="0.1.0",
        runs=["run"],
        state="complete",
        model="moonshotai/kimi-k2.5",
        family="kimi-k2.5",
        backend="api" if usd else "local",
        began=BEGAN,
        headline=Headline(
            prompts=30_000,
            answers=29_850,
            output_tokens=12_000_000,
            supervised_tokens=11_196_000,
            paid_usd=usd,
            wasted_usd=usd * 0.002,
            unknown_usd=0.0,
            yield_share=0.933 if usd else None,
            usd_per_m_supervised=usd / 11.196 if usd else None,
            tokens_per_second=6667.0,
            seconds=1800.0,
        ),
        status={"alarms": ["Parasail: 2 of 72 answers (2.8 %) do not agree with its own counts"]},
        yields={
            "total": yield_table(30_000, usd),
            "datasets": {name: yield_table(5000, usd / 6) for name in DATASETS},
        },
        course=course(400, usd, 100.0 if usd else None),
        endpoints=[
            Endpoint(
                tag=f"{name.lower().replace(' ', '')}/int4",
                name=name,
                answers=1000 + 1700 * place,
                output_tokens=400_000 * (place + 1),
                supervised_tokens=370_000 * (place + 1),
                usd=each,
                usd_per_m_output=usd / 15 * dice.uniform(0.5, 1.4) if usd else None,
                usd_per_m_supervised=usd / 14 * dice.uniform(0.5, 1.4) if usd else None,
                first_token_seconds=spread(dice, 0.9),
                seconds=spread(dice, 18),
                tokens_per_second=spread(dice, 40),
                failures={"rate_limit": 40 + place, "cut": 9 * place, "lost": 4, "upstream": 3 * place},
                labels=shared(1000 + 1700 * place, LABELS),
            )
            for place, name in enumerate(PROVIDERS)
        ],
        lengths={
            name: Lengths(prompt=histogram(dice, 90), reasoning=histogram(dice, 200), answer=histogram(dice, 380))
            for name in DATASETS
        },
        finishes={name: shared(5000, FINISHES) for name in DATASETS},
        labels={name: shared(5000, LABELS) for name in DATASETS},
        tail=Tail(
            shares=[0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0],
            seconds=[700, 850, 1000, 1180, 1380, 1500, 1600, 1650, 1700, 1760, 1800],
            slowest=[
                {
                    "id": f"B8/{n:05d}/0",
                    "dataset": "B8",
                    "provider": "Parasail",
                    "tag": "parasail/int4",
                    "finish": "stop",
                    "completion_tokens": 8000 - n,
                    "usd": usd / 9000,
                    "first_token_seconds": 1.5,
                    "seconds": 240.5 - n,
                    "ended_after_seconds": 1790.0 - n,
                }
                for n in range(5)
            ],
        ),
        reconciliation=Reconciliation(
            days=[
                Day(
                    day="2025-12-01",
                    requests=29_000,
                    prompt_tokens=3_500_000,
                    completion_tokens=11_500_000,
                    usd=usd * 0.96,
                    unknown_usd=0.0,
                    api_requests=29_010,
                    api_usd=usd * 0.961,
                ),
                Day(
                    day="2025-12-02",
                    requests=1000,
                    prompt_tokens=120_000,
                    completion_tokens=500_000,
                    usd=usd * 0.04,
                    unknown_usd=0.01 if usd else 0.0,
                ),
            ],
            source="activity.csv, rows of moonshotai/kimi-k2.5",
            known_by={"answer": 29_700, "lookup": 140, "written_off": 2, "unknown": 8},
        )
        if usd
        else Reconciliation(days=[], source="", known_by={}),
        coverage=Coverage(
            sizes=[1000, 2000, 4000, 8000, 16000, 32000, 64000],
            total=[1 - 0.45 * math.exp(-i / 1.4) for i in range(7)],
            datasets={
                name: [1 - 0.45 * math.exp(-i / (1.2 + place / 9)) for i in range(7)]
                for place, name in enumerate(DATASETS)
            },
            distinct=61_204,
            vocab_size=163_840,
        ),
        troubles=[
            Trouble(kind="rate_limit", count=255, usd=0.0, example="503 Moonshot AI: Provider temporarily unavailable"),
            Trouble(kind="cut", count=135, usd=usd * 0.001, example="the stream ended without a finish_reason"),
            Trouble(
                kind="lost", count=24, usd=0.0, example="ConnectionResetError: [Errno 104] Connection reset by peer"
            ),
        ],
        samples=[sample(dice, number, tokens) for number in range(samples)],
        notes=["The costs of 8 requests are not known yet: eyas reconcile run"],
    )
    return msgspec.structs.replace(made, **changes)


def nothing() -> Report:
    """A run that has only just been opened."""
    empty = Course(
        at=[], settled_usd=[], reserved_usd=[], unknown_usd=[], cap_usd=[], tokens_per_second=[], in_flight=[],
        errors_per_minute=[], rejects_per_minute=[], answered=[], sessions=[],
    )  # fmt: skip
    line = Headline(
        prompts=12, answers=0, output_tokens=0, supervised_tokens=0, paid_usd=0.0, wasted_usd=0.0, unknown_usd=0.0,
        yield_share=None, usd_per_m_supervised=None, tokens_per_second=None, seconds=0.0,
    )  # fmt: skip
    return report(
        samples=0,
        usd=0.0,
        state="running",
        headline=line,
        status={},
        yields={},
        course=empty,
        endpoints=[],
        lengths={},
        finishes={},
        labels={},
        tail=Tail(shares=[], seconds=[], slowest=[]),
        coverage=None,
        troubles=[],
        notes=[],
    )
