"""flexllm: a batch with its own JSONL output. Defaults changed: 10 at once, no rate limit, 120 s a request."""

from __future__ import annotations

import asyncio

import common
from flexllm import LLMClient

NAME = "answers.jsonl"


async def run(job):
    async with LLMClient(
        provider="openai",
        base_url=job.base_url,
        api_key=common.KEY,
        model=common.MODEL,
        concurrency_limit=job.in_flight,
        max_qps=100_000,
        timeout=common.SECONDS,
        retry_times=3,
    ) as client:
        await client.chat_completions_batch(
            job.prompts, output_jsonl=str(job.out / NAME), show_progress=False, max_tokens=common.MAX_TOKENS
        )


common.main(
    lambda job: asyncio.run(run(job)),
    lambda out: len({row["index"] for row in common.rows([out / NAME]) if row.get("output")}),
)
