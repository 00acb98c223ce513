"""`eyas.load`: what is to be run, from a RUN.toml or from a dict of the same shape."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from eyas import config as configs
from eyas.config import RunConfig
from eyas.config.written import written
from eyas.engine.inputs import Inputs, Offer
from eyas.engine.planning import holds, opened
from eyas.errors import UsageError

Source = RunConfig | Mapping[str, Any] | str | os.PathLike[str]
"""What names a run: a config, a dict of RUN.toml's shape, the path of a RUN.toml, or that of a plan.json."""


class Given(NamedTuple):
    """A config, its text as a RUN.toml, the file it came from (None: from no file), and what looks whether a plan holds."""

    config: RunConfig
    text: str
    path: Path | None = None
    check: Callable[[Inputs, Offer], None] | None = None


def load(source: Source, *, insecure_http: bool = False, **sections: Any) -> RunConfig:
    """Read and check what is to be run.

    Args:
        source: the path of a RUN.toml, a dict of its shape, or a config that is to be changed. Relative paths start from
            the folder of the file; those of a dict from the current folder.
        insecure_http: let `base_url` be http on another machine, where anybody on the way can read the key.
        sections: keys to set over those of the source, by section: `budget={"usd": 5.0}`. None takes a key away.
            `datasets`, a list of dicts, takes the place of all datasets.

    Raises:
        UsageError: the file cannot be read, or a key is wrong; the message names each wrong key and the remedy.
    """
    data, base, name = _tables(source)
    for section, keys in sections.items():
        data[section] = _over(data.get(section), keys)
    return configs.checked(data, base, name, insecure_http=insecure_http)


def given(source: Source) -> Given:
    """A config with all that a session needs of it.

    Raises:
        UsageError: as `load` does, or it is one shard of a run: those are named by `shard=`.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        run_toml, planned = opened(path)
        text = configs.read(run_toml)
        config = configs.parse(text, run_toml)
        check = None if planned is None else holds(path, planned, config)
        return Given(config, text, run_toml, check)
    config = source if isinstance(source, RunConfig) else load(source)
    if config.shard is not None:
        raise UsageError(
            f"the config is of shard {config.shard} only: give the whole one, and shard={str(config.shard)!r}"
        )
    return Given(config, written(config))


def _tables(source: Source) -> tuple[dict[str, Any], Path, str]:
    """The sections, the folder that relative paths start from, and the name for messages."""
    if isinstance(source, RunConfig):
        return source.model_dump(exclude_unset=True, exclude={"base", "shard"}), source.base, "the config"
    if isinstance(source, Mapping):
        return dict(source), Path(), "the config"
    path = Path(source)
    return configs.tables(configs.read(path), path), path.parent, str(path)


def _over(section: Any, keys: Any) -> Any:
    """A section with keys set over it; what is no table takes its place."""
    if not isinstance(keys, Mapping):
        return keys
    known = cast("Mapping[str, Any]", section) if isinstance(section, Mapping) else dict[str, Any]()
    both = {**known, **cast("Mapping[str, Any]", keys)}
    return {name: value for name, value in both.items() if value is not None}
