"""How much of the reasoning does each trainer learn from? The same answers as conversations, and as rows.

    python trainers/routes.py ROWS_FOLDER TOKENIZER_FOLDER

TOKENIZER_FOLDER holds Kimi's `tiktoken.model`. Every exported answer of one user message is taken twice: as it was
exported, and as a conversation (the user message; content, `reasoning_content` and tool calls of the answer). Declared
tools are left out on both sides. Each trainer's own code turns the conversations into ids and mask: SpecForge with its
template `kimi-k2-thinking`, speculators with `prepare-data --render-endpoint`, where a server on loopback renders Kimi's
template in the place of vLLM. Counted are the supervised ids between `<think>` and `</think>`, and the rows whose prompt
is one that was asked. A conversation that ends in an answer without tool calls is all history to Kimi's template, which
empties the reasoning of history; one that ends in tool calls is not. Exit 0 if the conversation routes lose all reasoning
of the first kind and the rows keep 99 % (the rest are ids at the ends that are not sure, and masked).
"""

import argparse
import contextlib
import json
import os
import re
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import datasets
from common import kimi_tokenizer, prepare_data, rows
from specforge.data.prompt_builder import prepare_prompt_tasks

END, OPEN, CLOSE = 163_586, 163_606, 163_607  # <|im_end|>, <think>, </think>
ROW = re.compile(
    r"<\|im_user\|>user<\|im_middle\|>(?P<question>.*?)<\|im_end\|>"
    r"<\|im_assistant\|>assistant<\|im_middle\|><think>(?P<reasoning>.*?)</think>"
    r"(?P<content>.*?)(?:<\|tool_calls_section_begin\|>(?P<calls>.*)<\|tool_calls_section_end\|>)?<\|im_end\|>",
    re.DOTALL,
)
CALL = re.compile(r"<\|tool_call_begin\|>(.*?)<\|tool_call_argument_begin\|>(.*?)<\|tool_call_end\|>", re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, metavar="ROWS_FOLDER")
    parser.add_argument("tokenizer", type=Path, metavar="TOKENIZER_FOLDER")
    arguments = parser.parse_args()
    datasets.disable_progress_bars()
    plain, calling = answers(arguments.rows)
    with tempfile.TemporaryDirectory() as name:
        tokenizer = kimi_tokenizer(arguments.tokenizer, Path(name) / "model")
        lost = [table("answers without tool calls", plain, tokenizer, Path(name) / "plain")]
        if calling:
            table("answers that end in tool calls", calling, tokenizer, Path(name) / "calls")
    sys.exit(0 if all(lost) else 1)


def answers(folder):
    """Rows of one user message and a whole answer, with that answer's conversation: without tool calls, and with."""
    plain, calling = [], []
    for row in rows(folder):
        match = ROW.fullmatch(row["text"].partition("<|im_end|>")[2] if tools_first(row) else row["text"])
        if match is None or not match["reasoning"]:
            continue
        answer = {"role": "assistant", "content": match["content"], "reasoning_content": match["reasoning"]}
        if match["calls"]:
            answer["tool_calls"] = [
                {"id": name, "type": "function", "function": {"name": name.split(".")[-1], "arguments": arguments}}
                for name, arguments in CALL.findall(match["calls"])
            ]
        conversation = [{"role": "user", "content": match["question"]}, answer]
        (calling if match["calls"] else plain).append((row, conversation))
    return plain, calling


def tools_first(row):
    """Whether a row begins with declared tools."""
    return row["text"].startswith("<|im_system|>tool_declare")


def untooled(row):
    """A row's ids and mask without declared tools."""
    start = row["input_ids"].index(END) + 1 if tools_first(row) else 0
    return row["input_ids"][start:], row["loss_mask"][start:]


def table(title, chosen, tokenizer, scratch):
    """Print what each route supervises; whether the conversation routes lose all reasoning and the rows none."""
    scratch.mkdir()
    path = scratch / "conversations.jsonl"
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps({"conversations": conversation}) + "\n" for _, conversation in chosen)
    reasoning = sum(row["input_ids"].index(CLOSE) - row["input_ids"].index(OPEN) - 1 for row, _ in chosen)
    routes = {
        "rows of eyas": [untooled(row) for row, _ in chosen],
        "SpecForge, conversations": specforge(path, tokenizer),
        "speculators, conversations": speculators(path, tokenizer, scratch),
    }
    asked = {prompt(untooled(row)[0]) for row, _ in chosen}
    print(f"\n{len(chosen)} {title}, {reasoning:,} ids of reasoning")
    print(f"{'route':28}{'rows':>6}{'prompts as asked':>18}{'supervised ids':>16}{'of reasoning':>14}{'share':>8}")
    shares = []
    for name, loaded in routes.items():
        kept = sum(thought(ids, mask) for ids, mask in loaded)
        shares.append(kept / reasoning)
        total, same = sum(sum(mask) for _, mask in loaded), sum(prompt(ids) in asked for ids, _ in loaded)
        print(f"{name:28}{len(loaded):6}{same:18}{total:16,}{kept:14,}{shares[-1]:8.1%}")
    return shares[0] > 0.99 and not any(shares[1:]) and all(len(loaded) == len(chosen) for loaded in routes.values())


def prompt(ids):
    """What stands before the answer, the opened <think> included."""
    return tuple(ids[: ids.index(OPEN) + 1])


def thought(ids, mask):
    """Supervised ids between <think> and </think>, in a row of one answer."""
    if OPEN not in ids or CLOSE not in ids:
        return 0
    return sum(mask[ids.index(OPEN) + 1 : ids.index(CLOSE)])


def specforge(path, tokenizer):
    """Ids and masks that SpecForge makes of the conversations, with its template for Kimi's thinking models."""
    with contextlib.redirect_stdout(sys.stderr):
        tasks = prepare_prompt_tasks(
            path,
            tokenizer,
            chat_template="kimi-k2-thinking",
            max_length=8192,
            is_preformatted=False,
            train_only_last_turn=False,
            cache_dir=None,
            cache_key=None,
            num_proc=None,
        )
    return [(task["payload"]["input_ids"], task["payload"]["loss_mask"]) for task in tasks]


def speculators(path, tokenizer, scratch):
    """The same from `speculators prepare-data`, which asks a vLLM server to render; a small server stands in for it."""

    class Render(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            ids = tokenizer.apply_chat_template(
                asked["messages"], add_generation_prompt=asked["add_generation_prompt"], return_dict=False
            )
            body = json.dumps({"token_ids": ids[: asked["truncate_prompt_tokens"]]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Render) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        prepare_data(scratch.parent / "model", [path], scratch / "out", "--render-endpoint", endpoint)
        server.shutdown()
    loaded = datasets.load_from_disk(scratch / "out").with_format(None)
    return [(row["input_ids"], row["loss_mask"]) for row in loaded]


if __name__ == "__main__":
    main()
