"""What the checks share: the rows of an export, the Kimi tokenizer as `transformers` loads it, and `prepare-data`."""

import base64
import json
import os
import subprocess
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

KIMI_VOCAB = 163_840
KIMI_RANKS = 163_584

_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_LEAD, _TAIL = r"[^\r\n\p{L}\p{N}]?", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join(
    (
        r"[\p{Han}]+",
        f"{_LEAD}{_UPPER}*{_LOWER}+{_TAIL}",
        f"{_LEAD}{_UPPER}+{_LOWER}*{_TAIL}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

# Kimi's chat template in short: every message up to and including the last answer that calls no tool is history, and
# history is rendered with an empty <think></think>. It has no default system prompt, as Kimi K2.5.
TEMPLATE = """\
{%- set ns = namespace(last=-1) -%}
{%- for message in messages -%}
  {%- if message['role'] == 'assistant' and not message.get('tool_calls') -%}{%- set ns.last = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for message in messages -%}
  {%- set mark = {'user': 'user', 'assistant': 'assistant'}.get(message['role'], 'system') -%}
  {{- '<|im_' + mark + '|>' + (message.get('name') or message['role']) + '<|im_middle|>' -}}
  {%- if message['role'] == 'assistant' -%}
    {{- '<think>' + ('' if loop.index0 <= ns.last else message.get('reasoning_content') or '') + '</think>' -}}
  {%- endif -%}
  {{- message.get('content') or '' -}}
  {%- if message.get('tool_calls') -%}
    {{- '<|tool_calls_section_begin|>' -}}
    {%- for call in message['tool_calls'] -%}
      {%- set given = call['function']['arguments'] -%}
      {{- '<|tool_call_begin|>' + call['id'] + '<|tool_call_argument_begin|>' -}}
      {{- given if given is string else given | tojson -}}
      {{- '<|tool_call_end|>' -}}
    {%- endfor -%}
    {{- '<|tool_calls_section_end|>' -}}
  {%- endif -%}
  {{- '<|im_end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_assistant|>assistant<|im_middle|><think>' -}}{%- endif -%}
"""


def shards(folder):
    """The uncompressed shards that an export's manifest lists."""
    listed = json.loads((folder / "manifest.json").read_bytes())["shards"]
    found = [folder / shard["name"] for shard in listed]
    if not found or any(shard.suffix != ".jsonl" for shard in found):
        sys.exit(f"{folder} holds no uncompressed rows: export with --compress none")
    return found


def rows(folder):
    """Every row of an export."""
    for shard in shards(folder):
        with shard.open("rb") as lines:
            yield from map(json.loads, lines)


def prepare_data(model, data, out, *options):
    """Run `speculators prepare-data`, offline and with a cache of its own, so that no former run answers for this one."""
    command = [sys.executable, "-m", "speculators", "prepare-data", "--model", model]
    for path in data:
        command += ["--data", path.resolve()]
    command += ["--output", out, "--num-preprocessing-workers", "1", *options]
    env = os.environ | {"HF_HOME": str(out.parent / "cache"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=env, cwd=out.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"speculators prepare-data failed (exit {done.returncode}):\n{done.stdout}{done.stderr}")


def kimi_tokenizer(folder, out):
    """Write the tokenizer of a Kimi folder (`tiktoken.model`) as one that `transformers` loads without remote code."""
    ranks = {}
    for line in (folder / "tiktoken.model").read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    letters = bytes_to_unicode()

    def spell(token):
        return "".join(letters[byte] for byte in token)

    # tiktoken always joins the pair that makes the lowest rank; as merges: every way to make a token, in rank order.
    merges = []
    for token, rank in ranks.items():
        ways = ((token[:cut], token[cut:]) for cut in range(1, len(token)))
        merges += [(rank, ranks[a], ranks[b], a, b) for a, b in ways if a in ranks and b in ranks]
    merges.sort()
    pairs = [(spell(a), spell(b)) for *_, a, b in merges]
    tokenizer = Tokenizer(models.BPE({spell(t): r for t, r in ranks.items()}, pairs, ignore_merges=True))
    split = pre_tokenizers.Split(Regex(PATTERN), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    named = json.loads((folder / "tokenizer_config.json").read_bytes())["added_tokens_decoder"]
    names = [named.get(str(i), {}).get("content", f"<|reserved_token_{i}|>") for i in range(KIMI_RANKS, KIMI_VOCAB)]
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="[EOS]", pad_token="[PAD]", clean_up_tokenization_spaces=False
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(out)
    return fast
