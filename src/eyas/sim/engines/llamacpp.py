"""llama.cpp's server: `/completion` with a prompt of ids, `tokens` back (pure).

Shapes: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md and `server-task.cpp` beside it. The tokens
hold the stop token; control tokens have no text (unless the server runs with `--special`). A stream sends nothing for a token
that ends within a character, and for the one that completes it the whole text with that one id (`process_token` in
`server-context.cpp`): the ids before are lost. It ends without `[DONE]`. What the documentation
leaves open is as a real server answers (xllamacpp 2026.10 with SmolLM2-135M): an answer that fills the context ends by limit
and is not said to be truncated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from eyas.sim.engines.author import Answer
from eyas.sim.engines.base import Asked, Host, Job, Told
from eyas.sim.engines.chat import Dialect, fitted, parse, told
from eyas.sim.engines.openai import models
from eyas.sim.engines.playing import Delta, Player, Spelled
from eyas.sim.engines.vllm import ids_json, prompt_of
from eyas.sim.reply import Reply, as_json

_DIALECT = Dialect()
_ENCODE = msgspec.json.encode
_ENDLESS = 2**31 - 1


class Body(msgspec.Struct, frozen=True):
    """The fields of a completion request that the stand-in obeys; unknown ones are ignored, as the server does."""

    prompt: Any = None
    n_predict: int | None = None
    max_tokens: int | None = None
    stream: bool = False
    return_tokens: bool = False
    seed: int | None = None


class LlamaCpp:
    """`/completion`, chat completions, `/tokenize`, `/props`, `/v1/models`."""

    path = ""

    def __init__(self, host: Host) -> None:
        self._host = host

    def get(self, path: str) -> Reply | None:
        """See `Wire`."""
        settings, vocab = self._host.settings, self._host.loaded.vocab
        if path == "/v1/models":
            meta = {"vocab_type": 2, "n_vocab": vocab.size, "n_ctx": settings.context, "n_ctx_train": settings.context, "n_embd": 64,
                    "n_params": 1, "size": 1}  # fmt: skip
            return as_json(models(self._host, "llamacpp", meta=meta))
        if path == "/props":
            return as_json({"default_generation_settings": {"id": 0, "n_ctx": settings.context, "params": {}},
                            "total_slots": settings.slots, "model_alias": settings.model,
                            "model_path": f"{settings.model}.gguf", "chat_template": "",
                            "eos_token": vocab.decode([self._host.loaded.stop]), "build_info": "b0-standin",
                            "is_sleeping": False})  # fmt: skip
        return as_json({"status": "ok"}) if path == "/health" else None

    def post(self, path: str, data: bytes) -> Asked | Reply | None:
        """See `Wire`."""
        if path in ("/completion", "/completions"):
            return self._fit(self._completion(data))
        if path == "/v1/chat/completions":
            return self._fit(parse(data, self._host, _DIALECT, _refuse))
        if path == "/tokenize":
            asked = msgspec.json.decode(data, type=dict[str, Any])
            special = asked.get("parse_special", True)
            encode = self._host.loaded.vocab.encode_special if special else self._host.loaded.vocab.encode
            return as_json({"tokens": encode(str(asked.get("content") or ""))})
        return None

    def _completion(self, data: bytes) -> Asked | Reply:
        try:
            asked = msgspec.json.decode(data, type=Body)
            prompt = prompt_of(asked.prompt, self._host)
        except msgspec.DecodeError as error:
            return _refuse(400, str(error))
        except ValueError:
            return _refuse(400, "Prompt contains invalid tokens")
        most = asked.max_tokens if asked.n_predict is None else asked.n_predict
        limit = _ENDLESS if most is None or most < 0 else most
        form = CompletionForm(self._host, asked)
        return Asked(prompt, self._host.modes.of(prompt), max(1, limit), asked.stream, form, asked.seed)

    def _fit(self, asked: Asked | Reply) -> Asked | Reply:
        """A prompt that fills the context is refused; an answer that would is cut."""
        if isinstance(asked, Reply):
            return asked
        context, size = self._host.settings.context, len(asked.prompt)
        if size < context:
            return fitted(asked, context - size)
        message = f"request ({size} tokens) exceeds the available context size ({context} tokens), try increasing it"
        error = {"code": 400, "message": message,
                 "type": "exceed_context_size_error", "n_prompt_tokens": size, "n_ctx": context}  # fmt: skip
        return as_json({"error": error}, 400)


def _refuse(status: int, message: str) -> Reply:
    return as_json({"error": {"code": status, "message": message, "type": "invalid_request_error"}}, status)


class CompletionForm:
    """One answer of `/completion`."""

    early = False

    def __init__(self, host: Host, asked: Body) -> None:
        self._host = host
        self._asked = asked

    def player(self, answer: Answer) -> Player:
        """See `Form`."""
        return Spelled(answer, self._host.texts, set(self._host.loaded.vocab.specials.values()), "replace")

    def head(self, job: Job) -> bytes:
        """Nothing: the first event has the first token."""
        del job
        return b""

    def piece(self, job: Job, deltas: Sequence[Delta]) -> bytes:
        """One event; none where no text became whole."""
        [delta] = deltas
        sent = job.sent + len(delta.ids)
        if not delta.heard:
            return b""
        ids = told(delta.heard, job, self._host, sent >= job.answer.size)
        return b"".join(
            (
                b'data: {"index":0,"content":"',
                self._host.texts.escape(delta.text),
                b'","tokens":',
                ids_json([] if self._host.settings.told is Told.NONE else ids),
                b',"stop":false,"id_slot":-1,"tokens_predicted":%d,"tokens_evaluated":%d}\n\n'
                % (sent, len(job.asked.prompt)),
            )
        )

    def end(self, job: Job) -> bytes:
        """The event that says how it ended."""
        return b"data: " + _ENCODE(self._final(job, "", [])) + b"\n\n"

    def whole(self, job: Job, deltas: Sequence[Delta]) -> bytes:
        """See `Form`."""
        asked = self._asked.return_tokens and self._host.settings.told is not Told.NONE
        ids = told(job.answer.ids, job, self._host, ended=True) if asked else []
        return _ENCODE(self._final(job, deltas[0].text, ids))

    def _final(self, job: Job, content: str, ids: Sequence[int]) -> dict[str, Any]:
        prompt, size = len(job.asked.prompt), job.answer.size
        return {"index": 0, "content": content, "tokens": ids, "id_slot": 0, "stop": True,
                "model": self._host.settings.model, "tokens_predicted": size, "tokens_evaluated": prompt,
                "generation_settings": {"n_predict": self._asked.n_predict},
                "prompt": self._host.loaded.vocab.decode(job.asked.prompt), "has_new_line": "\n" in content,
                "truncated": False, "stop_type": "eos" if job.answer.stopped else "limit",
                "stopping_word": "", "tokens_cached": prompt + size - 1,
                "timings": _timings(prompt, size, self._host)}  # fmt: skip


def _timings(prompt: int, size: int, host: Host) -> dict[str, float]:
    """What the answer would have taken by itself, in milliseconds."""
    first, each = max(host.settings.latency, 1e-3) * 1000, 1000 / host.settings.speed
    return {"cache_n": 0, "prompt_n": prompt, "prompt_ms": first, "prompt_per_token_ms": first / prompt,
            "prompt_per_second": 1000 * prompt / first, "predicted_n": size, "predicted_ms": size * each,
            "predicted_per_token_ms": each, "predicted_per_second": host.settings.speed}  # fmt: skip
