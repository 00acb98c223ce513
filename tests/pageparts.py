"""Parts of reports made by hand: the course of a run, histograms, answers to be read, yield tables."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec

from eyas.report.document import Course, Histogram, Sample, Spread

BEGAN = 1_764_600_000.0
DATASETS = ("B3", "B4", "B5", "B6", "B7", "B8")
PROVIDERS = ("AtlasCloud", "Chutes", "Inceptron", "Moonshot AI", "Parasail", "SiliconFlow")
LABELS = {"streamed": 38, "counted": 27, "stripped": 22, "repaired": 5, "uncounted": 3, "near": 3, "mismatch": 2}
FINISHES = {"stop": 90, "tool_calls": 6, "length": 4}
TEXT = """The answer follows from the triangle inequality: each side is shorter than the other two together . So we add them , and
compare .  First , let x be the number of eggs . Then 3 x + 4 = 19 , hence x = 5 . ```python def f ( x ) : return x ** 2 ``` ok"""
WORDS = [*TEXT.split(), "\n", "\n\n", "\n\treturn"]


def spread(dice: random.Random, middle: float) -> Spread:
    """Some percentiles about a middle."""
    p50 = middle * dice.uniform(0.7, 1.3)
    return Spread(p50=p50, p95=p50 * dice.uniform(2, 4))


def shared(whole: int, shares: dict[str, int]) -> dict[str, int]:
    """A whole number over names by their shares of a hundred."""
    return {name: number for name, part in shares.items() if (number := whole * part // 100)}


def course(moments: int, usd: float, cap: float | None, *, pause: bool = True) -> Course:
    """Of a run of half an hour, with an hour's pause in its middle."""
    along = [1800.0 * i / (moments - 1) for i in range(moments)]
    rest = 3600.0 if pause else 0.0
    at = [BEGAN + each + (rest if each > 900 else 0) for each in along]
    rise = [1 - math.exp(-each / 600) for each in along]
    flight = [int(2000 * min(1.0, each / 60) * (1 if each < 1500 else (1800 - each) / 300)) for each in along]
    return Course(
        at=at,
        settled_usd=[usd * each for each in rise],
        reserved_usd=[usd * 0.2 * each / 2000 for each in flight],
        unknown_usd=[usd * 0.02 * math.sin(each / 300) ** 2 for each in along],
        cap_usd=[cap] * moments,
        tokens_per_second=[each * 10.0 + 700 * math.sin(i / 5) * (each > 0) for i, each in enumerate(flight)],
        in_flight=flight,
        errors_per_minute=[2 + 2 * math.sin(i / 9) for i in range(moments)],
        rejects_per_minute=[40 * max(0.0, math.sin(i / 20)) for i in range(moments)],
        answered=[int(30_000 * each) for each in rise],
        sessions=[(BEGAN, BEGAN + 900), (BEGAN + 900 + rest, BEGAN + 1800 + rest)]
        if pause
        else [(BEGAN, BEGAN + 1800)],
    )


def histogram(dice: random.Random, middle: float) -> Histogram:
    """A bell over bins that grow."""
    edges = [0, *(int(16 * 1.35**i) for i in range(24))]
    counts = [
        int(900 * math.exp(-((math.log((edge + 1) / middle)) ** 2)) * dice.uniform(0.8, 1.2)) for edge in edges[:-1]
    ]
    return Histogram(edges=edges, counts=counts)


def sample(dice: random.Random, number: int, tokens: int = 500, **changes: Any) -> Sample:
    """An answer of reasoning, content and a call, with some tokens masked and one character of three tokens."""
    texts = [("" if i == 0 else " ") + dice.choice(WORDS) for i in range(tokens)]
    marked = [
        "<think>",
        *texts[: tokens // 3],
        "</think>",
        *texts[tokens // 3 :],
        " \\xe2",
        "\\x82",
        "\\xac",
        "<|im_end|>",
    ]
    third = tokens // 3
    channels = [("marker", 1), ("reasoning", third), ("marker", 1), ("content", tokens - third + 3), ("marker", 1)]
    mask = [len(marked) - 8, 4, 4]
    made = Sample(
        id=f"B{3 + number % 6}-{number:05d}",
        dataset=DATASETS[number % 6],
        provider=PROVIDERS[number % 5 + number % 2],
        tag=f"{PROVIDERS[number % 5 + number % 2].lower()}/int4",
        label=list(LABELS)[number % 7],
        detail="the counts agree",
        finish=list(FINISHES)[number % 3],
        usd=0.001,
        prompt_tokens=120,
        completion_tokens=len(marked),
        reasoning_tokens=third,
        supervised_tokens=len(marked) - 4,
        first_token_seconds=0.8,
        seconds=12.5,
        messages=[
            {"role": "system", "content": "You are a careful assistant."},
            {"role": "user", "content": f"Question {number}: {' '.join(dice.choice(WORDS) for _ in range(30))}?"},
        ],
        tools=["add", "search"] if number % 3 == 1 else [],
        tokens=marked,
        mask=mask,
        channels=channels,
        left_out=0 if number % 4 else 700,
    )
    return msgspec.structs.replace(made, **changes)


def yield_table(answers: int, usd: float) -> dict[str, Any]:
    """As a manifest has it."""
    steps = (
        ("prompts", 1.0),
        ("answers", 0.995),
        ("label", 0.94),
        ("kept", 0.94),
        ("max_length", 0.94),
        ("supervised", 0.933),
    )
    losses = (
        ("answers", "waste: the work was asked again", 0, 12, 0, 0.002),
        ("answers", "failed: upstream", 30, 0, 0, 0.003),
        ("label", "label near", 900, 0, 330_000, 0.03),
        ("label", "label mismatch", 700, 0, 270_000, 0.025),
        ("supervised", "ids that are not sure, masked", 0, 0, 80_000, 0.007),
    )
    tokens = answers * 400
    return {
        "steps": [
            {
                "step": name,
                "rows": int(answers * part),
                "tokens": 0 if name == "prompts" else int(tokens * part),
                "usd": usd * part,
            }
            for name, part in steps
        ],
        "losses": [
            {"step": step, "reason": reason, "rows": rows, "requests": requests, "tokens": lost, "usd": usd * part}
            for step, reason, rows, requests, lost, part in losses
        ],
    }
