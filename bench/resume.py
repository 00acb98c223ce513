"""How long until a run of a million finished answers asks its first new question?

    python bench/resume.py [--answers 1000000] [--owed 2000] [--times 3] [--keep DIR] [--killed] [--bare]

A run is made through the journal's own classes: every prompt and answer with its events, the checkpoint that a session keeps
and the prompts that it keeps. Then `eyas run` resumes it against the simulator, and the seconds from the start of the process
to the first request are measured, with the memory that it took till then. `--keep` makes the run once and uses it again.
`--killed` makes it without the end of a session; `--bare` takes checkpoint and prompts away, as if an older eyas had made it.
Exit 0 if the best time is 8 seconds or less.
"""

import argparse
import asyncio
import contextlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import kit
from eyas import config, vocab
from eyas import events as ev
from eyas.engine.inputs import load_tokenizer, read_inputs, write_reports
from eyas.journal import NAME, Index, Journal, Keeper
from eyas.prompts.kept import NAME as KEPT
from eyas.state import State
from eyas.types import Completion, Finish, Label, Prices, StopReason, Usage, Verdict, Work

LIMIT = 8.0
BODY = b'{"model":"moonshotai/kimi-k2.5","messages":[{"role":"user","content":"Question"}],"stream":true}'


class Maker:
    """Folds and writes events as a session does."""

    def __init__(self, journal):
        self.state = State()
        self.keeper = Keeper(journal, self.state, Index(), None)

    def emit(self, event, payload=None):
        self.state.apply(event)
        return self.keeper.write(event, payload)


async def make(folder, owed, killed):
    """The journal of a run of which all but `owed` prompts are answered."""
    settings = config.load(folder / "RUN.toml")
    tokenizer = load_tokenizer(settings)
    settings.dir.mkdir()
    began = time.perf_counter()
    inputs = read_inputs(settings, tokenizer)
    print(f"{len(inputs.prompts)} prompts read in {time.perf_counter() - began:.0f} s")
    began = time.perf_counter()
    write_reports(settings.dir, inputs)
    print(f"kept in {time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    with contextlib.closing(Journal(settings.dir)) as journal:
        maker = Maker(journal)
        family, thinking = (
            tokenizer.family.name,
            {each.name: settings.thinking(each.name) for each in settings.datasets},
        )
        maker.emit(
            ev.SessionOpened(
                at=1.0, model=settings.target.model, cap=10**14, quotas={"B3": None}, family=family, thinking=thinking
            )
        )
        for number, prompt in enumerate(inputs.prompts):
            tokens = inputs.counts[prompt.dataset, prompt.id]
            maker.emit(ev.PromptAdded(at=1.0, dataset=prompt.dataset, prompt_id=prompt.id, tokens=tokens), prompt)
            if number % 5000 == 0:
                await journal.flush()
        for number in range(1, len(inputs.prompts) - owed + 1):
            answer(maker, number, Work("B3", inputs.sets["B3"].ids[number - 1]))
            if number % 1000 == 0:
                await journal.flush()
        if not killed:
            await maker.emit(ev.SessionClosed(at=9e8, reason=StopReason.INTERRUPTED))
            maker.keeper.finish()
    print(f"{maker.keeper._journal.last} events written in {time.perf_counter() - began:.0f} s")


def answer(maker, number, work):
    """One answer, from its intent to its label."""
    tokens, at = 200 + number * 7919 % 800, 1.7e9 + number / 500
    usage = Usage(27, tokens, tokens // 3)
    maker.emit(
        ev.Intent(at=at, attempt=number, work=work, number=1, tag="chutes/int4", prices=Prices(450_000_000, 2_200_000_000),
                  reserved=3_000_000, mark=f"{number:016x}"), BODY
    )  # fmt: skip
    maker.emit(ev.Headers(at=at + 0.7, attempt=number, generation_id=f"gen-{1700000000 + number}-{number * 7919:020d}"))
    maker.emit(
        ev.Settled(at=at + 20, attempt=number, verdict=Verdict.DONE, cost=tokens * 2200, tokens=tokens, provider="Chutes",
                   finish=Finish.STOP, counts=(27, tokens, tokens // 3), first_token=0.75, seconds=19.5),
        Completion("It is asked for a sum.", f"The sum is {2 * number}.", finish=Finish.STOP, usage=usage, provider="Chutes"),
    )  # fmt: skip
    maker.emit(ev.Labelled(at=at + 21, attempt=number, label=Label.COUNTED))


def resume(folder, sim):
    """Seconds to the first new request, and the most memory till then, MB."""
    before, began = sim.state()["requests"], time.perf_counter()
    process = kit.start(folder, "run", "RUN.toml", "--yes", "--progress", "none")
    while sim.state()["requests"] == before:
        if process.poll() is not None:
            sys.exit(f"the run ended early: {process.stderr.read()}")
        time.sleep(0.05)
    seconds = time.perf_counter() - began
    status = Path(f"/proc/{process.pid}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
    used = sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().rsplit(")")[-1].split()[11:13])) / 100
    for _ in range(2):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=1.5)
    process.communicate(timeout=120)
    return seconds, memory, used


def bare(folder):
    """Take away what is derived."""
    (folder / "run" / KEPT).unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(folder / "run" / NAME)) as db:
        db.execute("DELETE FROM checkpoint")
        db.commit()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--owed", type=int, default=2000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--killed", action="store_true")
    parser.add_argument("--bare", action="store_true")
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    # Answers that take minutes: the first request is measured, and few are bought.
    with tempfile.TemporaryDirectory() as name, kit.simulator(tokenizer, "clean", 0, tps=2, slots=0) as sim:
        folder = args.keep or Path(name)
        made = (folder / "RUN.toml").exists()
        folder.mkdir(parents=True, exist_ok=True)
        kit.write_run(folder, sim, tokenizer, args.answers + args.owed, usd=100_000, in_flight=200)
        if not made:
            asyncio.run(make(folder, args.owed, args.killed))
        sizes = {path.name: path.stat().st_size // 10**6 for path in (folder / "run").iterdir()}
        print(", ".join(f"{name} {size} MB" for name, size in sizes.items() if size))
        found = []
        for _ in range(args.times):
            if args.bare:
                bare(folder)
            seconds, memory, used = resume(folder, sim)
            print(
                f"{seconds:.2f} s to the first new request ({used:.2f} s of CPU), peak memory {memory:.0f} MB",
                flush=True,
            )
            found.append(seconds)
    sys.exit(bool(found) and min(found) > LIMIT)


if __name__ == "__main__":
    main()
