"""The books of a stand-in: every answer with its sampled ids, how far it was sent, and a log that outlives a kill."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from typing import Any, BinaryIO

import msgspec

from eyas.sim.engines.base import Job


class Books:
    """Jobs and counters of one server."""

    def __init__(self, log: BinaryIO | None = None) -> None:
        """To an unbuffered `log` a JSON line is written when an answer begins, and one when it ends."""
        self.jobs: list[Job] = []
        self.refused = 0
        self._log = log

    def mark(self, job: Job) -> None:
        """The job has begun or ended."""
        if self._log is not None:
            row = {"number": job.number, "prompt": prompt_key(job.asked.prompt), "status": job.status,
                   "tokens": job.answer.size, "sent": job.sent}  # fmt: skip
            self._log.write(msgspec.json.encode(row) + b"\n")

    def to_json(self, *, ids: bool) -> dict[str, Any]:
        """Counters, by prompt too, and with `ids` every answer, ready for JSON."""
        states = Counter(job.status for job in self.jobs)
        prompts: dict[str, dict[str, int]] = {}
        for job in self.jobs:
            counts = prompts.setdefault(prompt_key(job.asked.prompt), {"asked": 0, "finished": 0})
            counts["asked"] += 1
            counts["finished"] += job.status == "full"
        counters: dict[str, Any] = {
            "requests": len(self.jobs) + self.refused,
            "refused": self.refused,
            "begun": sum(job.begun is not None for job in self.jobs),
            "finished": states["full"],
            "cancelled": states["cancelled"],
            "running": states["running"],
            "queued": states["queued"],
            "tokens": sum(job.sent for job in self.jobs),
            "tokens_finished": sum(job.sent for job in self.jobs if job.status == "full"),
            "prompts": prompts,
        }
        return counters | ({"answers": [_row(job) for job in self.jobs]} if ids else {})


def prompt_key(prompt: array[int]) -> str:
    """sha256 of a prompt's ids as little-endian int32."""
    return hashlib.sha256(prompt.tobytes()).hexdigest()


def _row(job: Job) -> dict[str, Any]:
    return {
        "number": job.number,
        "id": job.id,
        "prompt": prompt_key(job.asked.prompt),
        "prompt_ids": job.asked.prompt.tolist(),
        "ids": job.answer.ids.tolist(),
        "finish": job.answer.finish,
        "drifted": job.answer.drifted,
        "thinking": job.asked.thinking,
        "stream": job.asked.stream,
        "status": job.status,
        "sent": job.sent,
        "arrived": job.arrived,
        "begun": job.begun,
        "ended": job.ended,
    }
