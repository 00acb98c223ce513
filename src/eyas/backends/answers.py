"""Who reads an answer, and who a refusal, by what a process is told of the backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eyas.backends import errors, llamacpp, local, sglang, vllm
from eyas.backends.base import Answer, Wire
from eyas.backends.ids import IdStream
from eyas.backends.stream import Stream
from eyas.types import Failure

_IDS = {Wire.VLLM: vllm.came, Wire.SGLANG: sglang.came, Wire.LLAMACPP: llamacpp.came}


def answer(wire: Wire) -> Answer:
    """A fresh reader of one answer in that form."""
    takes = _IDS.get(wire)
    return Stream() if takes is None else IdStream(takes)


def failure_of(bills: bool) -> Callable[[int, Mapping[str, str], bytes], Failure]:
    """What reads a response with a status other than 200."""
    return errors.from_response if bills else local.failure
