"""What all pages share and what is made but once: simulators, stand-ins of servers, a finished run."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from tests import enginekit, kit
from tests.shown.play import Playing
from tests.shown.sandbox import Template, run_toml, write_prompts
from tests.shown.world import World

KIMI, QWEN = "moonshotai/kimi-k2.5", "Qwen/Qwen3-8B"
"""Models as their servers name them; `Stage` is given their tokenizers under these names and under their hub ids."""
API = ("openrouter", "")
"""The simulator, where a page shows its address."""
QUICK = {"length_median": 60, "length_sigma": 0.8, "tps": 2000, "ttft": 0.01}
SLOW = {"length_median": 5000, "tps": 5, "slots": 0}


class Stage:
    """Everything is started when it is first needed, and ended with the stack."""

    def __init__(self, tokenizers: dict[str, Path], folder: Path, stack: ExitStack) -> None:
        self._tokenizers = tokenizers
        self._folder = folder
        self._stack = stack
        self._servers: dict[tuple[str, str], str] = {}

    @cached_property
    def api(self) -> kit.Sim:
        """A simulator without faults."""
        return self._stack.enter_context(kit.simulator(self._tokenizers[KIMI], **QUICK))

    @cached_property
    def slow(self) -> kit.Sim:
        """A simulator whose answers take minutes."""
        return self._stack.enter_context(kit.simulator(self._tokenizers[KIMI], **SLOW))

    def world(self, servers: dict[str, tuple[str, str]] | None = None) -> World:
        """The world of a page; `servers` are (engine, model) by the address that the page shows."""
        places = {shown: self.server(*server) for shown, server in (servers or {}).items()}
        tokenizers = {name: str(folder) for name, folder in self._tokenizers.items()}
        return World(urlsplit(self.api.url).netloc, tokenizers, places)

    def server(self, engine: str, model: str) -> str:
        """HOST:PORT of the stand-in of an engine that serves a model."""
        if (engine, model) == API:
            return urlsplit(self.api.url).netloc
        if (engine, model) not in self._servers:
            log = self._folder / f"{engine}.log"
            one = enginekit.Replica(
                engine, self._tokenizers[model], log, model=model, latency=0.01, speed=2000, set="length_median=60"
            )
            self._stack.callback(one.stop)
            one.start()
            self._servers[engine, model] = one.place
        return self._servers[engine, model]

    @cached_property
    def template(self) -> Template:
        """A finished run of the six sets."""
        folder = self._folder / "template"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_prompts(folder)
        (folder / "RUN.toml").write_text(run_toml(), encoding="utf-8")
        with ExitStack() as stack:
            ended = Playing(folder, self.world(), self, stack).eyas("run", "RUN.toml", "--yes")
        assert ended.code == 0, ended.err
        return Template(folder)
