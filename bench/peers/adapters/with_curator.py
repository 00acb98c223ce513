"""curator's online OpenAI backend with its cache folder. Its display, telemetry and viewer are off; no rate limit bites.

tiktoken would download its table: the copy that litellm carries is named instead.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import common

SILENT = {
    "TELEMETRY_ENABLED": "0",
    "CURATOR_DISABLE_RICH_DISPLAY": "1",
    "CURATOR_VIEWER": "0",
    "OPENAI_API_KEY": common.KEY,
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "HF_HUB_OFFLINE": "1",
}
NAME = "cache"


def run(job):
    litellm = Path(importlib.util.find_spec("litellm").origin).parent
    tables = litellm / "litellm_core_utils" / "tokenizers"
    os.environ |= SILENT | {"TIKTOKEN_CACHE_DIR": str(tables), "CURATOR_CACHE_DIR": str(job.out / NAME)}
    from bespokelabs import curator  # noqa: PLC0415  # reads the environment when it is imported
    from datasets import Dataset  # noqa: PLC0415

    class Asker(curator.LLM):
        def prompt(self, row):
            return row["prompt"]

        def parse(self, row, response):
            return {"prompt": row["prompt"], "answer": response}

    asker = Asker(
        model_name="gpt-4o-mini",
        backend="openai",
        backend_params={
            "base_url": job.base_url,
            "api_key": common.KEY,
            "max_requests_per_minute": 10_000_000,
            "max_tokens_per_minute": 10_000_000_000,
            "max_concurrent_requests": job.in_flight,
            "max_retries": 3,
            "request_timeout": common.SECONDS,
        },
        generation_params={"max_tokens": common.MAX_TOKENS},
    )
    asker(Dataset.from_dict({"prompt": job.prompts}))


def answered(row):
    return bool(row.get("response_message"))


common.main(
    run,
    lambda out: len(
        {
            row["generic_request"]["original_row_idx"]
            for row in common.rows((out / NAME).rglob("responses_*.jsonl"))
            if answered(row)
        }
    ),
)
