"""Install what `make dist` made as a stranger would, on each Python found, and use it.

    python release/wheel.py [--dist dist] [--full] [--here] [--python python3.13 ...]

For each of python3.11, python3.12, … on PATH or kept by pyenv, and each --python: a bare venv, the wheel with its extra `demo`,
and commands run from an empty folder, far from any checkout. --here: of the Python that runs this only, and each --python. On
the first Python the sdist too. --full answers the whole demo there (two minutes); all others answer the first prompt of each
set. Exit 0 if all went well, 1 if not, 2 if there is nothing to install.

The standard library is all that it needs. Installing needs the network.
"""

import argparse
import functools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

OLDEST, NEWEST = 11, 19
"""Minor versions of Python 3 that are looked for on PATH."""

HELPS = 20
"""How often `eyas --help` is timed."""

MODULES = """
import importlib, pathlib, pkgutil, sys, warnings
import eyas
home = pathlib.Path(eyas.__file__).resolve()
assert home.is_relative_to(pathlib.Path(sys.prefix).resolve()), f"not the installed package: {home}"
warnings.filterwarnings("error", module=r"(.*/site-packages/)?eyas\\b")
names = [m.name for m in pkgutil.walk_packages(eyas.__path__, "eyas.") if not m.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
for name in eyas.__all__:
    getattr(eyas, name)
print(len(names))
"""
"""Imports every module: a warning that Python has of one of them (a part of it that is going away) is an error."""


class Failed(Exception):
    """A step did not do what it should."""


@dataclass
class Tried:
    """One installation. `figures` holds what each step found, by the head of its column."""

    python: Path
    what: Path
    figures: dict[str, str] = field(default_factory=dict)
    fault: str = ""


