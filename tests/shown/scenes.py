"""What a page takes for granted beyond the common sandbox, and what happens between its commands."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from tests.shown import sandbox
from tests.shown.pages import ROOT
from tests.shown.play import Playing, end
from tests.shown.stage import API, KIMI, QWEN

RUNS = ("run", "runs/kimi-b")
"""Run directories of finished runs that every page has, unless its scene says otherwise."""


def nothing(_: Playing) -> None:
    """No more than the common sandbox."""


@dataclass(frozen=True)
class Scene:
    """Finished runs, servers by the address that the page shows, and what else is prepared.

    `before` is done before the command of that text.
    """

    runs: tuple[str, ...] = RUNS
    servers: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    prepare: Callable[[Playing], None] = nothing
    before: Mapping[str, Callable[[Playing], None]] = field(default_factory=dict[str, Callable[[Playing], None]])


def without_run_toml(playing: Playing) -> None:
    """The page writes it itself."""
    (playing.folder / "RUN.toml").unlink()


def live(name: str, max_tokens: int = 100) -> Callable[[Playing], None]:
    """A run in the directory of that name that goes on: its answers are slow, five tokens a second."""

    def begin(playing: Playing) -> None:
        shutil.rmtree(playing.folder / name, ignore_errors=True)
        text = sandbox.run_toml(name).replace("max_tokens = 100", f"max_tokens = {max_tokens}")
        (playing.folder / "LIVE.toml").write_text(text, encoding="utf-8")
        slow = playing.stage.slow
        before = slow.state()["requests"]
        playing.start("run", "LIVE.toml", "--yes", world=replace(playing.world, api=urlsplit(slow.url).netloc))
        while slow.state()["requests"] == before:
            assert playing.background[-1].poll() is None, playing.errors.read_text(encoding="utf-8")

    return begin


def over(playing: Playing) -> None:
    """That run is over."""
    end(playing.background.pop())


def finished(playing: Playing) -> None:
    """The directory `run` holds a finished run again."""
    shutil.rmtree(playing.folder / "run")
    playing.stage.template.place(playing.folder, "run")


def _killed(playing: Playing) -> None:
    """runs/kill: a run of which two outcomes are not known, and cannot be looked up."""
    sandbox.write_rows(playing.folder / "two.jsonl", [{"question": "One?"}, {"question": "Two?"}])
    text = sandbox.run_toml("runs/kill", {"B4": "two.jsonl"}).replace("[budget]", "recover = false\n[budget]")
    (playing.folder / "KILL.toml").write_text(text, encoding="utf-8")
    ended = playing.eyas("run", "KILL.toml", "--yes", world=replace(playing.world, lost=True))
    assert ended.code == 5, ended.err


def _commands(playing: Playing) -> None:
    without_run_toml(playing)
    _killed(playing)
    for number in (1, 2):
        playing.stage.template.place(playing.folder, f"runs/kimi-b-shard-{number}-of-2")
    text = sandbox.run_toml().replace("[budget]", "[limits]\nin_flights = 5\n[budget]")
    (playing.folder / "B.toml").write_text(text, encoding="utf-8")


def _bad(playing: Playing) -> None:
    """The file of which docs/run-toml.md shows what is wrong."""
    wrong = "max_token = 5\nextra_body = { max_tokens = 5 }"
    text = sandbox.run_toml(datasets={"B 3": "prompts/b3.jsonl"}).replace("max_tokens = 100", wrong)
    text = text.replace("usd = 100.0", 'usd = 100.0\nmode = "loose"\n[limits]\nin_flights = 5')
    (playing.folder / "BAD.toml").write_text(text, encoding="utf-8")


def _many(playing: Playing) -> None:
    """More prompts than a pilot asks, and a quota, so that something is left to plan."""
    names = (name.lower() for name in sandbox.SETS)
    for name in names:
        rows = [{"question": f"{name}: what is {n} + {n}?"} for n in range(60)]
        sandbox.write_rows(playing.folder / "prompts" / f"{name}.jsonl", rows)
    text = sandbox.run_toml().replace("usd = 100.0", "usd = 100.0\noutput_tokens = 10_000")
    (playing.folder / "RUN.toml").write_text(text, encoding="utf-8")


def _own(playing: Playing) -> None:
    """The same run at two servers, with the API for the rest; what was asked before is not of it."""
    servers = 'max_tokens = 100\nbackend = "vllm"\nbase_url = ["http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1"]'
    text = sandbox.run_toml("own").replace("max_tokens = 100", f'{servers}\n[fallback]\nbackend = "openrouter"')
    (playing.folder / "RUN.toml").write_text(text, encoding="utf-8")


def _dearer(playing: Playing) -> None:
    """Another cap and one prompt more, so that a plan made before no longer holds."""
    run, b3 = playing.folder / "RUN.toml", playing.folder / "prompts" / "b3.jsonl"
    run.write_text(run.read_text(encoding="utf-8").replace("usd = 100.0", "usd = 120.0"), encoding="utf-8")
    b3.write_text(b3.read_text(encoding="utf-8") + '{"question": "What is one more?"}\n', encoding="utf-8")


def answers(name: str) -> Callable[[Playing], None]:
    """answers.jsonl: made elsewhere to the prompts of a set."""

    def write(playing: Playing) -> None:
        texts = ((f"{name}: what is {n} + {n}?", str(2 * n)) for n in range(sandbox.PROMPTS))
        rows = [
            {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]}
            for asked, said in texts
        ]
        sandbox.write_rows(playing.folder / "answers.jsonl", rows)

    return write


def _activity(playing: Playing) -> None:
    """What the API's activity endpoint says of a day."""
    row = {"date": "2026-01-16", "model": "moonshotai/kimi-k2.5", "usage": 0.015, "requests": 5}
    (playing.folder / "activity.json").write_text(json.dumps({"data": [row]}), encoding="utf-8")


