"""datatrove's InferenceRunner against an endpoint, with checkpoints (SQLite cache and chunk files).

For http:// on this machine datatrove has a path of its own, without the OpenAI SDK that it uses for any real endpoint; the
figures flatter it by that. `aiofiles` must be installed: without it nothing is saved, and nothing is said.
"""

from __future__ import annotations

import common
from datatrove.data import Document
from datatrove.pipeline.inference.run_inference import InferenceConfig, InferenceRunner
from datatrove.pipeline.writers import JsonlWriter

CHUNK = 2000


async def rollout(document, generate):
    messages = [{"role": "user", "content": document.text}]
    return await generate({"messages": messages, "max_tokens": common.MAX_TOKENS})


def run(job):
    local = job.base_url.startswith("http://")
    config = InferenceConfig(
        server_type="endpoint",
        endpoint_url=job.base_url.removesuffix("/v1") if local else job.base_url,
        model_name_or_path=common.MODEL,
        model_max_context=262_144,
        use_chat=True,
        api_key=common.KEY,
        max_concurrent_generations=job.in_flight,
        max_concurrent_documents=job.in_flight,
        metric_interval=3600,
    )
    runner = InferenceRunner(
        rollout,
        config,
        JsonlWriter(str(job.out / "rows"), output_filename="${rank}_chunk_${chunk_index}.jsonl", compression=None),
        checkpoints_local_dir=str(job.out / "checkpoints"),
        records_per_chunk=CHUNK,
    )
    runner.run((Document(text=text, id=str(number)) for number, text in enumerate(job.prompts)), rank=0, world_size=1)


def answered(row):
    return any(result and result.get("text") for result in row["metadata"]["rollout_results"])


common.main(
    run,
    lambda out: len({row["id"] for row in common.rows((out / "rows").rglob("*.jsonl")) if answered(row)}),
)
