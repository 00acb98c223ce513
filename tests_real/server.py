"""A real llama.cpp server over SmolLM2-135M-Instruct on 127.0.0.1, in this process.

    python -m tests_real.server [--port 8080] [--slots 8] [--context 8192] [--log]

Port 0 takes a free one. The first line of the standard output is `ready PORT`. It ends when its standard input does, so
it outlives nobody who started it with a pipe; `< /dev/null` ends it at once. SIGKILL does no harm: the port is free.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from typing import Any

from tests_real.gguf import MODEL_NAME, model_file

_LLAMA: Any = importlib.import_module("xllamacpp")  # it has no types
_DEBUG = 5
"""The level of llama.cpp's log that names every token sampled."""
_LOG_SECONDS = 1.0
"""How long the log, which a thread of its own writes, may need for its last lines."""


def main() -> None:
    """Serve until the standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--context", type=int, default=8192, help="tokens, over all slots")
    parser.add_argument("--log", action="store_true", help="name every token sampled on the standard error")
    args = parser.parse_args()
    server = _LLAMA.Server(parameters(args.port, args.slots, args.context, _DEBUG if args.log else 0))
    print(f"ready {server.listening_address.rpartition(':')[2]}", flush=True)
    sys.stdin.buffer.read()
    time.sleep(_LOG_SECONDS)
    os._exit(0)  # the server's own end would wait for the answers in flight


def parameters(port: int, slots: int, context: int, verbosity: int) -> Any:
    """One thread: with two, llama.cpp spins where other programs use the cores too, and is ten times slower."""
    made: Any = _LLAMA.CommonParams()
    made.model.path = str(model_file())
    made.model_alias = {MODEL_NAME}
    made.hostnames = ["127.0.0.1"]
    made.port = port
    made.n_ctx = context
    made.n_parallel = slots
    made.n_gpu_layers = 0
    made.cpuparams.n_threads = 1
    made.cpuparams_batch.n_threads = 1
    made.use_jinja = True
    made.endpoint_slots = True
    made.endpoint_metrics = True
    made.ui = False
    made.verbosity = verbosity
    return made


if __name__ == "__main__":
    main()
