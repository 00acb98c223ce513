"""Arguments and options that several commands take, each said once."""

from __future__ import annotations

from pathlib import Path

import click

from eyas.cli import complete

PATH = click.Path(path_type=Path)
BACKENDS = ("openrouter", "openai", "sglang", "vllm", "llamacpp")
"""The choices of [target] backend."""

rundir = click.argument("rundir", type=PATH, shell_complete=complete.rundirs)
run_toml = click.argument(
    "config_file", metavar="[RUN.toml]", required=False, type=PATH, shell_complete=complete.configs
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, a stable interface.")
yes = click.option("--yes", is_flag=True, help="Do not ask.")
key_file = click.option("--key-file", type=PATH, help="Read the API key from this file.")
key_file_unneeded = click.option("--key-file", type=PATH, help="Read the API key from this file; none is needed.")
insecure_http = click.option(
    "--insecure-http", is_flag=True, help="Let [target] base_url send the key unencrypted over a network."
)
backend = click.option("--backend", type=click.Choice(BACKENDS), help="What answers: OpenRouter, or a server of yours.")
