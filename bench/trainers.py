"""Do the trainers take the rows as they are? SpecForge and speculators load an export; ids and masks are compared.

    python bench/trainers.py ROWS_FOLDER

ROWS_FOLDER is an uncompressed export (rows-*.jsonl and manifest.json), such as the `rows` folder of `eyas demo`. The
trainers' own code reads it: SpecForge's `prepare_prompt_tasks` (the reader of `data.prompts_path`) in this process, and
`speculators prepare-data` as a command of its own, whose Arrow output is read back. Both get a length limit above the
longest row, so nothing may be cut. speculators shuffles, so rows are compared as multisets. Prints for each trainer the
rows in the export, the rows loaded, and the rows whose ids and mask are the same to the last byte. Exit 0 if all are.

The trainers need an environment of their own; eyas and a GPU are not needed (Python 3.11, 1.7 GB with torch for CPUs):

    python3.11 -m venv trainers-venv
    . trainers-venv/bin/activate
    pip install torch==2.13.0
    pip install transformers==5.8.1 datasets==5.2.0 accelerate pydantic pydantic-settings psutil pyyaml safetensors \\
        requests tqdm numpy loguru click rich typer httpx openai protobuf openai-harmony aiohttp numba
    pip install --no-deps specforge==0.2.0 speculators==0.9.0 yunchang hs-connectors
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from array import array
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from datasets import load_from_disk
from specforge.data.prompt_builder import prepare_prompt_tasks
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, metavar="ROWS_FOLDER")
    folder = parser.parse_args().rows
    listed = json.loads((folder / "manifest.json").read_bytes())["shards"]
    shards = [folder / shard["name"] for shard in listed]
    if not shards or any(shard.suffix != ".jsonl" for shard in shards):
        sys.exit(f"{folder} holds no uncompressed rows: export with --compress none")
    expected, longest = exported(shards)
    if expected.total() != sum(shard["rows"] for shard in listed):
        sys.exit(f"{folder} holds {expected.total()} rows, and its manifest lists another number: export again")
    print(f"{folder}: {expected.total()} rows in {len(shards)} shards, the longest has {longest} ids")
    same = [check(name, load, expected, shards, longest) for name, load in TRAINERS.items()]
    sys.exit(0 if all(same) else 1)


def exported(shards):
    """The rows of the export as a multiset, and the length of the longest."""
    rows, longest = Counter(), 0
    for shard in shards:
        with shard.open("rb") as lines:
            for line in lines:
                row = json.loads(line)
                rows[digest(row["input_ids"], row["loss_mask"])] += 1
                longest = max(longest, len(row["input_ids"]))
    return rows, longest


def digest(ids, mask):
    """A row's ids and mask as one hash."""
    return hashlib.sha256(b"%d,%d:" % (len(ids), len(mask)) + array("q", ids).tobytes() + bytes(mask)).digest()


def check(name, load, expected, shards, longest):
    """Load the shards with one trainer; whether it has exactly the rows of the export."""
    began = time.monotonic()
    loaded = Counter(load(shards, longest + 1))
    print(
        f"{name} {version(name)}: rows in the export {expected.total()}, rows loaded {loaded.total()}, "
        f"rows byte-identical {(expected & loaded).total()} ({time.monotonic() - began:.1f} s)"
    )
    return loaded == expected


def specforge(shards, limit):
    for shard in shards:
        tasks = prepare_prompt_tasks(
            shard,
            None,
            chat_template=None,
            max_length=limit,
            is_preformatted=False,
            train_only_last_turn=False,
            cache_dir=None,
            cache_key=None,
            num_proc=None,
        )
        for task in tasks:
            yield digest(task["payload"]["input_ids"], task["payload"]["loss_mask"])


def speculators(shards, limit):
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        # The command wants a tokenizer to show one row as text; what it reads and writes does not depend on it.
        any_vocabulary = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
        PreTrainedTokenizerFast(tokenizer_object=any_vocabulary, eos_token="<unk>").save_pretrained(scratch / "model")
        command = [sys.executable, "-m", "speculators", "prepare-data", "--model", scratch / "model"]
        for shard in shards:
            command += ["--data", shard.resolve()]
        command += ["--output", scratch / "out", "--seq-length", str(limit), "--num-preprocessing-workers", "1"]
        # A cache of its own, so that no former run answers in this one's place; nothing is fetched.
        env = os.environ | {"HF_HOME": str(scratch / "cache"), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(command, env=env, cwd=scratch, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"speculators prepare-data failed (exit {done.returncode}):\n{done.stdout}{done.stderr}")
        for row in load_from_disk(scratch / "out").with_format(None):
            yield digest(row["input_ids"], row["loss_mask"])


TRAINERS = {"specforge": specforge, "speculators": speculators}

if __name__ == "__main__":
    main()
