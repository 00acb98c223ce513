"""Every label against the ids that the simulator sampled, over the wire: a run, its answers, its export.

    python bench/truth.py [--prompts 3000] [--drift 0.05] [--seed 0] [--scenario labels] [--whole]

A row is right if its ids are the sampled ones (of a partial answer the first of them); a `stripped` or `repaired` row,
if its supervised ids stand in the sampled ones in order. Of a `mismatch` the ids may be right, and the prompt in doubt.
Prints the share of right rows with its 95 % interval (Wilson) by label and by provider, drifted answers apart, and how
many eligible answers are `streamed`.

Exit 1 if an `engine`, `logprobs` or `streamed` row is wrong, or an undrifted `counted`, `stripped` or `repaired` one; if
a provider of another prompt, template or tokenizer has a strict row; or if the export holds other ids.
"""

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests import kit
from tests.answers import ASKED, TOOLS

from eyas import vocab
from eyas.families import by_name
from eyas.records import Run
from eyas.sim.scenarios import SCENARIOS
from eyas.sim.scenarios.labels import WRONG
from eyas.tokens import evidence, learn, rebuild
from eyas.types import STRICT, Completion, Label, Sequence

PROVEN = (Label.ENGINE, Label.LOGPROBS, Label.STREAMED)
MASKED = (Label.STRIPPED, Label.REPAIRED)
WRONG_NAMES = {provider.name for provider in WRONG}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=3000)
    parser.add_argument("--drift", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="labels")
    parser.add_argument("--whole", action="store_true", help="ask for answers that are not streamed")
    args = parser.parse_args()
    folder = vocab.kimi_folder()
    family = by_name("kimi-k2.5").load(folder)
    with tempfile.TemporaryDirectory() as name:
        records, books, exported = run(Path(name), folder, args)
    habits = learn(found for record in records if (found := evidence(record, family, True)))
    judged = [
        (record, rebuild(record, family, habits, True), books[record.completion.generation_id]) for record in records
    ]
    providers = {provider.name: provider for provider in SCENARIOS[args.scenario].providers}
    sys.exit(1 if report(judged, exported, providers, family) else 0)


def run(folder, tokenizer, args):
    """The run's answers, the simulator's books, and the exported ids by row."""
    speeds = {"tps": 400, "ttft": 0.05, "length_median": 250, "length_sigma": 0.5, "drift": args.drift}
    if args.scenario != "labels":
        speeds["slots"] = 40  # few, so that all providers serve a share
    with kit.simulator(tokenizer, args.scenario, args.seed, **speeds) as sim:
        kit.write_run(folder, sim, tokenizer, 0, in_flight=250, max_tokens=4096)
        text = (folder / "RUN.toml").read_text()
        target = f"[target]\nextra_body = {{logprobs = true}}\nstream = {'false' if args.whole else 'true'}\n"
        text = text.replace("[target]\n", f"[providers]\nsort = {{}}\nrouting = 'gateway'\n{target}")
        (folder / "RUN.toml").write_text(text)
        (folder / "prompts.jsonl").write_text("".join(json.dumps(prompt(n)) + "\n" for n in range(args.prompts)))
        done = kit.eyas(folder, "run", "RUN.toml", "--yes", "--progress", "none", timeout=1500)
        print(done.stdout[-1500:], done.stderr[-1500:])
        exporting = kit.eyas(folder, "export", "run", "--out", "rows", "--labels", "loose", timeout=600)
        assert exporting.returncode == 0, exporting.stderr
        books = sim.books(ids=True)
    opened = Run(folder / "run")
    records = [record for work in sorted(opened.state.works) if (record := opened.record(work))]
    lines = [line for path in sorted((folder / "rows").glob("*.jsonl")) for line in path.read_bytes().splitlines()]
    return records, books, {row["id"]: row["input_ids"] for row in map(json.loads, lines)}


def prompt(number):
    """A question of its own; every tenth declares tools."""
    messages = [dict(message) for message in ASKED[number % len(ASKED)]]
    first = next(message for message in messages if message["role"] == "user")
    first["content"] += f" ({number})"
    return {"messages": messages, **({"tools": list(TOOLS)} if number % 10 == 0 else {})}


