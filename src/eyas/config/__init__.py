"""RUN.toml -> RunConfig: validated once, frozen, every wrong key named with its remedy."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from eyas.config.dataset import Dataset, System
from eyas.config.sections import Budget, Cluster, Limits, Providers, Run, Section, Turns
from eyas.config.shard import Shard
from eyas.config.target import LOOPBACK, OPENROUTER, Fallback, Service, Target
from eyas.errors import StorageError, UsageError
from eyas.ledger import nano_dollars, usd

__all__ = [
    "LOOPBACK", "OPENROUTER", "Budget", "Cluster", "Dataset", "Fallback", "Limits", "Providers", "Run", "RunConfig", "Service",
    "Shard", "System", "Target", "Turns", "checked", "freeze", "frozen", "load", "parse", "read", "tables",
]  # fmt: skip
SHARD = "# shard "
NODE = "{node}"
FROZEN = "# frozen by eyas; relative paths start from "
API_REREAD, LOCAL_REREAD = 600.0, 10.0
_DURABLY = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_DSYNC", 0)


class RunConfig(Section):
    """A whole RUN.toml. `base` is the folder that relative paths start from; `shard` says which part of the run this is, None: all."""

    run: Run
    target: Target
    fallback: Fallback | None = None
    budget: Budget = Budget()
    providers: Providers = Providers()
    limits: Limits = Limits()
    cluster: Cluster = Cluster()
    datasets: Annotated[tuple[Dataset, ...], Field(min_length=1)]
    base: Path = Path()
    shard: Shard | None = None

    @model_validator(mode="after")
    def _whole(self) -> RunConfig:
        names = [dataset.name.casefold() for dataset in self.datasets]
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise ValueError(f"datasets: the name {double[0]!r} stands twice (case does not count): rename one")
        if self.budget.usd is None and any(each.bills for each in self._services):
            raise ValueError("budget.usd: missing: give the most that this run may spend, for example usd = 100.0")
        given = sum(each.output_tokens or 0 for each in self.datasets)
        if self.budget.total_output_tokens is not None and self.budget.total_output_tokens <= given:
            raise ValueError(
                f"budget.total_output_tokens: the datasets name {given} tokens of their own already: raise it or drop it"
            )
        return self

    @property
    def _services(self) -> tuple[Service, ...]:
        return (self.target, self.fallback) if self.fallback else (self.target,)

    @property
    def fallen_back(self) -> RunConfig:
        """The same run, asked where [fallback] says.

        Raises:
            UsageError: there is no such section.
        """
        if self.fallback is None:
            raise UsageError("RUN.toml has no [fallback]: add one that names who is asked for what the target leaves")
        there = {name: getattr(self.fallback, name) for name in Service.model_fields}
        return self.model_copy(update={"target": self.target.model_copy(update=there), "fallback": None})

    def at_node(self, node: str) -> RunConfig:
        """The same run as it is asked from one machine: {node} in base_url is that machine's address."""
        urls = tuple(url.replace(NODE, node) for url in self.target.urls)
        url = urls[0] if isinstance(self.target.base_url, str) else urls
        return self.model_copy(update={"target": self.target.model_copy(update={"base_url": url})})

    def part(self, shard: Shard) -> RunConfig:
        """The part of the run that is this shard's: its share of cap, quotas and `in_flight`, in a run directory of its own.

        Raises:
            UsageError: one of them is too small for so many shards.
        """
        cap = None if self.budget.usd is None else shard.cut(nano_dollars(self.budget.usd))
        quotas = {each.name: quota and shard.cut(quota) for each in self.datasets for quota in [self.quota(each.name)]}
        flying = shard.cut(self.limits.in_flight)
        if cap == 0 or flying == 0 or 0 in quotas.values():
            raise UsageError(
                f"--shard {shard}: the cap, in_flight or a quota leaves nothing for a shard: take fewer of them"
            )
        datasets = [each.model_copy(update={"output_tokens": quotas[each.name]}) for each in self.datasets]
        shares = {"usd": cap and usd(cap), "output_tokens": None, "total_output_tokens": None}
        folder = f"{self.run.dir}-shard-{shard.number}-of-{shard.of}"
        return self.model_copy(
            update={
                "run": self.run.model_copy(update={"dir": folder}),
                "budget": self.budget.model_copy(update=shares),
                "limits": self.limits.model_copy(update={"in_flight": flying}),
                "datasets": tuple(datasets),
                "shard": shard,
            }
        )

    @property
    def reread_seconds(self) -> float:
        """How often it is looked anew who may be asked: lists of an API change slowly, servers come and go."""
        return self.limits.reread_seconds or (API_REREAD if self.target.bills else LOCAL_REREAD)

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
        own = self.dataset(name).output_tokens
        if own or self.budget.total_output_tokens is None:
            return own or self.budget.output_tokens
        sharing = [each for each in self.datasets if each.output_tokens is None]
        left = self.budget.total_output_tokens - sum(each.output_tokens or 0 for each in self.datasets)
        return round(left * self.dataset(name).weight / sum(each.weight for each in sharing))

    @property
    def shares(self) -> dict[str, float]:
        """In what proportion the datasets' tokens are bought: by quotas, else by weights; empty where nobody says."""
        quotas = {each.name: float(self.quota(each.name) or 0) for each in self.datasets}
        weights = {each.name: each.weight for each in self.datasets}
        if all(quotas.values()):
            return quotas
        return weights if len(set(weights.values())) > 1 else {}