def _talks(playing: Playing) -> None:
    """Three conversations, of three, two and one turns, none of which is cut."""
    says = ("What is a monad?", "Give an example in Python.", "Shorter, please.")
    rows = [{"messages": [{"role": "user", "content": each} for each in says[:turns]]} for turns in (3, 2, 1)]
    sandbox.write_rows(playing.folder / "talks.jsonl", rows)
    text = sandbox.run_toml(datasets={"talks": "talks.jsonl"}).replace("max_tokens = 100", "max_tokens = 4096")
    (playing.folder / "RUN.toml").write_text(text, encoding="utf-8")


def example(backend: str) -> Callable[[Playing], None]:
    """The folder of one of the examples."""

    def prepare(playing: Playing) -> None:
        shutil.copytree(ROOT / "examples", playing.folder / "examples")
        playing.folder = playing.folder / "examples" / backend

    return prepare


EXAMPLES: dict[str, Scene] = {
    "vllm": Scene((), {f"127.0.0.1:{port}": ("vllm", QWEN) for port in (8000, 8001)}, example("vllm")),
    "sglang": Scene((), {"127.0.0.1:30000": ("sglang", QWEN)}, example("sglang")),
    "llamacpp": Scene((), {"127.0.0.1:8080": ("llamacpp", QWEN)}, example("llamacpp")),
    "openai": Scene((), {"127.0.0.1:8000": ("openai", QWEN)}, example("openai")),
}
"""The example folders in which the commands of their README are played; the simulator of the API has another model."""
NARROW = {
    "endpoint label in out context answer status up verdict": "of a terminal of 80 columns; a pipe gets the column cancel too",
}
"""Heads that a page shows and the sandbox cannot."""
SCENES: dict[str, Scene] = {
    "README.md": Scene(()),
    "docs/commands.md": Scene(
        prepare=_commands,
        before={
            "eyas tune run in_flight=5 drop=chutes": live("run"),
            "eyas tune run in_flight=5": over,
            "eyas retry run --where finish=length --yes": finished,
        },
    ),
    "docs/example.md": Scene(("demo-run/run",)),
    "docs/howto-local.md": Scene((), prepare=_many),
    "docs/howto-resume.md": Scene((), prepare=_many),
    "docs/import.md": Scene((), prepare=answers("B3")),
    "docs/plan.md": Scene(
        (),
        {f"127.0.0.1:{port}": ("vllm", KIMI) for port in (8000, 8001)},
        _many,
        {"eyas plan RUN.toml --pilot 100": _own, "eyas run plan.json --yes": _dearer},
    ),
    "docs/providers.md": Scene(servers={"127.0.0.1:39702": API, "127.0.0.1:8123": ("vllm", KIMI)}),
    "docs/rehearse.md": Scene(()),
    "docs/report.md": Scene(prepare=_activity),
    "docs/run-toml.md": Scene((), prepare=_bad),
    "docs/turns.md": Scene((), prepare=_talks),
}
"""By page."""


def _help(playing: Playing) -> None:
    """A RUN.toml of one set, with answers made elsewhere."""
    text = sandbox.run_toml("runs/b4", {"b4": "prompts/b4.jsonl"})
    (playing.folder / "RUN.toml").write_text(text, encoding="utf-8")
    answers("B4")(playing)


def _begun(playing: Playing) -> None:
    """The same, with a run that has begun: a look at what would join needs one."""
    _help(playing)
    playing.eyas("run", "RUN.toml", "--limit", "1")


FIRST_EVENING = Scene((), prepare=without_run_toml)
HELP = Scene(prepare=_help)
HELPS: dict[str, Scene] = {
    "import": replace(HELP, prepare=_begun),
    "tune": replace(HELP, prepare=live("runs/kimi-b")),
    "watch": replace(HELP, prepare=live("runs/kimi-b", 5)),
}
"""What the examples of a command's help take for granted, where that is not `HELP`."""
