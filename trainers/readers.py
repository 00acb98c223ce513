"""Do the trainers take the rows as they are? SpecForge and speculators load an export; ids and masks are compared.

    python trainers/readers.py ROWS_FOLDER

ROWS_FOLDER is an uncompressed export (rows-*.jsonl and manifest.json), such as the `rows` folder of `eyas demo`. The
trainers' own code reads it: SpecForge's `prepare_prompt_tasks` (the reader of `data.prompts_path`) in this process, and
`speculators prepare-data` as a command of its own, whose Arrow output is read back. Both get a length limit above the
longest row, so nothing may be cut. speculators shuffles, so rows are compared as multisets. Prints for each trainer the
rows in the export, the rows loaded, and the rows whose ids and mask are the same to the last byte. If the export has draft
vocabularies, they are compared with those that speculators makes of the tokens it counted. Exit 0 if all is the same.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
from array import array
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from common import prepare_data, rows, shards
from datasets import load_from_disk
from specforge.data.prompt_builder import prepare_prompt_tasks
from speculators.train.vocab_mapping import build_vocab_mappings_from_distribution
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, metavar="ROWS_FOLDER")
    folder = parser.parse_args().rows
    files = shards(folder)
    expected, longest = exported(folder)
    listed = sum(shard["rows"] for shard in json.loads((folder / "manifest.json").read_bytes())["shards"])
    if expected.total() != listed:
        sys.exit(f"{folder} holds {expected.total()} rows, and its manifest lists {listed}: export again")
    print(f"{folder}: {expected.total()} rows in {len(files)} shards, the longest has {longest} ids")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        same = [check(name, load, expected, files, longest, scratch) for name, load in TRAINERS.items()]
        same += [same_vocabulary(path, scratch) for path in sorted(folder.glob("draft_vocab/d2t-*.npy"))]
    sys.exit(0 if all(same) else 1)


def exported(folder):
    """The rows of the export as a multiset, and the length of the longest."""
    found, longest = Counter(), 0
    for row in rows(folder):
        found[digest(row["input_ids"], row["loss_mask"])] += 1
        longest = max(longest, len(row["input_ids"]))
    return found, longest


def digest(ids, mask):
    """A row's ids and mask as one hash."""
    return hashlib.sha256(b"%d,%d:" % (len(ids), len(mask)) + array("q", ids).tobytes() + bytes(mask)).digest()


def check(name, load, expected, files, longest, scratch):
    """Load the shards with one trainer; whether it has exactly the rows of the export."""
    began = time.monotonic()
    loaded = Counter(load(files, longest + 1, scratch))
    print(
        f"{name} {version(name)}: rows in the export {expected.total()}, rows loaded {loaded.total()}, "
        f"rows byte-identical {(expected & loaded).total()} ({time.monotonic() - began:.1f} s)"
    )
    return loaded == expected


def specforge(files, limit, _scratch):
    for shard in files:
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


def speculators(files, limit, scratch):
    # The command wants a tokenizer to show one row as text; what it reads and writes does not depend on it.
    any_vocabulary = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    PreTrainedTokenizerFast(tokenizer_object=any_vocabulary, eos_token="<unk>").save_pretrained(scratch / "model")
    options = ["--seq-length", str(limit), "--no-skip-token-freq"]
    prepare_data(scratch / "model", files, scratch / "out", *options)
    for row in load_from_disk(scratch / "out").with_format(None):
        yield digest(row["input_ids"], row["loss_mask"])


def same_vocabulary(path, scratch):
    """Whether an exported draft vocabulary is the one that speculators makes of the counts of `prepare-data`."""
    d2t, t2d = np.load(path), np.load(path.with_name(path.name.replace("d2t", "t2d")))
    counts = torch.load(scratch / "out" / "token_freq.pt", weights_only=True)
    theirs = build_vocab_mappings_from_distribution(counts, len(d2t), len(t2d))
    same = np.array_equal(theirs[0].numpy(), d2t) and np.array_equal(theirs[1].numpy(), t2d)
    print(
        f"draft vocabulary of {len(d2t)} of {len(t2d)} ids: {'the same as' if same else 'NOT the same as'} speculators'"
    )
    return same


TRAINERS = {"specforge": specforge, "speculators": speculators}

if __name__ == "__main__":
    main()
