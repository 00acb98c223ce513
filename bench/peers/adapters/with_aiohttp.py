"""Raw aiohttp on uvloop: workers on one iterator, a JSON line an answer to one open file; nothing is durable or resumable."""

from __future__ import annotations

import asyncio

import aiohttp
import common
import orjson
import uvloop


async def whole(response):
    message = orjson.loads(await response.read())
    return message["choices"][0]["message"], message["usage"]


async def streamed(response):
    said, thought, usage, rest = [], [], None, b""
    async for data in response.content.iter_any():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if not line.startswith(b"data: {"):
                continue
            chunk = orjson.loads(line[6:])
            usage = chunk.get("usage") or usage
            delta = chunk["choices"][0]["delta"]
            thought.append(delta.get("reasoning") or "")
            said.append(delta.get("content") or "")
    return {"content": "".join(said), "reasoning": "".join(thought)}, usage


async def worker(session, job, left, file):
    url, read = f"{job.base_url}/chat/completions", streamed if job.stream else whole
    for number, prompt in left:
        body = {
            "model": common.MODEL,
            "messages": [{"role": "user", "content": prompt}],
            "stream": job.stream,
            "max_tokens": common.MAX_TOKENS,
        }
        try:
            async with session.post(url, data=orjson.dumps(body)) as response:
                message, usage = await read(response)
        except (aiohttp.ClientError, orjson.JSONDecodeError, KeyError) as error:
            print(f"prompt {number}: {error!r}")
            continue
        row = {"n": number, "reasoning": message["reasoning"], "content": message["content"], "usage": usage}
        file.write(orjson.dumps(row) + b"\n")


async def run(job):
    headers = {"Authorization": f"Bearer {common.KEY}", "Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    left = iter(enumerate(job.prompts))
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:
        with (job.out / "answers.jsonl").open("wb") as file:
            async with asyncio.TaskGroup() as group:
                for _ in range(job.in_flight):
                    group.create_task(worker(session, job, left, file))


common.main(
    lambda job: uvloop.run(run(job)),
    lambda out: len({row["n"] for row in common.rows([out / "answers.jsonl"]) if row["content"]}),
)
