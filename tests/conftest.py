"""Fixtures that several test files share: the Kimi vocabulary, the recorded answers, answers made to measure."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from eyas.errors import UsageError
from eyas.families import Loaded, by_name
from eyas.types import Completion, Finish, Pieces, Prompt, Record, ToolCall, Usage, Work
from eyas.vocab import write_kimi_vocabulary

# How fast a machine is proves nothing: no test fails for the time that it takes.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
RECORDED = Path(__file__).parent / "data" / "recorded"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first: at the end no process is left alone with them."""
    items.sort(key=lambda item: item.get_closest_marker("e2e") is None)


@pytest.fixture(scope="session", autouse=True)
def as_urgent_as_before() -> Generator[None]:
    """A command that steps back (`eyas report --watch`) does not take the tests after it along: no process gets out of that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda _: 0, raising=False)
        yield


@pytest.fixture(scope="session")
def kimi_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Kimi tokenizer's folder, rebuilt once and kept in pytest's cache."""
    cache = request.config.cache
    folder = cache.mkdir("kimi-vocabulary") if cache else tmp_path_factory.mktemp("kimi-vocabulary")
    try:
        return write_kimi_vocabulary(folder)
    except UsageError as error:
        pytest.skip(f"NO KIMI VOCABULARY, token tests do not run: {error}")


@pytest.fixture(scope="session")
def kimi(kimi_folder: Path) -> Loaded:
    """Kimi K2.5 with its real vocabulary."""
    return by_name("kimi-k2.5").load(kimi_folder)


@pytest.fixture(scope="session")
def recorded() -> dict[str, Record]:
    """The recorded Kimi answers by file name without `kimi-` and `.json`."""
    paths = sorted(RECORDED.glob("kimi-*.json"))
    return {path.stem.removeprefix("kimi-"): _record(path.stem, json.loads(path.read_text())) for path in paths}


@pytest.fixture(scope="session")
def answer(kimi: Loaded) -> Callable[..., Record]:
    """Make the record of an answer: its texts as pieces, its counts right unless told otherwise."""

    def make(
        reasoning: Iterable[str] = (),
        content: Iterable[str] = (),
        *,
        finish: Finish | None = Finish.STOP,
        counted: int | None = 0,
        prompt_off: int = 0,
        streamed: bool = True,
        **more: Any,
    ) -> Record:
        """`counted` is added to the number of pieces and markers; None leaves the usage out."""
        r, c = tuple(reasoning), tuple(content)
        work = more.pop("work", Work("D", "0" * 16))
        prompt = Prompt(work.prompt_id, work.dataset, ({"role": "user", "content": f"Say {work.prompt_id}."},))
        ended = finish in (Finish.STOP, Finish.TOOL_CALLS)
        total = len(r) + len(c) + bool(c or ended) + ended
        length = kimi.count_prompt(prompt.messages, (), thinking=True) + prompt_off
        usage = None if counted is None else Usage(length, total + counted, reasoning_tokens=len(r) + 1)
        completion = Completion(
            reasoning="".join(r),
            content="".join(c),
            finish=finish,
            usage=more.pop("usage", usage),
            provider=more.pop("provider", "P"),
            pieces=Pieces(tuple(map(len, r)), tuple(map(len, c))) if streamed else None,
            **more,
        )
        return Record(work, prompt, completion, tag="p", cost=1000, attempt=1)

    return make


def _record(name: str, exchange: dict[str, Any]) -> Record:
    request = exchange["request"]
    prompt = Prompt("0" * 16, "recorded", tuple(request["messages"]), tuple(request.get("tools") or ()))
    body = exchange["body"].strip()
    chunks = _chunks(body) if body.startswith(":") else [json.loads(body)]
    pieces: dict[str, list[str]] = {"reasoning": [], "content": []}
    calls: dict[int, dict[str, str]] = {}
    finish = usage = None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices", ()):
            finish = choice.get("finish_reason") or finish
            delta = choice.get("delta") or choice.get("message")
            for channel, texts in pieces.items():
                texts.extend([delta[channel]] if delta.get(channel) else [])
            for index, call in enumerate(delta.get("tool_calls") or ()):
                slot = calls.setdefault(call.get("index", index), {"id": "", "name": "", "arguments": ""})
                slot["id"] += call.get("id") or ""
                slot["name"] += call["function"].get("name") or ""
                slot["arguments"] += call["function"].get("arguments") or ""
    assert usage is not None
    lengths = Pieces(tuple(map(len, pieces["reasoning"])), tuple(map(len, pieces["content"])))
    completion = Completion(
        reasoning="".join(pieces["reasoning"]),
        content="".join(pieces["content"]),
        tool_calls=tuple(ToolCall(**calls[index]) for index in sorted(calls)),
        finish=Finish(finish),
        usage=Usage(
            usage["prompt_tokens"],
            usage["completion_tokens"],
            usage["completion_tokens_details"]["reasoning_tokens"],
        ),
        provider=chunks[0]["provider"],
        model=chunks[0]["model"],
        pieces=lengths if len(chunks) > 1 else None,
    )
    return Record(Work("recorded", prompt.id), prompt, completion, tag=name, cost=None, attempt=1)


def _chunks(body: str) -> list[dict[str, Any]]:
    lines = (line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: {"))
    return [json.loads(line) for line in lines]
