"""The live view as a terminal shows it: two captures of one run, for docs/live.md.

    python bench/captures.py [--in-flight 2000] [--prompts 2500] [--seconds 60]

A simulator, and an `eyas run` over six sets in tmux at 80 by 24, watched by `eyas watch` in tmux at 120 by 40. So many
seconds after the limit was reached both screens are kept as docs/live-80x24.txt and docs/live-120x40.txt, and in docs/live.md between its markers.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import kit
from eyas import vocab

ROOT = Path(__file__).parent.parent
MOST_PATIENCE = 400.0
"""Seconds until the captures are made though the limit was not reached."""
SETS = ("B3", "B4", "B5", "B6", "B7", "B8")
RUN_TOML = """\
[run]
dir = "kimi-b"
[target]
model = "moonshotai/kimi-k2.5"
base_url = "{url}"
tokenizer = "{tokenizer}"
max_tokens = 4096
[budget]
usd = 60.0
output_tokens = 1_500_000
[providers]
ignore = ["fireworks", "baseten"]
[limits]
in_flight = {in_flight}
"""


def tmux(*arguments):
    """A tmux server of our own; gives what it prints."""
    command = ["tmux", "-L", f"eyas-captures-{os.getpid()}", "-f", "/dev/null", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write(folder, url, args, tokenizer):
    text = RUN_TOML.format(url=url, tokenizer=tokenizer, in_flight=args.in_flight)
    for name in SETS:
        prompts = (json.dumps({"prompt": f"Question {n} of {name}: what is {n} + {n}?"}) for n in range(args.prompts))
        (folder / f"{name}.jsonl").write_text("\n".join(prompts) + "\n", encoding="utf-8")
        text += f'[[datasets]]\nname = "{name}"\nsource = "{name}.jsonl"\n'
    (folder / "RUN.toml").write_text(text, encoding="utf-8")


def flying(rundir):
    """Requests in flight by the pulse of the run; 0 before there is one."""
    try:
        return json.loads((rundir / "pulse.json").read_bytes())["in_flight"]
    except FileNotFoundError:
        return 0


def keep(name, screen):
    """The screen as a file, and between its markers in the page."""
    text = "\n".join(line.rstrip() for line in screen.rstrip("\n").split("\n")) + "\n"
    (ROOT / "docs" / f"live-{name}.txt").write_text(text, encoding="utf-8")
    page = ROOT / "docs" / "live.md"
    begin, end = f"<!-- live-{name} -->", f"<!-- /live-{name} -->"
    block = f"{begin}\n\n```text\n{text}```\n\n{end}"
    found = re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: block, page.read_text("utf-8"), flags=re.DOTALL)
    page.write_text(found, encoding="utf-8")
    print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, default=2000)
    parser.add_argument("--prompts", type=int, default=2500, help="for each set")
    parser.add_argument("--seconds", type=float, default=60.0, help="from the limit to the captures")
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    market = {"length_median": 900, "length_sigma": 0.8, "speed": 0.4, "keep_ids": "false"}
    with tempfile.TemporaryDirectory() as name, kit.simulator(tokenizer, "rough", **market) as sim:
        folder = Path(name)
        write(folder, sim.url, args, tokenizer)
        eyas = f"cd {shlex.quote(name)} && exec nice -n 19 {shlex.quote(sys.executable)} -m eyas"
        try:
            tmux("new-session", "-d", "-s", "small", "-x", "80", "-y", "24",
                 f"export OPENROUTER_API_KEY={kit.KEY}; {eyas} run RUN.toml --yes")  # fmt: skip
            patient = time.monotonic() + MOST_PATIENCE
            while flying(folder / "kimi-b") < 0.98 * args.in_flight and time.monotonic() < patient:
                time.sleep(0.5)
            tmux("new-session", "-d", "-s", "large", "-x", "120", "-y", "40", f"{eyas} watch kimi-b")
            time.sleep(args.seconds)
            keep("80x24", tmux("capture-pane", "-p", "-t", "small"))
            keep("120x40", tmux("capture-pane", "-p", "-t", "large"))
            for _ in range(2):
                tmux("send-keys", "-t", "small", "C-c")
                time.sleep(2.0)
        finally:
            tmux("kill-server")


main()
