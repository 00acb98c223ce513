"""Four replicas of an engine, 2000 requests in flight, one killed in mid-run: how far does the throughput fall?

    python bench/replicas.py [--replicas 4] [--in-flight 2000] [--speed 8] [--tokens 160] [--prompts 12000] [--back]

Stand-ins of vLLM (`eyas simulate --engine vllm`), each with in-flight / replicas slots, so that every slot is needed: without one
of four, three quarters of the tokens a second are all there can be. Prints tokens a second before and after, what the books
of the run and of the servers say at the end, and a table for the docs. `--back` starts the killed one again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests import enginekit, kit

from eyas import vocab
from eyas.records import Run

TOML = """\
[run]
dir = "run"
[target]
model = "{model}"
backend = "vllm"
base_url = {urls}
tokenizer = "{tokenizer}"
max_tokens = 1000
[limits]
in_flight = {in_flight}
processes = 1
reread_seconds = 5
[[datasets]]
name = "B3"
source = "prompts.jsonl"
"""
SETTLING = 10.0
"""Seconds after a kill that are not measured: the requests of the dead one find their way to the others."""


def sent(servers: list[enginekit.Replica]) -> int:
    """Tokens sent so far by those that live."""
    return sum(server.counts()["tokens"] for server in servers if server.process is not None)


def measured(servers: list[enginekit.Replica], seconds: float) -> float:
    """Tokens a second over so many seconds."""
    before, then = sent(servers), time.monotonic()
    time.sleep(seconds)
    return (sent(servers) - before) / (time.monotonic() - then)


def main() -> None:
    """Run, kill one, wait for the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--in-flight", type=int, default=2000)
    parser.add_argument("--speed", type=float, default=8.0, help="tokens a second of one answer")
    parser.add_argument("--tokens", type=int, default=160, help="median length of an answer")
    parser.add_argument("--prompts", type=int, default=12_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement")
    parser.add_argument("--back", action="store_true")
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    options = {
        "slots": args.in_flight // args.replicas,
        "speed": args.speed,
        "set": [f"length_median={args.tokens}", "length_sigma=0.3", "drift=0"],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with enginekit.replicas(args.replicas, "vllm", tokenizer, folder, **options) as servers:
            rows = (json.dumps({"prompt": f"What is {n} times {n}?"}) + "\n" for n in range(args.prompts))
            (folder / "prompts.jsonl").write_text("".join(rows))
            urls = json.dumps([server.url for server in servers])
            text = TOML.format(model=enginekit.MODEL, urls=urls, tokenizer=tokenizer, in_flight=args.in_flight)
            (folder / "RUN.toml").write_text(text)
            run = kit.start(folder, "run", "RUN.toml", "--json", "--progress", "none")
            while sum(server.counts()["running"] for server in servers) < 0.98 * args.in_flight:
                if run.poll() is not None:
                    sys.exit(run.communicate()[1])
                time.sleep(1.0)
            before = measured(servers, args.seconds)
            servers[0].kill()
            time.sleep(SETTLING)
            after = measured(servers, args.seconds)
            if args.back:
                servers[0].start()
            out, err = run.communicate()
        if run.returncode:
            sys.exit(err)
        status = json.loads(out)["datasets"]["B3"]
        with closing(Run(folder / "run")) as known:
            answers = Counter(each.work for each in known.state.attempts.values() if each.answered)
            attempts = known.state.last_attempt
    share = after / before
    print(f"| with | tokens/s | of before |\n|---|---:|---:|\n| {args.replicas} replicas | {before:,.0f} | |")
    print(f"| {args.replicas - 1} of them | {after:,.0f} | {share:.1%} |")
    print(
        f"{status['done']} of {args.prompts} prompts done, {status['failed']} failed; {attempts} attempts, "
        f"{max(answers.values())} answer a prompt at most; {os.cpu_count()} cores, Python {sys.version.split()[0]}"
    )
    fair = (args.replicas - 1) / args.replicas
    sys.exit(0 if share > 0.97 * fair and status["done"] == args.prompts == len(answers) else 1)


main()
