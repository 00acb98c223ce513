"""eyas and other tools side by side against the load server: throughput, CPU, memory, answers lost.

    python bench/peers.py --mode json                     2000 and 5000 in flight, answers of 15 to 60 s, 5 runs: hours
    python bench/peers.py --mode stream                   2000 x 10 and 5000 x 4 pieces a second over TLS
    python bench/peers.py --mode json --in-flight 100 --prompts 300 --latency 2,8 --runs 1        a minute or two
    python bench/peers.py --out results.json --markdown --picture docs/bench.svg --runs 0          from what was measured

Tools take turns, each in a process and an environment of its own, made by pip at first use. `--out` is written after each
trial, and the same command goes on where it was stopped. docs/bench.md says what each figure is.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import ssl
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import load
from peers import picture, table, tools, trial
from peers.case import Case
from peers.figures import Trial

from eyas import vocab
from eyas.families import by_name, guess

IN_FLIGHT = (2000, 5000)
PIECES_A_SECOND = 20_000
ROUNDS = 5


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["json", "stream"], default="json")
    parser.add_argument("--in-flight", default=",".join(map(str, IN_FLIGHT)), help="one case each; default 2000,5000")
    parser.add_argument("--prompts", type=int, help=f"default {ROUNDS} times what is in flight")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tools", default=",".join(tools.DEFAULT), help=f"of {', '.join(tools.TOOLS)}")
    parser.add_argument("--latency", default="15,60", help="json: seconds of an answer, from,to")
    parser.add_argument("--size", type=int, default=8000, help="json: bytes of text in an answer")
    parser.add_argument("--pieces", type=int, default=200, help="stream: pieces of an answer")
    parser.add_argument("--rate", type=float, help="stream: pieces a second; default 20000 / in flight")
    parser.add_argument("--ttft", type=float, default=0.5, help="stream: seconds to the first piece")
    parser.add_argument("--tls", action="store_true", help="json over TLS too; streams always are")
    parser.add_argument("--time-limit", type=float, default=0.0, help="seconds; default 3 x ideal + 60")
    parser.add_argument("--eyas-limit", action="append", default=[], help="a line of eyas's [limits]; may be repeated")
    parser.add_argument("--out", type=Path, help="results as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the tables of all that --out holds")
    parser.add_argument("--picture", type=Path, help="write an SVG of all that --out holds")
    return parser.parse_args()


def cases(args: argparse.Namespace) -> list[Case]:
    """One for each number in flight."""
    low, _, high = args.latency.partition(",")
    return [
        Case(
            stream=args.mode == "stream",
            tls=args.tls or args.mode == "stream",
            in_flight=most,
            prompts=args.prompts or ROUNDS * most,
            latency_min=float(low),
            latency_max=float(high or low),
            size=args.size,
            pieces=args.pieces,
            rate=args.rate or PIECES_A_SECOND / most,
            ttft=args.ttft,
        )
        for most in map(int, args.in_flight.split(","))
    ]


def machine() -> dict[str, Any]:
    """Where this runs."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": cpu.partition(":")[2].strip(),
        "cores": f"{os.cpu_count()} cores",
        "memory": f"{memory:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"Python {platform.python_version()}",
        "openssl": ssl.OPENSSL_VERSION,
    }


class Results:
    """What was measured, in a file that is written after each trial."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        kept = json.loads(path.read_text()) if path and path.exists() else {"machine": machine(), "cases": []}
        self.machine = kept["machine"]
        self.cases = [(Case(**each["case"]), [Trial(**row) for row in each["trials"]]) for each in kept["cases"]]

    def trials(self, case: Case) -> list[Trial]:
        """The trials of a case so far."""
        for known, trials in self.cases:
            if known == case:
                return trials
        self.cases.append((case, []))
        return self.cases[-1][1]

    def save(self) -> None:
        """Write the file whole."""
        if self._path is None:
            return
        rows = [{"case": case.to_json(), "trials": [asdict(each) for each in trials]} for case, trials in self.cases]
        temporary = self._path.with_suffix(".part")
        temporary.write_text(json.dumps({"machine": self.machine, "cases": rows}, indent=1) + "\n")
        temporary.replace(self._path)


def setting(args: argparse.Namespace) -> trial.Setting:
    """Tokenizer and prompt tokens are eyas's own, so that its labels find what they would find in real answers."""
    folder = vocab.kimi_folder()
    message = {"role": "user", "content": trial.prompt(0)}
    family = by_name(guess(load.MODEL) or "")
    tokens = len(family.load(folder).prompt_ids([message], [], True))
    return trial.Setting(args.time_limit, tuple(args.eyas_limit), folder, tokens)


def run_all(args: argparse.Namespace, results: Results) -> None:
    """Every tool once, then every tool again: what disturbs the machine meets all of them."""
    named = [tools.TOOLS[name] for name in args.tools.split(",")]
    for case in cases(args) if args.runs else ():
        known = setting(args)
        print(f"\n{case.name}: ideal {case.ideal():.0f} s a run", flush=True)
        for number in range(args.runs):
            turn = number % len(named)
            for tool in named[turn:] + named[:turn]:
                trials = results.trials(case)
                had = [each for each in trials if (each.tool, each.run) == (tool.name, number)]
                if any(not each.failed for each in had):
                    continue
                trials[:] = [each for each in trials if each not in had]
                trials.append(trial.measure(tool, case, number, known))
                results.save()
                print(line(trials[-1]), flush=True)


def line(one: Trial) -> str:
    """A trial as it ends."""
    if one.error:
        return f"  {one.tool}: {one.error}"
    said = [f"{head} {table.cell([one], name, words)}" for head, name, words in table.COLUMNS]
    return f"  {one.tool}, run {one.run + 1}: " + ", ".join(said) + f" {table.remark([one])}"


def main() -> None:
    args = arguments()
    unknown = sorted({*args.tools.split(",")} - {*tools.TOOLS})
    if unknown:
        sys.exit(f"no such tool: {', '.join(unknown)}; choose from {', '.join(tools.TOOLS)}")
    results = Results(args.out)
    run_all(args, results)
    print()
    if args.markdown or not args.out:
        print(table.machine(results.machine) + "\n")
        for case, trials in results.cases:
            if trials:
                print(table.markdown(case.name, ideal_words(case), ordered(trials), len({t.run for t in trials})))
    if args.picture:
        shown = [(case.name, ordered(trials)) for case, trials in results.cases if trials]
        args.picture.write_text(picture.svg(shown), encoding="utf-8")


def ordered(trials: list[Trial]) -> list[Trial]:
    """In the order of the tools."""
    return sorted(trials, key=lambda each: (list(tools.TOOLS).index(each.tool), each.run))


def ideal_words(case: Case) -> str:
    return f"ideal {case.in_flight / case.mean():.1f} answers/s, {case.ideal():.0f} s"


if __name__ == "__main__":
    main()
