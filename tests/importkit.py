"""Runs to import into, and rows of every form that hold one and the same answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eyas import config as configs
from eyas.engine.begin import begin
from eyas.engine.bring import Brought, Wish, bring
from eyas.engine.forget import IMPORT_QUARANTINE
from eyas.engine.inputs import Tokenizer, read_inputs
from eyas.engine.kept_apart import keep_apart
from eyas.export import Options, export
from eyas.families import Loaded, by_name
from eyas.records import Run
from eyas.types import Message, Record, Work
from tests import exportkit

TOML = """\
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
tokenizer = {tokenizer}
[budget]
usd = 1.0
keep_from = 4
[[datasets]]
name = "A"
source = "prompts.jsonl"
"""
Ids = list[int]
Rows = Iterable[dict[str, Any]]


class Kit:
    """One run over dataset A, begun and asked nothing."""

    def __init__(self, folder: Path, kimi: Loaded, tokenizer: Path, prompts: Rows, keys: str = "") -> None:
        self.folder, self.kimi = folder, kimi
        self.tokens = Tokenizer(by_name("kimi-k2.5"), kimi)
        folder.mkdir(parents=True, exist_ok=True)
        self.write("prompts.jsonl", prompts)
        path = folder / "RUN.toml"
        path.write_text(TOML.format(tokenizer=json.dumps(str(tokenizer))) + keys)
        self.config = configs.load(path)
        self.dir = self.config.dir
        self.dir.mkdir()
        self.inputs = read_inputs(self.config, self.tokens)
        asyncio.run(begin(self.config, path.read_text(), self.tokens, self.inputs, lambda: 0.0))

    def write(self, name: str, rows: Rows) -> str:
        """A file of rows in the folder."""
        (self.folder / name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return name

    def bring(self, name: str, *, dry: bool = False, **wish: Any) -> Brought:
        """Import a file as the command does."""
        asked = Wish(name, "A", base=self.folder, **wish)
        found = asyncio.run(bring(self.dir, asked, self.config, self.tokens, lambda: 0.0, dry=dry))
        if not dry:
            keep_apart(self.dir / IMPORT_QUARANTINE, found.bad, found.files)
        return found

    def records(self) -> dict[Work, Record]:
        """The answers of the run."""
        with closing(Run(self.dir)) as run:
            return {record.work: record for record in run.records()}

    def run(self) -> Run:
        """The run, to be closed."""
        return Run(self.dir)

    def quarantine(self) -> list[dict[str, Any]]:
        """What is in quarantine."""
        path = self.dir / IMPORT_QUARANTINE
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def export(self, out: Path, stem: str = "rows", **options: Any) -> list[dict[str, Any]]:
        """Exported rows, of every label unless told otherwise."""
        options = {"workers": 1, "labels": "loose", **options}
        export([self.dir], lambda: self.kimi, Options(out, **options))
        return exportkit.rows(out, stem)


Make = Callable[..., Kit]


@pytest.fixture(name="make")
def make_run(kimi: Loaded, kimi_folder: Path, tmp_path: Path) -> Make:
    """Begin a run over so many questions, in a folder of that name."""

    def call(count: int = 3, keys: str = "", name: str = "one", more: Rows = ()) -> Kit:
        return Kit(tmp_path / name, kimi, kimi_folder, [*({"prompt": question(n)} for n in range(count)), *more], keys)

    return call


def question(number: int) -> str:
    """The text of a question."""
    return f"What is {number} and {number}?"


def asked(text: str) -> list[Message]:
    """The messages of a question."""
    return [{"role": "user", "content": text}]


def sampled(kimi: Loaded, reasoning: str = " Hm.", content: str = " It is well.", *, stop: bool = True) -> Ids:
    """The ids of an answer."""
    vocab = kimi.vocab
    middle = [*vocab.encode(reasoning), vocab.specials["</think>"], *vocab.encode(content)]
    return [*middle, kimi.stop] if stop else middle


def forms(kimi: Loaded, messages: list[Message], ids: Ids) -> dict[str, dict[str, Any]]:
    """A row of each form with ids; each says the same answer."""
    prompt = kimi.prompt_ids(messages, (), thinking=True)
    said = kimi.said(ids, thinking=True)
    text = kimi.vocab.decode(ids[:-1] if ids[-1] == kimi.stop else ids)
    usage = {"prompt_tokens": len(prompt), "completion_tokens": len(ids), "total_tokens": len(prompt) + len(ids)}
    meta = {"id": "r", "finish_reason": {"type": "stop", "matched": kimi.stop}, **usage, "cached_tokens": 3}
    message = {"role": "assistant", "reasoning_content": said.reasoning, "content": said.content}
    chat = {"index": 0, "message": message, "finish_reason": "stop", "token_ids": ids}
    body = {"id": "c", "model": "m", "choices": [chat], "prompt_token_ids": prompt, "usage": usage}
    plain = {"index": 0, "text": text, "finish_reason": "stop", "token_ids": ids, "prompt_token_ids": prompt}
    mask = [0] * len(prompt) + [1] * len(ids)
    row = {"id": "x_gen0", "primary_id": "x", "input_ids": prompt + ids, "loss_mask": mask}
    return {
        "sglang ids": {"input_ids": prompt, "text": text, "output_ids": ids, "meta_info": meta},
        "sglang messages": {"messages": messages, "text": text, "output_ids": ids, "meta_info": meta},
        "sglang prompt": {"prompt": messages[-1]["content"], "output_ids": ids, "meta_info": meta},
        "sglang rendered": {"text": kimi.vocab.decode(prompt), "output_ids": ids, "meta_info": meta},
        "vllm flat": {"prompt_token_ids": prompt, "token_ids": ids, "text": text, "finish_reason": "stop"},
        "vllm output": {"prompt": None, "prompt_token_ids": prompt, "outputs": [plain], "finished": True},
        "vllm chat": {**body, "messages": messages},
        "vllm completion": {"choices": [plain], "usage": usage},
        "vllm batch": {"custom_id": "1", "response": {"status_code": 200, "body": body}, "error": None},
        "vllm batch asked": {"custom_id": "1", "body": {"messages": messages}, "response": {"body": body}},
        "speculators": {**row, "metadata": {"finish_reason": "stop", "usage": usage}},
        "speculators talk": {**row, "conversations": [*messages, {"role": "assistant", "content": said.content}]},
        "nested": {"input_ids": [prompt + ids], "loss_mask": [mask]},
    }