@dataclass
class Place:
    """A folder with a venv, and an empty folder to stand in."""

    home: Path

    @property
    def venv(self) -> Path:
        """The venv."""
        return self.home / "venv"

    @property
    def empty(self) -> Path:
        """Where commands are run."""
        return self.home / "empty"

    @property
    def environment(self) -> dict[str, str]:
        """Nothing in it leads Python or eyas elsewhere."""
        elsewhere = ("PYTHON", "VIRTUAL_ENV", "EYAS", "OPENROUTER")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(elsewhere)}
        return {**kept, "PATH": f"{self.venv / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONNOUSERSITE": "1"}

    def run(self, *words: str, seconds: float = 600) -> str:
        """What a command of the venv prints.

        Raises:
            Failed: it ends with another code than 0, or not in time.
        """
        try:
            done = subprocess.run(
                [self.venv / "bin" / words[0], *words[1:]],
                cwd=self.empty, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Failed(f"`{' '.join(words)[:60]}` took more than {seconds:.0f} s") from None
        if done.returncode:
            said = (done.stderr or done.stdout)[-600:]
            raise Failed(f"`{' '.join(words)[:60]}` ended with {done.returncode}: {said}")
        return done.stdout

    def cpu(self, *words: str) -> float:
        """Seconds of CPU that a command of the venv takes, user and system."""
        with subprocess.Popen(
            [self.venv / "bin" / words[0], *words[1:]], cwd=self.empty, env=self.environment, stdout=subprocess.DEVNULL
        ) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        return used.ru_utime + used.ru_stime


def version(python: str | Path) -> str:
    """Version of an interpreter; empty if it does not start, as pyenv's of a version that is not switched on does not."""
    asked = subprocess.run(
        [python, "-c", "import ensurepip, sys; print(sys.version.split()[0])"],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() if asked.returncode == 0 else ""


def on_machine(name: str) -> Path | None:
    """The first interpreter of that name that starts and can make a venv: on PATH, then among pyenv's."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    paths = [folder / name for folder in folders] + sorted(kept.glob(f"*/bin/{name}"))
    return next((path for path in paths if path.is_file() and version(path)), None)


def pythons(named: list[str], *, here: bool) -> list[Path]:
    """The interpreters to try: the first of each minor version on this machine (`here`: the one that runs this), then those named."""
    names = () if here else (f"python3.{minor}" for minor in range(OLDEST, NEWEST + 1))
    found = [Path(sys.executable) if here else None, *map(on_machine, names)]
    for name in named:
        path = shutil.which(name)
        if path is None or not version(path):
            raise SystemExit(f"{name} does not start: name an interpreter on PATH, or its path")
        found.append(Path(path))
    return [path for path in found if path is not None]


def artefacts(dist: Path) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    wheels, sdists = sorted(dist.glob("eyas-*.whl")), sorted(dist.glob("eyas-*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        print(
            f"{dist} holds {len(wheels)} wheels and {len(sdists)} sdists, not one of each: run `make dist`",
            file=sys.stderr,
        )
        raise SystemExit(2)
    return wheels[0].resolve(), sdists[0].resolve()


def version_of(artefact: Path) -> str:
    """The version that a wheel's or sdist's name gives."""
    return artefact.name.removesuffix(".tar.gz").split("-")[1]


def install(tried: Tried, place: Place) -> None:
    """A bare venv with that artefact and the demo's vocabulary; no requirement contradicts another."""
    begun = time.monotonic()
    place.empty.mkdir(parents=True)
    subprocess.run([tried.python, "-m", "venv", place.venv], check=True)
    tried.figures["Python"] = place.run("python", "-c", "import sys; print(sys.version.split()[0])").strip()
    place.run("python", "-m", "pip", "install", "--quiet", f"eyas[demo] @ {tried.what.as_uri()}")
    tried.figures["installed"] = f"{time.monotonic() - begun:.0f} s"
    place.run("python", "-m", "pip", "check")


def look(tried: Tried, place: Place) -> None:
    """It is the version that was installed, of that place; every module loads without a warning."""
    said, wanted = place.run("eyas", "--version").strip(), version_of(tried.what)
    if not said.endswith(f" {wanted}"):
        raise Failed(f"`eyas --version` says {said!r}, the file is of {wanted}")
    cache = (
        f"pycache_prefix={place.home / 'compiled'}"  # else a warning of the compiler was said to pip, at installation
    )
    tried.figures["modules"] = place.run("python", "-X", cache, "-c", MODULES).strip()


def ask_for_help(tried: Tried, place: Place) -> None:
    """CPU that `eyas --help` takes: the median of many."""
    if "Usage: eyas" not in place.run("eyas", "--help"):
        raise Failed("`eyas --help` says nothing of its usage")
    spent = sorted(place.cpu("eyas", "--help") for _ in range(HELPS))
    tried.figures["--help"] = f"{statistics.median(spent) * 1000:.0f} ms CPU"


def demo(tried: Tried, place: Place, *, full: bool) -> None:
    """From prompts to rows: no answer is lost, and rows are there."""
    begun = time.monotonic()
    said = place.run("eyas", "demo", "--out", "d", *(() if full else ("--limit", "1")))
    answers = re.search(r"^(\d+) requests", said, re.MULTILINE)
    rows = sum(len(path.read_bytes().splitlines()) for path in (place.empty / "d" / "rows").glob("rows-*.jsonl"))
    if answers is None or "answers lost by its books: 0" not in said or rows == 0:
        raise Failed(f"`eyas demo` wrote {rows} rows, and said: {said[-600:]}")
    tried.figures["demo"] = f"{answers[1]} answers, {rows} rows, {time.monotonic() - begun:.0f} s"
    place.run("eyas", "status", "d/run")


def report(tried: Tried, place: Place) -> None:
    """The page of the demo's run: its scripts and styles are in the package."""
    place.run("eyas", "report", "d/run", "--out", "page.html")
    page = (place.empty / "page.html").read_text(encoding="utf-8")
    if "uPlot" not in page:
        raise Failed("`eyas report` wrote a page without its charts")
    tried.figures["report"] = f"{len(page) // 1024} KB"


def steps(tried: Tried, place: Place, *steps: Callable[[Tried, Place], None]) -> None:
    """One after the other; the first that fails is the last."""
    if tried.fault:
        return
    try:
        for step in steps:
            step(tried, place)
    except (Failed, OSError, subprocess.SubprocessError) as error:
        tried.fault = str(error)


def try_all(all_tried: list[Tried], *, full: bool) -> None:
    """Install and look one after the other; then all demos at once, since they wait more than they work."""
    with tempfile.TemporaryDirectory(prefix="eyas-wheel-") as name, ThreadPoolExecutor(len(all_tried)) as pool:
        places = [Place(Path(name) / str(number)) for number in range(len(all_tried))]
        for tried, place in zip(all_tried, places, strict=True):
            print(f"{tried.what.name} on {tried.python}", flush=True)
            steps(tried, place, install, look, ask_for_help)
        print("the demo", flush=True)
        for number, (tried, place) in enumerate(zip(all_tried, places, strict=True)):
            pool.submit(steps, tried, place, functools.partial(demo, full=full and number == 0), report)


def table(all_tried: list[Tried]) -> str:
    """A line for each installation."""
    heads = ["Python", "from", "installed", "modules", "--help", "demo", "report", "well"]
    rows = [heads]
    for tried in all_tried:
        kind = "wheel" if tried.what.suffix == ".whl" else "sdist"
        figures = {"Python": str(tried.python), **tried.figures, "from": kind, "well": "no" if tried.fault else "yes"}
        rows.append([figures.get(head, "-") for head in heads])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def main() -> int:
    """Try all, print the table and what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", type=Path, default=Path("dist"))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--python", dest="named", action="append", default=[], metavar="NAME")
    args = parser.parse_args()
    wheel, sdist = artefacts(args.dist)
    found = pythons(args.named, here=args.here)
    if not found:
        print(f"no python3.{OLDEST} or newer on PATH: name one with --python", file=sys.stderr)
        return 2
    all_tried = [Tried(python, wheel) for python in found]
    all_tried.insert(1, Tried(found[0], sdist))
    try_all(all_tried, full=args.full)
    print(table(all_tried))
    for tried in all_tried:
        if tried.fault:
            print(f"{tried.what.name} on {tried.python}: {tried.fault}", file=sys.stderr)
    return 1 if any(tried.fault for tried in all_tried) else 0


if __name__ == "__main__":
    raise SystemExit(main())