def load(path: Path, *, insecure_http: bool = False) -> RunConfig:
    """Read and check a RUN.toml; `insecure_http` lets its base_url be http on another machine.

    Raises:
        UsageError: it cannot be read, is no TOML, or a key is wrong; the message names the key and the remedy.
    """
    return parse(read(path), path, insecure_http=insecure_http)


def read(path: Path) -> str:
    """The text of a RUN.toml.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = _reason(error)
        raise UsageError(f"{path} cannot be read ({why}): check the path, or write one with `eyas init`") from error


def parse(text: str, path: Path, *, insecure_http: bool = False) -> RunConfig:
    """Check the text of a RUN.toml; `path` is for messages and for relative paths in it."""
    return checked(tables(text, path), path.parent, str(path), insecure_http=insecure_http)


def tables(text: str, path: Path) -> dict[str, Any]:
    """What the text of a RUN.toml says, unchecked.

    Raises:
        UsageError: it is no TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}; correct it there") from error


def checked(data: Mapping[str, Any], base: Path, name: str, *, insecure_http: bool = False) -> RunConfig:
    """Check what a RUN.toml says; `base` is the folder that relative paths in it start from, `name` is for messages."""
    try:
        return RunConfig.model_validate({**data, "base": base, "shard": None}, context={"insecure_http": insecure_http})
    except ValidationError as error:
        entries = error.errors(include_url=False)
        # A dataset that is wrong also counts as missing: only what is wrong with it is said.
        entries = [e for e in entries if e["type"] != "too_short" or len(entries) == 1]
        lines = "\n".join(f"  {_line(entry)}" for entry in entries)
        raise UsageError(f"{name}: these keys are wrong:\n{lines}") from None


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
            shard = f"{SHARD}{config.shard}\n" if config.shard else ""
            file.write(f"{FROZEN}{json.dumps(str(base))}\n{shard}{text}")
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
    config = parse(text, Path(json.loads(head.removeprefix(FROZEN))) / "RUN.toml", insecure_http=True)
    second = text.partition("\n")[0]
    return config.part(Shard.read(second.removeprefix(SHARD))) if second.startswith(SHARD) else config


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
    known = [name for name in fields if name not in ("base", "shard")]
    close = difflib.get_close_matches(str(loc[-1]), known, 1)
    return f": did you mean {close[0]}?" if close else f"; known here: {', '.join(known)}"
