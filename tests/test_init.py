"""`eyas init`: the file it writes loads, every comment in it is true, and nothing of the user's is lost."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.cli.declared.begin import init as command
from eyas.config import Budget, Dataset, Limits, Providers, Run, Target, load, parse
from eyas.errors import StorageError, UsageError
from eyas.exporters.card import text as card
from eyas.families import FAMILIES
from eyas.report.first_look import look
from eyas.report.starter import Keeping, Wish, dataset_name, run_toml, toml

PLAIN = Wish("moonshotai/kimi-k2.5", 5.0, "b3", "b3.jsonl")
MODELS = ("moonshotai/kimi-k2.5", "moonshotai/kimi-k2", "deepseek/deepseek-r1", "qwen/qwen3-8b", "acme/foo-7b:free")
SECTIONS = {
    "run": Run,
    "target": Target,
    "budget": Budget,
    "providers": Providers,
    "limits": Limits,
    "datasets": Dataset,
}
LEFT_OUT = {
    "target": {"chat_template", "served_as", "prompts_as", "key_env"},  # but the first for servers of one's own
    "budget": {"total_output_tokens"},  # the other way to say output_tokens; named in a note
    "providers": {"order", "allow_fallbacks", "require_parameters", "preferred_min_throughput",
                  "preferred_max_latency", "options"},  # OpenRouter's own, named together in the note of `sort`
}  # fmt: skip


def everything(text: str) -> str:
    """The file with every commented key set."""
    return re.sub(r"^#(?=[a-z_]+ = )", "", text, flags=re.MULTILINE)


def tables(text: str) -> dict[str, dict[str, Any]]:
    """The file's keys by section."""
    return {name: each[0] if isinstance(each, list) else each for name, each in tomllib.loads(text).items()}


@pytest.mark.parametrize("model", MODELS)
def test_it_loads_whole_and_with_every_key_set(model: str) -> None:
    """The file loads as it is, and with each commented key set, for a model of a family and for one of none."""
    text = run_toml(Wish(model, 5.0, "b3", "b3.jsonl"))
    assert parse(text, Path("RUN.toml")).target.model == model
    parse(everything(text), Path("RUN.toml"))
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("model", MODELS)
def test_what_a_comment_shows_is_the_default(model: str) -> None:
    """Setting a commented key changes nothing, unless its note says that what stands there is an example."""
    text = run_toml(Wish(model, 5.0, "b3", "b3.jsonl"))
    given, whole = tables(text), tables(everything(text))
    notes = dict(re.findall(r"^#?([a-z_]+) = .*?  # (.*)$", text, re.MULTILINE))
    for section, keys in whole.items():
        for key, value in keys.items():
            if key in given[section]:
                continue
            default = SECTIONS[section].model_fields[key].get_default(call_default_factory=True)
            shown = tuple(value) if isinstance(value, list) else value
            assert shown == default or (not default and _by_family(section, key, notes[key])), key


def _by_family(section: str, key: str, note: str) -> bool:
    """A key without a default of its own: an example, or one that the family gives."""
    return note.startswith("not set: ") or (
        section == "target" and key in ("family", "tokenizer", "temperature", "top_p")
    )


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_what_a_family_gives_is_shown(name: str) -> None:
    """Family, tokenizer, mode and sampling are the ones that a run without these keys takes."""
    family = FAMILIES[name]
    model = f"maker/{family.models[0].rpartition('/')[2].replace('*', '').rstrip('-')}"
    target = parse(everything(run_toml(Wish(model, 5.0, "b3", "b3.jsonl"))), Path("RUN.toml")).target
    known = FAMILIES.get(target.family or "")
    if known is None:
        return  # a glob whose plainest name is no model of it
    assert target.tokenizer == known.tokenizer
    known.body(target.thinking)
    preset = known.sampling(target.thinking)
    assert target.temperature == preset.get("temperature", 1.0)
    assert target.top_p == preset.get("top_p", 1.0)


def test_every_key_is_told_of() -> None:
    """A key of RUN.toml stands in the file, or in the list of those that are left out here with the reason."""
    whole = tables(everything(run_toml(PLAIN)))
    for name, section in SECTIONS.items():
        assert set(whole[name]) | LEFT_OUT.get(name, set()) == set(section.model_fields), name


def test_choices_are_all_named() -> None:
    """Where a key takes one of several words, its line names them all."""
    lines = {}
    for line in run_toml(PLAIN).splitlines():
        lines.setdefault(line.lstrip("#").partition(" = ")[0], line)
    for section in SECTIONS.values():
        for key, field in section.model_fields.items():
            among = get_args(field.annotation) if get_origin(field.annotation) in (Union, UnionType) else ()
            kinds = [each for each in (field.annotation, *among) if get_origin(each) is Literal]
            words = [word for kind in kinds for word in get_args(kind)]
            if key in lines and words:
                assert all(word in lines[key] for word in words), lines[key]


@given(st.text(min_size=1), st.text(min_size=1), st.floats(0.01, 1e6), st.booleans(), st.sampled_from(Keeping))
@settings(max_examples=100, deadline=None)
def test_any_words_come_back(model: str, source: str, usd: float, distillable: bool, keeping: Keeping) -> None:
    """Whatever the names hold, the file says exactly that."""
    wish = Wish(model, usd, dataset_name(source), source, distillable, keeping)
    config = parse(run_toml(wish), Path("RUN.toml"))
    assert (config.target.model, config.datasets[0].source, config.budget.usd) == (model, source, usd)
    assert config.providers.enforce_distillable_text is distillable
    assert config.providers.data_collection == keeping.value


