"""Chat templates, found and rendered as `transformers` does it.

Source: https://huggingface.co/docs/transformers/chat_templating: a sandbox with trim_blocks, lstrip_blocks and loop
controls, a `tojson` that escapes nothing, `raise_exception`, `strftime_now` and the `generation` block.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

from eyas.errors import UsageError
from eyas.types import Message

CONFIG = "tokenizer_config.json"

_FILE = "chat_template.jinja"
_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class Template:
    """A compiled template.

    Attributes:
        named: special tokens that it may name, such as `bos_token`, by their spelling.
        origin: where it came from, for messages.
        dated: whether it writes the date of the day.
    """

    def __init__(self, source: str, origin: str, named: Mapping[str, str]) -> None:
        self._render = _compile(source, origin)
        self.named = named
        self.origin = origin
        self.dated = "strftime_now" in source

    @classmethod
    def load(cls, folder: Path, given: Path | None) -> Template:
        """The template in a file, or else that of a tokenizer's folder.

        Raises:
            UsageError: there is none, or it cannot be read.
        """
        config = read(folder / CONFIG)
        source, origin = _source(given, folder, config)
        return cls(source, origin, {name: text for name in _NAMED if (text := _spelling(config.get(name))) is not None})

    def text(self, messages: Sequence[Message], thinking: bool, *, prompt: bool = True) -> str:
        """The text of a conversation, with the generation prompt unless told otherwise.

        Raises:
            UsageError: the template cannot say it.
        """
        try:
            return self._render(
                messages=list(messages),
                tools=None,
                documents=None,
                add_generation_prompt=prompt,
                enable_thinking=thinking,
                thinking=thinking,
                **self.named,
            )
        except Exception as error:
            raise UsageError(
                f"{self.origin} cannot say these messages ({error}): correct or remove the prompt."
            ) from error


def read(path: Path) -> dict[str, Any]:
    """The JSON object in a file, empty if there is no such file.

    Raises:
        UsageError: it cannot be read.
    """
    if not path.is_file():
        return {}
    try:
        found: Any = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error}): download it again.") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path} is no JSON object: download it again.")
    return cast("dict[str, Any]", found)


def _source(given: Path | None, folder: Path, config: dict[str, Any]) -> tuple[str, str]:
    """The template's text, and where it came from."""
    path = given or folder / _FILE
    if given is not None or path.is_file():
        try:
            return path.read_text(encoding="utf-8"), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"chat template {path} cannot be read ({error}): check [target] chat_template.") from error
    kept = config.get("chat_template")
    if isinstance(kept, list):
        kept = {each.get("name"): each.get("template") for each in cast("list[dict[str, Any]]", kept)}.get("default")
    if not isinstance(kept, str):
        raise UsageError(
            f"{folder} holds no chat template ({_FILE}, or in {CONFIG}): give a Jinja file as [target] chat_template."
        )
    return kept, f"the chat_template in {folder / CONFIG}"


def _spelling(token: Any) -> str | None:
    """The spelling of a special token, which a file gives as a text or as an object."""
    found = cast("dict[str, Any]", token).get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else None


def _compile(source: str, origin: str) -> Callable[..., str]:
    from jinja2 import TemplateError  # noqa: PLC0415  # models with a family of their own need no Jinja

    try:
        return cast("Callable[..., str]", _environment().from_string(source).render)
    except TemplateError as error:
        raise UsageError(f"{origin} is no valid Jinja template ({error}): correct it.") from error


@cache
def _environment() -> Any:
    """The environment in which `transformers` renders chat templates."""
    from jinja2 import TemplateError, nodes  # noqa: PLC0415  # as above
    from jinja2.ext import Extension  # noqa: PLC0415
    from jinja2.parser import Parser  # noqa: PLC0415
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    class Generation(Extension):
        """`{% generation %}`, which marks answers for a loss mask and prints them as they are."""

        tags = {"generation"}  # noqa: RUF012  # as jinja2 declares it

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def strftime_now(form: str) -> str:
        return datetime.now(UTC).strftime(form)

    made: Any = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = strftime_now
    return made
