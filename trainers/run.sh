#!/bin/sh
# Do SpecForge and speculators take the rows, and does a head learn from them? No network, no key, no GPU.
#     trainers/run.sh EYAS TRAINERS_PYTHON [FOLDER]
# EYAS is the command of an environment with eyas[demo]; TRAINERS_PYTHON the Python of one with requirements.txt and
# no-deps.txt. FOLDER keeps the demo run and its rows; without it they go to a temporary folder.
set -eu
eyas=$1 python=$2
here=$(dirname "$0")
if [ $# -gt 2 ]; then
  work=$3
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
export HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 TOKENIZERS_PARALLELISM=false
step() { printf '\n== %s\n' "$1"; }

step "six prompt sets against the simulator"
"$eyas" demo --out "$work"
"$eyas" export "$work/run" --out "$work/train" --draft-vocab 4096
tokenizer=$(sed -n 's/^tokenizer = "\(.*\)"$/\1/p' "$work/RUN.toml")
step "the trainers' readers"
"$python" "$here/readers.py" "$work/train"
step "reasoning through each route"
"$python" "$here/routes.py" "$work/train" "$tokenizer"
step "an EAGLE-3 head"
"$python" "$here/head.py" "$work/train" "$tokenizer"
