"""An answer as a file holds it, before it is known which work it answers."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from eyas.errors import EyasError
from eyas.types import Finish, Label, Prompt, ToolCall, Usage

TAG = "import:"
"""What the tag of an imported answer begins with; the name of its file follows."""

Ids = tuple[int, ...]


class Form(StrEnum):
    """How a row says its answer."""

    SGLANG = "sglang"
    VLLM = "vllm"
    ROWS = "rows"
    TEXT = "text"


class BadAnswer(EyasError):
    """A row of which no answer can be read; the message is a sentence that says why and what to do."""


class Answer(msgspec.Struct, frozen=True):
    """One answer of a row.

    Attributes:
        file, line: where it stands, as `prompts.Row` counts lines.
        form: how it was read.
        prompt: what it replies to, where the row has messages or a question; its id says which prompt that is.
        prompt_text: a text that is the question or the rendered prompt, whichever a prompt of the run is.
        prompt_ids: ids of the prompt as the engine saw it.
        ids: ids that the model sampled; None where the row has text only.
        text: the engine's whole text of the answer; empty where there is none.
        row_text: the text of prompt and answer in a row that eyas wrote.
        reasoning, content, tool_calls: of a row of text, the answer; of one with ids, texts that the ids must hold.
        finish: why it ended, None where the row does not say.
        usage: counts that the engine gave.
        name: the id of the work in a row that eyas wrote, DATASET/PROMPTID16/tTURN/sSAMPLE.
        label: how sure the ids of such a row are; None: of any other row.
        unsure: ranges [start, end) of `ids` that are not to be trained on.
    """

    file: str
    line: int
    form: Form
    prompt: Prompt | None = None
    prompt_text: str = ""
    prompt_ids: Ids | None = None
    ids: Ids | None = None
    text: str = ""
    row_text: str = ""
    reasoning: str = ""
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish | None = None
    usage: Usage | None = None
    model: str = ""
    name: str = ""
    label: Label | None = None
    unsure: tuple[tuple[int, int], ...] = ()

    def begun_at(self, length: int) -> Answer:
        """The same, where the prompt is only the first `length` of what was taken for it: the rest is the answer's."""
        prompt, ids = self.prompt_ids or (), self.ids or ()
        more = len(prompt) - length
        if not more:
            return self
        unsure = ((0, more), *((start + more, end + more) for start, end in self.unsure))
        return msgspec.structs.replace(self, prompt_ids=prompt[:length], ids=prompt[length:] + ids, unsure=unsure)
