"""The OpenAI SDK under a semaphore, a JSON line an answer to one open file; nothing is durable or resumable.

BENCH_VARIANT: empty for the SDK's own pool (1000 connections), "raised" for a pool of as many as are asked for, "aiohttp" for
its aiohttp backend with such a pool. Retries are the SDK's own (2).
"""

from __future__ import annotations

import asyncio
import json
import os

import common
import openai


def client(job):
    variant = os.environ.get("BENCH_VARIANT", "")
    if variant == "":
        return openai.AsyncOpenAI(base_url=job.base_url, api_key=common.KEY)
    kind = {"raised": openai.DefaultAsyncHttpxClient, "aiohttp": openai.DefaultAioHttpClient}[variant]
    module = __import__(openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])
    limits = module.Limits(max_connections=job.in_flight, max_keepalive_connections=job.in_flight, keepalive_expiry=600)
    http = kind(limits=limits, timeout=None)
    return openai.AsyncOpenAI(base_url=job.base_url, api_key=common.KEY, http_client=http, timeout=None)


async def whole(api, request):
    answer = await api.chat.completions.create(**request)
    message = answer.choices[0].message
    return message.content, getattr(message, "reasoning", None), answer.usage


async def streamed(api, request):
    said, thought, usage = [], [], None
    stream = await api.chat.completions.create(**request, stream=True)
    async for chunk in stream:
        usage = chunk.usage or usage
        delta = chunk.choices[0].delta
        said.append(delta.content or "")
        thought.append(getattr(delta, "reasoning", None) or "")
    return "".join(said), "".join(thought), usage


async def one(api, job, number, room, file):
    async with room:
        messages = [{"role": "user", "content": job.prompts[number]}]
        request = {"model": common.MODEL, "messages": messages, "max_tokens": common.MAX_TOKENS}
        try:
            content, reasoning, usage = await (streamed if job.stream else whole)(api, request)
        except openai.OpenAIError as error:
            print(f"prompt {number}: {error!r}")
            return
        row = {"n": number, "reasoning": reasoning, "content": content, "usage": usage and usage.to_dict()}
        file.write(json.dumps(row) + "\n")


async def run(job):
    room = asyncio.Semaphore(job.in_flight)
    async with client(job) as api:
        with (job.out / "answers.jsonl").open("w") as file:
            async with asyncio.TaskGroup() as group:
                for number in range(len(job.prompts)):
                    group.create_task(one(api, job, number, room, file))


common.main(
    lambda job: asyncio.run(run(job)),
    lambda out: len({row["n"] for row in common.rows([out / "answers.jsonl"]) if row["content"]}),
)
