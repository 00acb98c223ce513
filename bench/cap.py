"""A hard cap: work for about 1.5 times the cap ends with exit 3 and a bill below it, and resumes when the cap is raised.

python bench/cap.py [--cap 1.0] [--prompts 2000] [--scenario clean]
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import kit
from eyas import vocab


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cap", type=float, default=1.0)
    parser.add_argument("--prompts", type=int, default=2000)
    parser.add_argument("--scenario", default="clean")
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    changes = {"tps": 200, "length_median": 300, "length_sigma": 0.5, "slots": 0}
    with tempfile.TemporaryDirectory() as name, kit.simulator(tokenizer, args.scenario, **changes) as sim:
        folder = Path(name)
        kit.write_run(folder, sim, tokenizer, args.prompts, usd=args.cap, in_flight=400)
        first = kit.eyas(folder, "run", "RUN.toml", "--yes", "--json", "--progress", "none", timeout=900)
        billed, status = sim.state()["billed_nano"] / 1e9, json.loads(first.stdout)
        print(
            f"cap ${args.cap}: exit {first.returncode}, billed ${billed:.6f} by the simulator, money {status['money']}"
        )
        kit.write_run(folder, sim, tokenizer, args.prompts, usd=10 * args.cap, in_flight=400)
        second = kit.eyas(folder, "run", "RUN.toml", "--yes", "--json", "--progress", "none", timeout=900)
        after, done = sim.state()["billed_nano"] / 1e9, json.loads(second.stdout)
        print(f"cap raised: exit {second.returncode}, billed ${after:.6f}, {done['datasets']['B3']}")
        good = first.returncode == 3 and billed <= args.cap and second.returncode == 0 and billed > 0.99 * args.cap
        sys.exit(0 if good else 1)


main()
