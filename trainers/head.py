"""An EAGLE-3 head learns on the CPU from the rows of an export, by speculators' own code.

    python trainers/head.py ROWS_FOLDER TOKENIZER_FOLDER

ROWS_FOLDER was exported with --draft-vocab 4096; TOKENIZER_FOLDER holds Kimi's `tiktoken.model`. The target is a tiny random
Qwen3 (8 layers, 64 wide) with Kimi's whole vocabulary, so the rows keep their real ids. speculators cuts the rows to 384 ids
(`prepare-data`). One forward pass of the target over each row is written as its offline layout (hs_N.safetensors). Its
dataset, collator and EAGLE-3 model do the rest, with the exported draft vocabulary: 48 steps of 4 rows, no row twice.
Exit 0 if the loss falls: the mean of the last 5 steps is below 0.7 of that of the first 5, and the loss on 32 held-out rows
is below half of what it was. What the target says is random, so nothing is learned that is of use elsewhere.
"""

import argparse
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ |= {"TORCHDYNAMO_DISABLE": "1", "HF_HUB_OFFLINE": "1"}

import torch
import transformers
from common import KIMI_VOCAB, kimi_tokenizer, prepare_data, shards
from loguru import logger
from safetensors.torch import save_file
from speculators.models.eagle3 import Eagle3DraftModel
from speculators.models.eagle3.data import shift_batch
from speculators.train.cli import _load_mappings, create_transformer_layer_config
from speculators.train.data import ArrowDataset, CollateFn
from transformers import Qwen3Config, Qwen3ForCausalLM

