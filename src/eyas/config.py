"""RUN.toml -> RunConfig: validated once, frozen, every wrong key named with its remedy."""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from eyas.errors import StorageError, UsageError

OPENROUTER = "https://openrouter.ai/api/v1"
Backend = Literal["openrouter", "openai", "sglang", "vllm", "llamacpp"]
_OURS = frozenset(
    {"model", "models", "messages", "tools", "stream", "max_tokens", "max_completion_tokens", "provider", "n"}
)
FROZEN = "# frozen by eyas; relative paths start from "
_DURABLY = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_DSYNC", 0)
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Run(_Section):
    """[run]: where the run lives, and the seed of its order."""

    dir: str = Field(min_length=1)
    seed: int = 0


class Target(_Section):
    """[target]: the model that answers, and how it is asked."""

    model: str = Field(min_length=1)
    backend: Backend = "openrouter"
    base_url: str = OPENROUTER
    family: str | None = None
    tokenizer: str | None = None
    chat_template: str | None = None
    thinking: bool = True
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int = Field(default=16384, ge=1)
    stream: bool = True
    recover: bool = True
    extra_body: dict[str, Any] = {}
    extra_headers: dict[str, str] = {}

    @field_validator("base_url")
    @classmethod
    def _safe_url(cls, value: str, info: ValidationInfo) -> str:
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.hostname or url.port == 0:
            raise ValueError("give a full address such as https://openrouter.ai/api/v1")
        if url.username or url.password or url.query or url.fragment:
            raise ValueError("give the address alone: a key belongs in OPENROUTER_API_KEY or --key-file")
        agreed = cast("dict[str, bool]", info.context or {}).get("insecure_http", False)
        if url.scheme == "http" and url.hostname not in LOOPBACK and not agreed:
            raise ValueError(
                "http:// would send the key unencrypted: use https://, or agree with `run --insecure-http`"
            )
        return value.rstrip("/")

    @field_validator("extra_headers")
    @classmethod
    def _no_key(cls, value: dict[str, str]) -> dict[str, str]:
        if any(name.lower() == "authorization" for name in value):
            raise ValueError("the key comes from OPENROUTER_API_KEY or --key-file, never from RUN.toml: remove it here")
        return value

    @field_validator("extra_body")
    @classmethod
    def _not_ours(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(_OURS & set(value))
        if taken:
            raise ValueError(f"{', '.join(taken)}: eyas sets these itself, to bound the bill and to choose who answers")
        return value


class Budget(_Section):
    """[budget]: the dollar cap, the token quota of each dataset, and what may be wasted."""

    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    output_tokens: int | None = Field(default=None, gt=0)
    mode: Literal["strict", "metered"] = "strict"
    keep_from: int = Field(default=64, ge=1)
    waste: float = Field(default=0.10, ge=0, le=1)
    on_length: Literal["keep", "drop", "redo"] = "keep"


class Providers(BaseModel):
    """[providers]: which endpoints may serve. Fields of OpenRouter's provider object may stand here as they are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    precision: Literal["native", "any"] = "native"
    routing: Literal["pinned", "gateway"] = "pinned"
    drop_above: float | None = Field(default=None, ge=0, le=1)
    require_streamed: bool = False
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    sort: str | dict[str, Any] | None = "price"
    allow_fallbacks: bool | None = None
    require_parameters: bool | None = None
    data_collection: Literal["allow", "deny"] | None = None
    zdr: bool | None = None
    enforce_distillable_text: bool | None = None
    quantizations: tuple[str, ...] = ()
    preferred_min_throughput: float | dict[str, float] | None = None
    preferred_max_latency: float | dict[str, float] | None = None
    max_price: dict[str, float] | None = None
    options: dict[str, Any] | None = None


class Limits(_Section):
    """[limits]: how many requests may fly, and how long each part of one may take (seconds)."""

    in_flight: int = Field(default=2000, ge=1, le=5000)
    connects_per_second: int = Field(default=300, ge=1)
    connect_seconds: float = Field(default=30, gt=0)
    headers_seconds: float = Field(default=300, gt=0)
    silence_seconds: float = Field(default=240, gt=0)
    total_seconds: float = Field(default=7200, gt=0)
    draft_seconds: float = Field(default=3, gt=0)


class Dataset(_Section):
    """[[datasets]]: one prompt set; what is set here goes before [target] and [budget]."""

    name: str
    source: str = Field(min_length=1)
    output_tokens: int | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)
    thinking: bool | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    system: str | None = None
    samples: int = Field(default=1, ge=1)
    turns: Literal["first"] = "first"

    @field_validator("name")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value) or ".." in value:
            raise ValueError("use letters, digits, '.', '_' and '-' (64 at most, a letter or digit first)")
        return value


class RunConfig(_Section):
    """A whole RUN.toml. `base` is the folder that relative paths start from."""

    run: Run
    target: Target
    budget: Budget = Budget()
    providers: Providers = Providers()
    limits: Limits = Limits()
    datasets: Annotated[tuple[Dataset, ...], Field(min_length=1)]
    base: Path = Path()

    @model_validator(mode="after")
    def _whole(self) -> RunConfig:
        names = [dataset.name.casefold() for dataset in self.datasets]
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise ValueError(f"datasets: the name {double[0]!r} stands twice (case does not count): rename one")
        if self.target.backend == "openrouter" and self.budget.usd is None:
            raise ValueError("budget.usd: missing: give the most that this run may spend, for example usd = 100.0")
        return self

    @property
    def dir(self) -> Path:
        """The run directory."""
        return self.base / self.run.dir

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name.

        Raises:
            UsageError: there is none.
        """
        for dataset in self.datasets:
            if dataset.name == name:
                return dataset
        raise UsageError(f"there is no dataset {name!r}; RUN.toml has {', '.join(d.name for d in self.datasets)}")

    def thinking(self, name: str) -> bool:
        """Whether that dataset is answered with thinking on."""
        own = self.dataset(name).thinking
        return self.target.thinking if own is None else own

    def max_tokens(self, name: str) -> int:
        """Most output tokens of one answer in that dataset."""
        return self.dataset(name).max_tokens or self.target.max_tokens

    def quota(self, name: str) -> int | None:
        """Output tokens wanted in that dataset; None: an answer to every prompt."""
        return self.dataset(name).output_tokens or self.budget.output_tokens


def load(path: Path, *, insecure_http: bool = False) -> RunConfig:
    """Read and check a RUN.toml; `insecure_http` lets its base_url be http on another machine.

    Raises:
        UsageError: it cannot be read, is no TOML, or a key is wrong; the message names the key and the remedy.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = _reason(error)
        raise UsageError(f"{path} cannot be read ({why}): check the path, or write one as in the README") from error
    return parse(text, path, insecure_http=insecure_http)


def parse(text: str, path: Path, *, insecure_http: bool = False) -> RunConfig:
    """Check the text of a RUN.toml; `path` is for messages and for relative paths in it."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error
    try:
        return RunConfig.model_validate({**data, "base": path.parent}, context={"insecure_http": insecure_http})
    except ValidationError as error:
        entries = error.errors(include_url=False)
        # A dataset that is wrong also counts as missing: only what is wrong with it is said.
        entries = [e for e in entries if e["type"] != "too_short" or len(entries) == 1]
        lines = "\n".join(f"  {_line(entry)}" for entry in entries)
        raise UsageError(f"{path}: these keys are wrong:\n{lines}") from None


def freeze(config: RunConfig, text: str) -> None:
    """Keep the RUN.toml of a run in its directory, so that it needs no other file.

    Raises:
        StorageError: it cannot be written.
    """
    path, base = config.dir / "run.toml", config.base.resolve()
    draft = path.with_suffix(".tmp")
    try:
        # Durable before it takes the place of the old one: after a power loss it would else be empty.
        with os.fdopen(os.open(draft, _DURABLY, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{FROZEN}{json.dumps(str(base))}\n{text}")
        draft.replace(path)
    except OSError as error:
        why = _reason(error)
        raise StorageError(f"{path} cannot be written ({why}): free some space, or choose another [run] dir") from error


def frozen(folder: Path) -> RunConfig:
    """The config that a run directory holds.

    Raises:
        UsageError: it holds none.
    """
    path = folder / "run.toml"
    try:
        head, _, text = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = _reason(error)
        raise UsageError(f"{folder} is no run directory ({why}: run.toml): give [run] dir of a RUN.toml") from None
    if not head.startswith(FROZEN):
        raise UsageError(f"{path} was changed by hand: its first line must name the folder that paths start from")
    # Whoever began the run agreed to its base_url.
    return parse(text, Path(json.loads(head.removeprefix(FROZEN))) / "RUN.toml", insecure_http=True)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def _line(entry: Any) -> str:
    where = ".".join(str(part) if isinstance(part, str) else f"[{part}]" for part in entry["loc"]).replace(".[", "[")
    if entry["type"] == "extra_forbidden":
        return f"{where}: there is no such key{_hint(entry['loc'])}"
    if entry["type"] == "missing":
        return f"{where}: missing: add it"
    message = str(entry["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _hint(loc: tuple[Any, ...]) -> str:
    model: Any = RunConfig
    for part in loc[:-1]:
        if isinstance(part, str) and isinstance(model, type) and issubclass(model, BaseModel):
            field = model.model_fields.get(part)
            annotation: Any = field.annotation if field else None
            model = next((arg for arg in get_args(annotation) if isinstance(arg, type)), annotation)
    fields: dict[str, Any] = getattr(model, "model_fields", {})  # pyright: ignore[reportUnknownArgumentType]
    known = [name for name in fields if name != "base"]
    close = difflib.get_close_matches(str(loc[-1]), known, 1)
    return f": did you mean {close[0]}?" if close else f"; known here: {', '.join(known)}"