def report(judged, exported, providers, family):
    """Print it; how many rows break a promise."""
    labels, by_provider, broken, eligible = Counter(), Counter(), {}, Counter()
    for record, sequence, truth in judged:
        completion, drifted = record.completion, truth["drifted"]
        good = right(completion, sequence, truth["ids"])
        labels[sequence.label, drifted, good] += 1
        by_provider[completion.provider, sequence.label, drifted, good] += 1
        for what in faults(record, sequence, exported.get(sequence.record_id), wrong=not good, drifted=drifted):
            broken.setdefault(what, []).append(sequence.record_id)
        if is_eligible(completion, truth, providers[completion.provider], family):
            eligible[sequence.label] += 1
    print(f"{len(judged)} answers, {len(exported)} exported (loose)\n")
    tables(labels, by_provider)
    total, streamed = sum(eligible.values()), eligible[Label.STREAMED]
    if total:
        low, high = interval(streamed, total)
        print(f"\nstreamed: {streamed} of {total} eligible answers, {streamed / total:.4f} ({low:.4f} to {high:.4f})")
    print(f"broken promises: {sum(map(len, broken.values()))}")
    for what, rows in sorted(broken.items()):
        print(f"  {what}: {len(rows)}, such as {rows[0]}")
    return len(broken)


def faults(record, sequence, row, *, wrong, drifted):
    """What promises a row breaks."""
    name, strict = record.completion.provider, sequence.label in STRICT
    if wrong and strict and (sequence.label in PROVEN or not drifted):
        yield f"{name}: {sequence.label}, and wrong"
    if strict and name in WRONG_NAMES:
        yield f"{name}: {sequence.label}"
    if row is not None and row != [*sequence.prompt_ids, *sequence.completion_ids]:
        yield "exported with other ids"


def tables(labels, by_provider):
    """Print shares by label, and by provider and label."""
    heads = ("rows", "right", "share", "95 % interval")
    print(f"{'':30}{'undrifted':>12}{'':>27}{'drifted':>16}")
    print(f"{'label':30}" + 2 * "{:>6}{:>7}{:>9}{:>20}".format(*heads))
    found = {key[0] for key in labels}
    for label in (label for label in Label if label in found):
        print(f"{label:30}" + "".join(share(labels, label, drifted=drifted) for drifted in (False, True)))
    print()
    for name, label in sorted({key[:2] for key in by_provider}):
        print(f"{name:18}{label:12}" + "".join(share(by_provider, name, label, drifted=d) for d in (False, True)))


def right(completion: Completion, sequence: Sequence, sampled: list[int]) -> bool:
    """Whether a row is the truth."""
    ids = list(sequence.completion_ids)
    if sequence.label in MASKED:
        place, mask = iter(sampled), sequence.loss_mask[len(sequence.prompt_ids) :]
        return all(number in place for number, sure in zip(ids, mask, strict=True) if sure)
    ended = completion.cut is None and completion.finish in ("stop", "tool_calls")
    return ids == (sampled if ended else sampled[: len(ids)])


def is_eligible(completion, truth, provider, family):
    """Whether the stream alone must prove it: whole, counted, no tools, no character of several tokens, tokens as pieces."""
    keeps = provider.cut == "token" and provider.strip == "none" and not provider.trailing_space
    if not keeps or provider.logprobs != "none" or provider.name in WRONG_NAMES or completion.pieces is None:
        return False
    if completion.cut or completion.usage is None or completion.finish != "stop" or completion.tool_calls:
        return False
    try:
        return all(family.vocab.token_bytes(number).decode() for number in truth["ids"])
    except UnicodeDecodeError:
        return False


def share(counts, *key, drifted):
    """Rows, right ones, their share and its interval."""
    good, bad = counts[*key, drifted, True], counts[*key, drifted, False]
    if not good + bad:
        return f"{0:6}{'-':>7}{'-':>9}{'-':>20}"
    low, high = interval(good, good + bad)
    return f"{good + bad:6}{good:7}{good / (good + bad):9.4f}{f'{low:.4f} to {high:.4f}':>20}"


def interval(good, total, z=1.96):
    """Wilson's 95 % interval of a share."""
    middle = (good + z * z / 2) / (total + z * z)
    half = z / (total + z * z) * math.sqrt(good * (total - good) / total + z * z / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


if __name__ == "__main__":
    main()
