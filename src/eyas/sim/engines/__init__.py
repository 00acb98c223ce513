"""Stand-ins: servers that speak the wire of SGLang, vLLM, llama.cpp and of any OpenAI-compatible chat server.

The engines themselves need a GPU, or a model. A stand-in answers with ids that a seed decides, in the shapes that the engine's
documentation and source give, with its slots, its queue and its habits. What it never shows is a model's quality or speed.
"""

from __future__ import annotations

from eyas.sim.engines.author import Author, Modes
from eyas.sim.engines.base import Host, Settings, Streams, Told
from eyas.sim.engines.engine import Engine
from eyas.sim.engines.llamacpp import LlamaCpp
from eyas.sim.engines.openai import OpenAI
from eyas.sim.engines.sglang import SGLang
from eyas.sim.engines.vllm import VLLM

__all__ = ["WIRES", "Author", "Engine", "Host", "Modes", "Settings", "Streams", "Told"]

WIRES = {"openai": OpenAI, "vllm": VLLM, "sglang": SGLang, "llamacpp": LlamaCpp}
"""The wires by the name of the backend that speaks them."""