LENGTH, BATCH, STEPS, HELD_OUT = 384, 4, 48, 32
LAYERS, WIDTH, DRAFT_VOCAB = 8, 64, 4096
TTT_STEPS, RATE = 3, 5e-3
AUX = (2, LAYERS // 2, LAYERS - 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, metavar="ROWS_FOLDER")
    parser.add_argument("tokenizer", type=Path, metavar="TOKENIZER_FOLDER")
    arguments = parser.parse_args()
    quiet()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # such small matrices: a second thread on a busy machine made it six times slower
    with tempfile.TemporaryDirectory() as name:
        model, data = Path(name) / "model", Path(name) / "data"
        verifier = target(model)
        kimi_tokenizer(arguments.tokenizer, model)
        wanted = STEPS * BATCH + HELD_OUT
        options = ["--seq-length", str(LENGTH), "--max-samples", str(wanted)]
        prepare_data(model, shards(arguments.rows), data, *options)
        dataset = ArrowDataset(LENGTH, data, on_missing="raise", hidden_states_dtype=torch.float32, model=str(model))
        if len(dataset) < wanted:
            sys.exit(f"{arguments.rows} gave {len(dataset)} rows, and the check needs {wanted}")
        began = time.monotonic()
        tokens = write_hidden_states(verifier, dataset, data / "hidden_states")
        print(f"hidden states of {len(dataset)} rows, {tokens} tokens: {time.monotonic() - began:.1f} s")
        draft = head(model, arguments.rows / "draft_vocab")
        sys.exit(0 if learn(draft, dataset) else 1)


def quiet():
    """Only the check's own lines are printed."""
    warnings.filterwarnings("ignore")
    transformers.utils.logging.disable_progress_bar()
    logger.remove()


def target(folder):
    """A random model with Kimi's vocabulary, its weights wider than usual so that its answers are not almost equal."""
    config = Qwen3Config(
        vocab_size=KIMI_VOCAB,
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=WIDTH // 4,
        max_position_embeddings=LENGTH,
        initializer_range=0.05,
        tie_word_embeddings=False,
        attn_implementation="eager",
        dtype=torch.float32,
    )
    model = Qwen3ForCausalLM(config).eval()
    model.save_pretrained(folder)
    return model


@torch.no_grad()
def write_hidden_states(verifier, dataset, folder):
    """Write hs_N.safetensors for each row: the three auxiliary outputs, then the last layer's before the final norm.

    What one convention calls hidden_states[k] another calls the output of layer k - 1, counted from 0: both are compared.
    """
    outputs = {}
    for at, layer in enumerate(verifier.model.layers):
        layer.register_forward_hook(lambda _module, _given, out, at=at: outputs.update({at: out}))
    folder.mkdir()
    tokens = 0
    for at in range(len(dataset)):
        ids = dataset.data[at]["input_ids"]
        states = verifier.model(ids[None], output_hidden_states=True).hidden_states
        if not all(torch.equal(states[index], outputs[index - 1]) for index in AUX):
            sys.exit(f"hidden_states{list(AUX)} are not the outputs of layers {[index - 1 for index in AUX]}")
        kept = [outputs[index - 1][0] for index in AUX] + [outputs[LAYERS - 1][0]]
        save_file({"token_ids": ids, "hidden_states": torch.stack(kept, dim=1)}, folder / f"hs_{at}.safetensors")
        tokens += len(ids)
    return tokens


def head(model, vocabulary):
    """speculators' EAGLE-3 model for that target, with the exported draft vocabulary as `speculators train` loads it."""
    d2t, t2d, _ = _load_mappings(
        vocabulary / f"d2t-{DRAFT_VOCAB}.npy", vocabulary / f"t2d-{DRAFT_VOCAB}.npy", DRAFT_VOCAB
    )
    config = create_transformer_layer_config(str(model), 1, "llama", None, LENGTH, full_attention_indices=[0])
    return Eagle3DraftModel.from_training_args(
        config,
        t2d=t2d,
        d2t=d2t,
        verifier_name_or_path=str(model),
        target_layer_ids=list(AUX),
        draft_vocab_size=DRAFT_VOCAB,
        draft_attn_impl="eager",
        norm_before_residual=True,
        norm_before_fc=True,
        norm_output=True,
        ttt_steps=TTT_STEPS,
    ).float()


def learn(draft, dataset):
    """Train, print each loss, and say whether it fell, on fresh rows and on held-out ones."""
    collate = CollateFn(BATCH * LENGTH, WIDTH, num_target_layers=len(AUX), dtype=torch.float32, preprocess=shift_batch)
    options, _ = draft.get_trainer_kwargs(
        loss_fn="kl_div", loss_implementation="eager", ttt_steps=TTT_STEPS, ttt_step_loss_decay=1.0
    )
    batches = [collate([dataset[at + i] for i in range(BATCH)]) for at in range(0, len(dataset), BATCH)]
    if any(batch.pop("error_records") for batch in batches):
        sys.exit("speculators dropped rows: their hidden states do not match")
    fresh, held = batches[:STEPS], batches[STEPS:]
    before = [score(draft, batch, options) for batch in held]
    optimizer = torch.optim.AdamW([p for p in draft.parameters() if p.requires_grad], lr=RATE)
    began, losses = time.monotonic(), []
    for step, batch in enumerate(fresh, 1):
        _, loss, _ = draft(**batch, **options)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 8 == 0:
            print(f"loss of steps {step - 7:2d} to {step:2d}:", *(f"{each:.4f}" for each in losses[-8:]), flush=True)
    after = [score(draft, batch, options) for batch in held]
    first, last = sum(losses[:5]) / 5, sum(losses[-5:]) / 5
    print(f"mean loss of the first 5 steps {first:.4f}, of the last 5 {last:.4f} ({time.monotonic() - began:.1f} s)")
    (lost, hit), (now, hits) = (torch.tensor(each).mean(0).tolist() for each in (before, after))
    print(f"held out, {HELD_OUT} rows: loss {lost:.4f} -> {now:.4f}; first drafted token right {hit:.1%} -> {hits:.1%}")
    return last < 0.7 * first and now < 0.5 * lost


@torch.no_grad()
def score(draft, batch, options):
    """Loss, and how often the first drafted token is the target's likeliest."""
    _, loss, metrics = draft(**batch, **options)
    return loss.item(), (metrics["full_acc_0_sum"] / metrics["full_acc_0_total"]).item()


if __name__ == "__main__":
    main()