@pytest.mark.parametrize(
    ("source", "name"),
    [("prompts/b3.jsonl.zst", "b3"), ("hub:org/some set@main:train", "some-set-main-train"), ("-", "prompts"),
     (".hidden.json", "hidden"), ("données été.csv", "donn-es-t")],
)  # fmt: skip
def test_a_dataset_is_named_after_its_file(source: str, name: str) -> None:
    """The name is the file's, of the characters that RUN.toml takes."""
    assert dataset_name(source) == name


def test_values_in_toml() -> None:
    """Numbers are grouped, tables and lists stand on their line, and every character survives."""
    assert toml({"a": [1, 20_000], "b": True}) == "{ a = [1, 20_000], b = true }"
    odd = 'é\x7f\U0001f600"\\\n'
    assert tomllib.loads("x = " + toml(odd))["x"] == odd
    with pytest.raises(UsageError, match="not Unicode"):
        toml("\udcff.jsonl")


def init(folder: Path, *arguments: str, words: str = "") -> Any:
    """The command in a folder; what it says goes to `output`."""
    return CliRunner().invoke(command, ["--out", str(folder / "RUN.toml"), *arguments], input=words)


def test_without_a_terminal_it_takes_the_safe_ways_and_says_so(tmp_path: Path) -> None:
    """Nobody is asked: only distillable models, no provider that keeps data; the next step is named."""
    ended = init(tmp_path)
    assert ended.exit_code == 0, ended.output
    config = load(tmp_path / "RUN.toml")
    assert (config.providers.enforce_distillable_text, config.providers.data_collection) == (True, "deny")
    assert "only models whose author allows distillation; only providers that keep no" in ended.output
    assert "eyas doctor" in ended.output


def test_flags_decide(tmp_path: Path) -> None:
    """What flags say stands in the file."""
    init(tmp_path, "--any-licence", "--data-collection", "allow", "--usd", "70", "--model", "qwen/qwen3-8b", "--yes")
    config = load(tmp_path / "RUN.toml")
    assert (config.providers.enforce_distillable_text, config.providers.data_collection) == (False, "allow")
    assert (config.budget.usd, config.target.model) == (70.0, "qwen/qwen3-8b")


def test_a_file_is_never_overwritten_unasked(tmp_path: Path) -> None:
    """A RUN.toml that is there stays as it is, until --force says otherwise."""
    (tmp_path / "RUN.toml").write_text("mine")
    refused = init(tmp_path)
    assert isinstance(refused.exception, UsageError)
    assert "--force" in str(refused.exception)
    assert (tmp_path / "RUN.toml").read_text() == "mine"
    assert init(tmp_path, "--force").exit_code == 0
    load(tmp_path / "RUN.toml")


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    """A folder that is not there or takes no file is told of, with what to do."""
    ended = init(tmp_path / "none")
    assert isinstance(ended.exception, StorageError)
    assert "--out" in str(ended.exception)


def test_a_source_is_looked_at(tmp_path: Path) -> None:
    """Its columns, its first prompt and its bad rows are shown; RUN.toml names it from its own folder."""
    rows = ['{"conversations": [{"from": "human", "value": "Hi there"}, {"from": "gpt", "value": "Hello"}]}'] * 3
    (tmp_path / "chats.jsonl").write_text("\n".join([*rows, "broken", '{"conversations": []}']))
    ended = init(tmp_path, str(tmp_path / "chats.jsonl"))
    assert ended.exit_code == 0, ended.output
    config = load(tmp_path / "RUN.toml")
    assert (config.datasets[0].name, config.datasets[0].source) == ("chats", "chats.jsonl")
    for part in ("all 5 rows", "'conversations'", "3 can be asked", "user: Hi there", "2 cannot be asked", "line 4"):
        assert part in ended.output


def test_a_source_that_cannot_be_read_writes_nothing(tmp_path: Path) -> None:
    """A missing prompt file is an error before anything is written."""
    assert isinstance(init(tmp_path, str(tmp_path / "none.jsonl")).exception, UsageError)
    assert not (tmp_path / "RUN.toml").exists()


def test_only_the_first_part_is_read(tmp_path: Path) -> None:
    """A break far behind the first rows is not reached."""
    with (tmp_path / "long.jsonl").open("wb") as file:
        file.write(b'{"prompt": "Why?"}\n' * 100_000 + b"\xff")
    assert "the first 200 rows" in look("long.jsonl", tmp_path)[0]


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ({"enforce_distillable_text": [True], "data_collection": ["deny"], "zdr": [None]},
         ["`enforce_distillable_text`: only models whose author", "`data_collection`: no provider that keeps"]),
        ({"enforce_distillable_text": [None, True], "data_collection": [None]},
         ["differs between the runs: not set", "`data_collection`: not set: as the account says"]),
    ],
)  # fmt: skip
def test_the_card_says_what_was_asked(policy: dict[str, Any], says: list[str]) -> None:
    """The two answers stand in the dataset card; what the runs do not agree on is said to differ."""
    text = card({"schema": 1, "model": "m", "policy": policy})
    assert all(each in text for each in says)
    assert "zdr" not in text
    assert "What was asked" not in card({"schema": 1, "model": "m"})
