"""async-batch-llm with its JSONL artifact store, not fsynced (its default)."""

from __future__ import annotations

import asyncio

import common
from async_batch_llm import JsonlArtifactStore, llm, process_prompts

NAME = "answers.jsonl"


async def run(job):
    strategy = llm(
        f"openai-compatible:{common.MODEL}",
        base_url=job.base_url,
        api_key=common.KEY,
        generation_config={"max_tokens": common.MAX_TOKENS},
    )
    await process_prompts(
        strategy, job.prompts, concurrency=job.in_flight, artifact_store=JsonlArtifactStore(job.out / NAME)
    )


common.main(
    lambda job: asyncio.run(run(job)),
    lambda out: len({row["item_id"] for row in common.rows([out / NAME]) if row.get("success")}),
)
