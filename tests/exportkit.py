"""Run directories made to measure: the journal that a run with these answers would have left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from eyas import config as configs
from eyas.events import AnyEvent, Headers, Intent, PromptAdded, SessionClosed, SessionOpened, Settled
from eyas.families import Loaded, by_name
from eyas.journal import Journal, Payload
from eyas.types import Completion, Prices, Prompt, Record, StopReason, Verdict, Work

MODEL = "moonshotai/kimi-k2.5"
RESERVED = 5000
WORDS = (" The", " user", " wants", " an", " answer", ".", "\n\n")
_TOML = """\
[run]
dir = "."
[target]
model = "{model}"
tokenizer = {tokenizer}
[budget]
usd = 100.0
"""


def good(answer: Callable[..., Record], numbers: Iterable[int], name: str = "gen") -> list[Record]:
    """Good answers to the prompts of these numbers, of two datasets by turns; `name` begins their generation ids."""
    return [
        answer(
            [WORDS[(i + k) % 7] for k in range(5 + i % 5)],
            [" ok", "."],
            work=Work(("B3", "B4")[i % 2], f"{i:016x}"),
            generation_id=f"{name}-{i}",
        )
        for i in numbers
    ]


def files(out: Path) -> dict[str, bytes]:
    """The files of a folder with their bytes."""
    return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if path.is_file()}


def rows(out: Path, stem: str = "rows") -> list[dict[str, Any]]:
    """The rows of plain shards."""
    return [json.loads(line) for path in sorted(out.glob(f"{stem}-*")) for line in path.read_text().splitlines()]


def load_kimi(folder: Path) -> Loaded:
    """The family of MODEL; a function, so that another process finds it."""
    return by_name("kimi-k2.5").load(folder)


def open_run(folder: Path, tokenizer: Path, datasets: Iterable[str], model: str = MODEL) -> Journal:
    """A new run directory with its frozen RUN.toml, and its journal."""
    folder.mkdir(parents=True)
    text = _TOML.format(model=model, tokenizer=json.dumps(str(tokenizer)))
    text += "".join(f'[[datasets]]\nname = "{name}"\nsource = "{name}.jsonl"\n' for name in datasets)
    configs.freeze(configs.parse(text, folder / "RUN.toml"), text)
    return Journal(folder)


def write_run(
    folder: Path,
    tokenizer: Path,
    records: Sequence[Record],
    *,
    instant: Iterable[str] = (),
    model: str = MODEL,
    more: Iterable[tuple[AnyEvent, Payload]] = (),
) -> Path:
    """A run directory with these answers; the journal holds them in the order given. `more` events follow."""
    datasets = sorted({record.work.dataset for record in records} | {"D"})

    async def write() -> None:
        opened = SessionOpened(
            0.0, model, None, dict.fromkeys(datasets), thinking={name: name not in instant for name in datasets}
        )
        journal.write(opened)
        await append(journal, records)
        for event, payload in more:
            journal.write(event, payload)
        await journal.write(SessionClosed(0.0, StopReason.COMPLETE))

    with closing(open_run(folder, tokenizer, datasets, model)) as journal:
        asyncio.run(write())
    return folder


async def append(journal: Journal, records: Iterable[Record], first: int = 1) -> None:
    """The events of answers, durable when awaited; attempts are numbered from `first` on."""
    seen: set[tuple[str, str]] = set()
    for number, record in enumerate(records, first):
        if (record.work.dataset, record.prompt.id) not in seen:
            seen.add((record.work.dataset, record.prompt.id))
            journal.write(*prompt(record.prompt))
        for event, payload in answered(record, number):
            journal.write(event, payload)
    await journal.flush()


def prompt(asked: Prompt) -> tuple[AnyEvent, Payload]:
    """A prompt joins."""
    return PromptAdded(0.0, asked.dataset, asked.id, 10), asked


def answered(record: Record, number: int) -> Iterable[tuple[AnyEvent, Payload]]:
    """An attempt from its start to its answer."""
    completion = record.completion
    verdict = Verdict.DONE if completion.cut is None else Verdict.PARTIAL
    yield Intent(0.0, number, record.work, 1, record.tag, Prices(1, 1), RESERVED), b"{}"
    if completion.generation_id:
        yield Headers(0.0, number, completion.generation_id), None
    yield settled(number, verdict, record.cost, completion), completion


def settled(number: int, verdict: Verdict, cost: int | None, completion: Completion | None = None) -> Settled:
    """An attempt ends."""
    answer = completion or Completion()
    usage = answer.usage
    counts = (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens) if usage else None
    tokens = usage.completion_tokens if usage else 0
    return Settled(
        0.0, number, verdict, cost, tokens=tokens, provider=answer.provider, finish=answer.finish, counts=counts
    )
