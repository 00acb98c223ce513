"""Export at full size: how long, how much memory, beside plain encoding of the same texts on one thread.

    python bench/export.py [--tokens 60_000_000] [--answers 30_000] [--workers N] [--keep DIR]

Makes a run directory as a run would leave it: prompts of about 200 tokens, answers of lognormal lengths from the
simulator's sampler with true counts, a third with streamed pieces of one token each, the rest without pieces. Then
`eyas export --compress zst` runs in a process of its own; its memory is the sum over all its processes.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests import exportkit

from eyas import vocab
from eyas.events import SessionClosed, SessionOpened
from eyas.records import Run
from eyas.sim.cutting import Texts, pieces
from eyas.sim.text import Sampler, Shape, lengths
from eyas.types import Completion, Finish, Pieces, Prompt, Record, Source, StopReason, Usage, Work

PROVIDERS = ("Moonshot AI", "SiliconFlow", "Novita", "Chutes")
SETS = ("B3", "B4", "B5", "B6", "B7", "B8")
SIGMA = 0.9
MEDIAN_SHARE = 0.667  # the median of a lognormal of that sigma is this part of its mean


class Wordy(Sampler):
    """The simulator's sampler with 20,000 sentences of words as frequent as real ones: its own few pack 20 times smaller.

    Of ten sentences one is the simulator's, with its emoji and rare scripts.
    """

    def _pool(self, sentences, blocks):
        rng, entries = random.Random(1), map(self.vocabulary.token_bytes, range(60_000))
        words = [entry.decode() for entry in entries if entry[:1] == b" " and entry[1:].isalpha() and entry.isascii()]
        words = [word for word in words if word.islower()]
        weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
        made = list(sentences) * (2000 // len(sentences) + 1)
        for _ in range(18_000):
            drawn = rng.choices(words, cum_weights=weights, k=rng.randint(5, 30))
            # Rare words are several tokens.
            drawn = [word + rng.choice(words)[1:] if rng.random() < 0.1 else word for word in drawn]
            made.append("".join(drawn).strip() + rng.choice(".,?:"))
        return super()._pool(tuple(made), blocks)


def answers(args, family):
    """Records, about args.tokens output tokens in all."""
    sampler, texts, rng = Wordy(family.vocab), Texts(family.vocab), random.Random(0)
    asked = sampler.sample(Shape(None, 60_000, 60_000), rng).ids
    for number in range(args.answers):
        start = rng.randrange(len(asked) - 200)
        question = f"{number}: {family.vocab.decode(list(asked[start : start + 190]))}"
        name = sha256(question.encode()).hexdigest()[:16]
        dataset = SETS[number % len(SETS)]
        prompt = Prompt(
            name, dataset, ({"role": "user", "content": question},), source=Source(f"{dataset}.jsonl", number)
        )
        length = lengths(MEDIAN_SHARE * args.tokens / args.answers, SIGMA, 60_000, rng)
        answer = sampler.sample(Shape(int(length * 0.7), int(length * 0.3), 60_000), rng)
        place = number % len(PROVIDERS)
        found = {channel: texts_of(answer, channel, texts, rng) for channel in ("reasoning", "content")}
        stop = answer.finish == "stop"
        completion = Completion(
            reasoning="".join(found["reasoning"]),
            content="".join(found["content"]),
            finish=Finish.STOP if stop else Finish.LENGTH,
            usage=Usage(
                family.count_prompt(prompt.messages, (), True),
                answer.size,
                answer.count("reasoning"),
                cost=length * 3000,
            ),
            provider=PROVIDERS[place],
            model=exportkit.MODEL,
            generation_id=f"gen-{number:08d}",
            pieces=Pieces(*(tuple(map(len, found[c])) for c in found)) if (number // 24) % 3 == 0 else None,
        )
        yield Record(Work(dataset, name), prompt, completion, f"tag-{place}", length * 3000, number + 1)


def texts_of(answer, channel, texts, rng):
    """The texts of an answer's channel, token by token; characters over several tokens in one piece."""
    ids = [token for part in answer.parts if part.channel == channel for token in part.ids]
    return [text for text, _ in pieces(ids, "token", texts, rng)]


