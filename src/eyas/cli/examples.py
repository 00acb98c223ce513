"""Examples of every command, as `--help` shows them. A test parses each one, another runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Example(NamedTuple):
    """A command line, and what it does. `ID` stands for an id of the run."""

    line: str
    does: str


FIRST_EVENING: tuple[Example, ...] = (
    Example("eyas init prompts/b4.jsonl", "writes RUN.toml, says how the rows would be asked"),
    Example("eyas doctor RUN.toml", "key, limits, disk, prompts: before it costs anything"),
    Example("eyas plan RUN.toml", "what it will cost and take"),
    Example("eyas run RUN.toml --limit 20", "the first 20 of each set; without --limit the rest"),
    Example("eyas export runs/b4 --out rows", "the training rows"),
)
"""What `eyas --help` ends with: from a prompt file to rows."""

EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    "demo": (Example("eyas demo --out demo-run", "Two minutes, six prompt sets, rows in demo-run/rows."),),
    "init": (
        Example(
            "eyas init prompts/b4.jsonl --out b4.toml", "A RUN.toml for this file; asks what is for you to decide."
        ),
        Example(
            "eyas init prompts/b4.jsonl --usd 20 --any-licence --yes --force",
            "Asks nothing; at most $20, models under any licence.",
        ),
        Example(
            "eyas init prompts/b4.jsonl --backend vllm --base-url http://127.0.0.1:8000 --out own.toml",
            "For a server of your own: no dollars.",
        ),
    ),
    "plan": (
        Example("eyas plan RUN.toml", "Dollars, minutes, and which quota fits the money."),
        Example("eyas plan RUN.toml --quotas 100k,300k --out plan.json", "A plan that `eyas run plan.json` holds to."),
        Example("eyas plan RUN.toml --pilot 20", "Buys 20 answers a dataset, and plans by their lengths."),
    ),
    "rehearse": (
        Example("eyas rehearse RUN.toml", "The run on a virtual clock, and what other settings would give."),
        Example("eyas rehearse RUN.toml --seeds 5 --no-variants", "Five times: how far it may vary."),
    ),
    "run": (
        Example("eyas run RUN.toml --limit 20", "The first 20 conversations of each dataset, to look at them."),
        Example("eyas run RUN.toml --yes", "All of it, without a question; the same command again resumes."),
        Example("eyas run RUN.toml --dataset b4 --progress none --json", "One dataset, for a script: JSON on stdout."),
    ),
    "watch": (Example("eyas watch runs/kimi-b", "The live view of a run that another process carries."),),
    "tune": (
        Example("eyas tune runs/kimi-b in_flight=500", "Fewer requests at once, from the next second on."),
        Example("eyas tune runs/kimi-b drop=chutes/int4", "Ask that endpoint no more; take=chutes/int4 asks it again."),
    ),
    "status": (
        Example("eyas status runs/kimi-b", "Answers, money, labels, yield; also while it runs."),
        Example("eyas status runs/kimi-b --json", "The same for a script."),
    ),
    "show": (
        Example("eyas show runs/kimi-b", "Some works of each state, with their first words."),
        Example("eyas show runs/kimi-b --where finish=length --limit 5", "Five answers that ended at max_tokens."),
        Example("eyas show runs/kimi-b ID", "One work: what was asked, answered and paid."),
        Example("eyas show runs/kimi-b ID --tokens", "Its answer token by token, with the loss mask."),
    ),
    "report": (Example("eyas report runs/kimi-b", "One HTML page that opens without a network."),),
    "import": (
        Example(
            "eyas import RUN.toml answers.jsonl --dataset b4 --dry-run",
            "What would join the dataset b4, and with which labels.",
        ),
    ),
    "retry": (
        Example("eyas retry runs/kimi-b --where label", "Which labels there are, and how many works have each."),
        Example("eyas retry runs/kimi-b --where verdict=failed --dry-run", "Ids of the works that failed, on stdout."),
        Example(
            'eyas retry runs/kimi-b --where "finish=length and tokens>1000" --yes', "Have the long ones asked again."
        ),
    ),
    "forget": (Example("eyas forget runs/kimi-b ID", "Removes a prompt and its answers for good; asks first."),),
    "reconcile": (
        Example("eyas reconcile runs/kimi-b", "Looks up costs that are not known."),
        Example("eyas reconcile runs/kimi-b --write-off all", "Books what stays unknown at the most it can be."),
    ),
    "export": (
        Example("eyas export runs/kimi-b --out rows", "Ids and loss masks, as SpecForge and speculators read them."),
        Example(
            "eyas export runs/kimi-b --out rows-8k --max-length 8192 --eval-share 0.02",
            "Cut to 8192 ids; 2 % of the prompts kept apart.",
        ),
        Example("eyas export runs/kimi-b --out vocab --draft-vocab 16384,32768", "Draft vocabularies too."),
    ),
    "doctor": (
        Example("eyas doctor", "The machine and the key."),
        Example("eyas doctor RUN.toml", "All that would stop this run."),
    ),
    "providers": (
        Example("eyas providers moonshotai/kimi-k2.5", "Every endpoint, and whether eyas would use it."),
        Example("eyas providers RUN.toml --run runs/kimi-b", "Judged by this run, with what it learned."),
    ),
    "simulate": (
        Example("eyas simulate --max-seconds 5", "Its base URL goes to stdout; ends after five seconds."),
        Example(
            "eyas simulate --scenario storm --set speed=10 --max-seconds 5", "Every fault there is, ten times as fast."
        ),
    ),
    "completion": (
        Example("eyas completion bash > eyas.bash", "Then `source eyas.bash`, best from ~/.bashrc."),
        Example("eyas completion zsh > _eyas", "Into a folder of $fpath."),
        Example("eyas completion fish > eyas.fish", "Into ~/.config/fish/completions."),
    ),
}
"""By command; `prompts/b4.jsonl`, `RUN.toml` and the run directory `runs/kimi-b` are taken for granted."""
