"""Conversations in whole runs: a server that hears every turn, and what is to be seen of them afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from eyas.events import Intent, PromptAdded, Settled
from eyas.families import Loaded
from eyas.report.summary import status
from eyas.sim import Reply
from eyas.types import Completion, Message, Prompt, StopReason, Verdict, Work
from tests.stage import Stage
from tests.virtual import MemoryLog, good, play, script

WELL = " well" * 90


def said(content: str, role: str = "user") -> Message:
    """One message."""
    return {"role": role, "content": content}


def histories(log: MemoryLog, kimi: Loaded) -> int:
    """Every body holds what its conversation said before it, told anew from the journal alone; how many later turns."""
    begun: dict[tuple[str, str], Prompt] = {}
    works: dict[int, Work] = {}
    answers: dict[Work, Completion] = {}
    later = 0
    for number, event in enumerate(log.events, 1):
        if isinstance(event, PromptAdded):
            begun[event.dataset, event.prompt_id] = msgspec.json.decode(log.payloads[number], type=Prompt)
        elif isinstance(event, Intent):
            works[event.attempt], prompt = event.work, begun[event.work.dataset, event.work.prompt_id]
            wanted = list(prompt.messages)
            for turn in range(event.work.turn):
                answer = answers[msgspec.structs.replace(event.work, turn=turn)]
                wanted += [kimi.history(answer), said(prompt.turns[turn])]
            assert json.loads(log.payloads[number])["messages"] == wanted
            later += event.work.turn > 0
        elif isinstance(event, Settled) and event.verdict is Verdict.DONE:
            answers[works[event.attempt]] = msgspec.json.decode(log.payloads[number], type=Completion)
    return later


class Asked:
    """Hears every chat request and answers by its turn."""

    def __init__(self, *answers: Callable[[], Reply]) -> None:
        self.script = script([good])
        self.answers = answers or (good,)
        self.bodies: list[dict[str, Any]] = []

    def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """One request: the n-th turn gets the n-th answer, the last one for all after it."""
        if method != "POST":
            return self.script(method, target, headers, body)
        self.bodies.append(json.loads(body))
        turn = len(self.bodies[-1]["messages"]) // 2
        return self.answers[min(turn, len(self.answers) - 1)]()

    def turns(self) -> list[int]:
        """The turn of each request."""
        return [len(body["messages"]) // 2 for body in self.bodies]


def run(kimi: Loaded, asked: Asked, **settings: Any) -> tuple[Stage, StopReason]:
    """One session."""
    stage = Stage(kimi, **{"prompts": 3, "turns": 2, **settings})
    reason = play(lambda: stage.run(asked.handle))
    stage.check()
    return stage, reason


def figures(stage: Stage, name: str = "A") -> dict[str, int]:
    """What the status says of a dataset, without what is nought."""
    told = status(stage.state, running=False)["datasets"][name]
    return {key: told[key] for key in ("prompts", *map(str, Verdict), "skipped", "pending") if told.get(key)}
