"""Load a tokenizer: encode, decode, special ids; find its folder, on disk or on the hub.

A tokenizer folder is the hub's layout. `tokenizer.json` says everything about a tokenizer. Of `tiktoken.model` the file
gives ranks only: the split pattern and the names of the special ids are code of the model's repository, so the family
brings them as a `Layout`.
"""

from __future__ import annotations

from eyas.vocab.builtin import KIMI_SHA256, kimi_folder, write_kimi_vocabulary
from eyas.vocab.coder import Coder, Layout
from eyas.vocab.hub import resolve
from eyas.vocab.ranked import cuts
from eyas.vocab.tokenizer import Vocab

__all__ = ["KIMI_SHA256", "Coder", "Layout", "Vocab", "cuts", "kimi_folder", "resolve", "write_kimi_vocabulary"]
