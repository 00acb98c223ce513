"""Prompts of the sources against those of the run, a million at once: by their ids, so that no finished one is read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import compress, repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eyas.config import RunConfig
from eyas.engine.inputs import Inputs
from eyas.plan import Change, change, owed
from eyas.prompts import LoadedSet
from eyas.prompts.select import Mixed
from eyas.standing import DatasetState
from eyas.state import State
from eyas.types import Prompt, Verdict, Work

Numbers = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
_ID = re.compile("[0-9a-f]{16}")
_DIGITS = 16
_NONE: Numbers = np.empty(0, np.uint64)


class _Pool(NamedTuple):
    """All prompts of the sources by set, and the ids of those that the run has, in the order of its tables."""

    sets: Mapping[str, LoadedSet]
    mixed: Mixed
    known: Mapping[str, Numbers]


def changed(state: State, inputs: Inputs) -> Change:
    """What the sources have more, or less, than the journal: `plan.change`, reading only what is new."""
    pool = _pool(state, inputs)
    if pool is None:
        return change(state, inputs.prompts)
    removed = [
        (name, prompt_id)
        for name, known in state.datasets.items()
        for prompt_id in _gone(known, pool.known[name], pool.sets.get(name))
    ]
    new = [
        _new(one, state.datasets.get(name, DatasetState()), pool.known.get(name, _NONE))
        for name, one in pool.sets.items()
    ]
    return Change(added=tuple(pool.mixed.chosen(new)), removed=tuple(sorted(removed)))


def still_owed(config: RunConfig, state: State, inputs: Inputs) -> Iterator[tuple[Work, Prompt]]:
    """The works that can be asked now, in the order of the run: `plan.owed`, passing over prompts whose works all ended."""
    if (pool := _pool(state, inputs)) is None:
        return owed(config, state, inputs.prompts)
    ended = _ended(config, state)
    masks = [_unfinished(config, one, ended.get(name, [])) for name, one in pool.sets.items()]
    return owed(config, state, pool.mixed.chosen(masks))


def prompts_of(inputs: Inputs, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Prompt]:
    """Those prompts of the sources, by (dataset, id), as far as they are there."""
    wanted = set(names)
    if not wanted:
        return {}
    if not inputs.sets:
        return {key: prompt for prompt in inputs.prompts if (key := (prompt.dataset, prompt.id)) in wanted}
    found: dict[tuple[str, str], Prompt] = {}
    for name, one in inputs.sets.items():
        numbers = np.unique(_certain([prompt_id for dataset, prompt_id in wanted if dataset == name]))
        spots = np.searchsorted(one.ids.numbers, numbers, sorter=one.ids.order)
        for place in one.ids.order[spots[spots < len(one.ids)]].tolist():
            if (key := (name, one.ids.at(place))) in wanted:
                found[key] = one.prompts[place]
    return found


def _pool(state: State, inputs: Inputs) -> _Pool | None:
    """The sources by set; None where a test or a bench made the prompts, or ids of the run are no numbers."""
    if not inputs.sets or not isinstance(inputs.prompts, Mixed):
        return None
    known: dict[str, Numbers] = {}
    for name, dataset in state.datasets.items():
        numbers = _numbers(dataset.prompts)
        if numbers is None:
            return None
        known[name] = numbers
    return _Pool(inputs.sets, inputs.prompts, known)


def _numbers(ids: Collection[str]) -> Numbers | None:
    """Ids of 16 hex digits as numbers; None if one is not."""
    if set(map(len, ids)) - {_DIGITS}:
        return None
    try:
        return np.frombuffer(bytes.fromhex("".join(ids)), ">u8").astype(np.uint64)
    except ValueError:
        return None


def _gone(known: DatasetState, mine: Numbers, one: LoadedSet | None) -> list[str]:
    if one is not None and np.array_equal(np.sort(mine), one.ids.numbers[one.ids.order]):
        return []
    there = np.zeros(len(mine), np.bool_) if one is None else np.isin(mine, one.ids.numbers)
    return list(compress(known.prompts, ~there))


def _new(one: LoadedSet, known: DatasetState, mine: Numbers) -> Mask:
    """Which prompts of a set the run does not know, or knows with other turns; none that was forgotten."""
    turns = np.zeros(len(mine), np.int64)
    if known.turns:
        turns = np.fromiter(map(known.turns.get, known.prompts, repeat(0)), np.int64, len(mine))
    order = np.argsort(mine)
    had = _looked_up(one, mine[order], turns[order], -1)
    new = had != np.array(one.turns, np.int64)
    return new & ~np.isin(one.ids.numbers, _certain(known.forgotten)) if known.forgotten else new


def _ended(config: RunConfig, state: State) -> dict[str, list[str]]:
    """The prompt of each work that ended and is one of those that are wanted, by dataset."""
    samples = {each.name: each.samples for each in config.datasets}
    found: dict[str, list[str]] = {name: [] for name in samples}
    turns = {name: state.datasets[name].turns for name in samples if name in state.datasets}
    for work, known in state.works.items():
        name = work.dataset
        verdict = known.verdict
        if verdict is None or verdict is Verdict.AGAIN or work.sample >= samples.get(name, 0):
            continue
        if not work.turn or work.turn <= turns[name].get(work.prompt_id, 0):
            found[name].append(work.prompt_id)
    return found


def _unfinished(config: RunConfig, one: LoadedSet, ended: list[str]) -> Mask:
    ids, counts = np.unique(_certain(ended), return_counts=True)
    wanted = config.dataset(one.name).samples * (1 + np.array(one.turns, np.int64))
    return _looked_up(one, ids, counts, 0) < wanted


def _looked_up(one: LoadedSet, ids: Numbers, values: npt.NDArray[np.int64], otherwise: int) -> npt.NDArray[np.int64]:
    """The value of each prompt of a set, where `ids`, which are sorted, have it."""
    found = np.full(len(one.ids), otherwise, np.int64)
    if len(ids):
        order = one.ids.order
        wanted = one.ids.numbers[order]  # in order too: a look-up reads on from the one before it
        spot = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        found[order] = np.where(ids[spot] == wanted, values[spot], otherwise)
    return found


def _certain(ids: Collection[str]) -> Numbers:
    """The same, without those that are none: no prompt of a source has such an id."""
    found = _numbers(ids)
    return found if found is not None else _certain([each for each in ids if _ID.fullmatch(each)])