async def fill(journal, args, family):
    journal.write(SessionOpened(0.0, exportkit.MODEL, None, dict.fromkeys(SETS), thinking=dict.fromkeys(SETS, True)))
    batch, written = [], 0
    for record in answers(args, family):
        batch.append(record)
        if len(batch) == 500:
            await exportkit.append(journal, batch, written + 1)
            written += len(batch)
            batch = []
    await exportkit.append(journal, batch, written + 1)
    await journal.write(SessionClosed(0.0, StopReason.COMPLETE))


def plain_encode(folder, family):
    """Tokens, seconds and CPU seconds of encoding all prompts and texts of a run with tiktoken, on one thread."""
    run = Run(folder)
    total, seconds, cpu = 0, 0.0, 0.0
    for record in run.records():
        found = (record.prompt.messages[0]["content"], record.completion.reasoning, record.completion.content)
        began = time.perf_counter(), time.process_time()
        total += sum(len(family.vocab.encode(text)) for text in found)
        seconds += time.perf_counter() - began[0]
        cpu += time.process_time() - began[1]
    run.close()
    return total, seconds, cpu


class Memory(threading.Thread):
    """The most that a process and its descendants hold together, in MB, looked at ten times a second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.processes, self.ended = pid, 0.0, 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.1):
            pids = family_of(self.pid)
            self.peak = max(self.peak, sum(map(resident, pids)))
            self.processes = max(self.processes, len(pids))


def family_of(pid):
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(each for child in children for each in family_of(int(child)))]


def resident(pid):
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, IndexError):
        return 0.0


def export(run, out, workers):
    command = [sys.executable, "-m", "eyas", "export", str(run), "--out", str(out), "--compress", "zst"]
    command += ["--workers", str(workers)] if workers else []
    began = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        memory = Memory(process.pid)
        memory.start()
        said = process.communicate()[1]
    seconds = time.perf_counter() - began
    memory.ended.set()
    if process.returncode:
        sys.exit(said)
    return seconds, memory, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=60_000_000)
    parser.add_argument("--answers", type=int, default=30_000)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--keep", type=Path, help="make the run in this folder, or take the one that is there")
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    family = exportkit.load_kimi(tokenizer)
    with tempfile.TemporaryDirectory() as name:
        folder = args.keep or Path(name)
        run = folder / "run"
        if not run.exists():
            began = time.perf_counter()
            with closing(exportkit.open_run(run, tokenizer, SETS)) as journal:
                asyncio.run(fill(journal, args, family))
            print(f"made in {time.perf_counter() - began:.0f} s: {(run / 'journal.db').stat().st_size / 2**20:.0f} MB")
        seconds, memory, said = export(run, folder / "rows", args.workers)
        cpu = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        manifest = json.loads((folder / "rows" / "manifest.json").read_text())
        size = sum(shard["bytes"] for shard in manifest["shards"])
        encoded, plain, plain_cpu = plain_encode(run, family)
    print(said, end="")
    output = sum(step["tokens"] for step in manifest["yield"]["total"]["steps"] if step["step"] == "answers")
    print(f"machine: {os.cpu_count()} cores, Python {sys.version.split()[0]}; {memory.processes} processes at most")
    print(f"export: {output:,} output tokens in {seconds:.1f} s ({output / seconds:,.0f}/s), {cpu:.1f} s of CPU")
    print(f"peak RSS of all processes together: {memory.peak:.0f} MB; zstd rows: {size / 2**20:.0f} MB")
    print(
        f"plain encode, one thread: {encoded:,} tokens in {plain:.1f} s ({encoded / plain:,.0f}/s), {plain_cpu:.1f} s of CPU"
    )


if __name__ == "__main__":
    main()
