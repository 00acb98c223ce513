"""The tools that are compared, each in a virtual environment of its own, made at first use."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import load

HERE = Path(__file__).parent


class NotInstalledError(RuntimeError):
    """A tool's environment cannot be made; the message is the installer's last word."""


@dataclass(frozen=True)
class Tool:
    """One tool.

    `venv` names its environment and `requirements-VENV.txt` (empty: the harness's own); `adapter` is a script in
    adapters/ (empty: eyas and the drain, which the harness starts itself); `keeps` says what a kill leaves; `why_not` is
    why a tool has no streaming mode, empty where it has one.
    """

    name: str
    adapter: str
    venv: str
    keeps: str
    why_not: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def persists(self) -> bool:
        """Whether answers outlive a kill and a second start goes on with them: the group that eyas belongs to."""
        return "resumes" in self.keeps


_FILE = "a file, no resume"
TOOLS = {
    tool.name: tool
    for tool in (
        Tool("eyas", "", "", "fsynced journal, resumes"),
        Tool("curator", "with_curator.py", "curator", "files, resumes", "its batches are not streamed"),
        Tool("datatrove", "with_datatrove.py", "datatrove", "checkpoints, resumes", "its rollouts are not streamed"),
        Tool("flexllm", "with_flexllm.py", "flexllm", "JSON lines, resumes", "its batches are not streamed"),
        Tool("async-batch-llm", "with_async_batch_llm.py", "async-batch-llm", "JSON lines, resumes", "its batches are not streamed"),
        Tool("openai", "with_openai.py", "openai", _FILE),
        Tool("openai-aiohttp", "with_openai.py", "openai", _FILE, env={"BENCH_VARIANT": "aiohttp"}),
        Tool("openai-raised", "with_openai.py", "openai", _FILE, env={"BENCH_VARIANT": "raised"}),
        Tool("aiohttp", "with_aiohttp.py", "aiohttp", _FILE),
        Tool("drain", "", "", "nothing", ""),
    )
}  # fmt: skip
"""By name. `drain` is the floor: a C program that decrypts streams and throws them away; it has no other mode."""

DEFAULT = ("eyas", "curator", "datatrove", "flexllm", "async-batch-llm", "openai", "openai-aiohttp", "aiohttp", "drain")


def version(tool: Tool) -> str:
    """The pinned version of the package that a tool is, as its requirements say it."""
    if not tool.venv:
        return "this tree" if tool.name == "eyas" else "C, OpenSSL"
    return requirements(tool).read_text().split()[0].partition("==")[2]


def requirements(tool: Tool) -> Path:
    """What pip installs for a tool."""
    return HERE / f"requirements-{tool.venv}.txt"


def python(tool: Tool) -> Path:
    """The interpreter of a tool's environment; makes the environment, and says so, if it is not there.

    Raises:
        NotInstalledError: it cannot be made.
    """
    if not tool.venv:
        return Path(sys.executable)
    folder = load.cache() / "peers" / tool.venv
    mark = folder / f".done-{hashlib.sha256(requirements(tool).read_bytes()).hexdigest()[:12]}"
    binary = folder / "bin" / "python"
    if not mark.exists():
        print(f"{tool.name}: making {folder}, pip installs {requirements(tool).name} ...", file=sys.stderr, flush=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(binary), "-m", "pip", "install", "--disable-pip-version-check", "-r", str(requirements(tool))])
        mark.touch()
    return binary


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise NotInstalledError(said[-1] if said else f"{' '.join(command[:4])} ended with {done.returncode}")
