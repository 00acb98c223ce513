"""RUN.toml: what loads, and what each wrong key says."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyas.config import Dataset, RunConfig, freeze, frozen, load, parse
from eyas.errors import StorageError, UsageError

FULL = """
[run]
dir = "runs/kimi-b"
seed = 7
[target]
model = "moonshotai/kimi-k2.5"
backend = "openrouter"
base_url = "https://openrouter.ai/api/v1/"
family = "kimi-k2.5"
tokenizer = "moonshotai/Kimi-K2.5"
chat_template = "chat.jinja"
thinking = true
temperature = 1.0
top_p = 0.95
max_tokens = 16384
stream = true
recover = false
extra_body = { seed = 3 }
extra_headers = { X-Title = "eyas" }
[budget]
usd = 100.0
output_tokens = 7_000_000
mode = "strict"
keep_from = 32
waste = 0.2
on_length = "redo"
[providers]
precision = "native"
ignore = ["fireworks", "baseten"]
sort = "price"
routing = "pinned"
data_collection = "deny"
max_price = { completion = 3.0 }
[limits]
in_flight = 2000
[[datasets]]
name = "B3"
source = "prompts/b3.jsonl"
[[datasets]]
name = "B4"
source = "prompts/b4.jsonl"
output_tokens = 9
max_tokens = 128
thinking = false
temperature = 0.6
system = "Be brief."
samples = 2
turns = "first"
"""
LEAST = """
[run]
dir = "r"
[target]
model = "m"
[budget]
usd = 1
[[datasets]]
name = "A"
source = "s"
"""


def read(text: str) -> RunConfig:
    """The config of that text."""
    return parse(text, Path("some/RUN.toml"))


def complaint(text: str) -> str:
    """What is said of a wrong text."""
    with pytest.raises(UsageError) as caught:
        read(text)
    return str(caught.value)


def test_a_full_run_toml_loads(tmp_path: Path) -> None:
    """Every key of the design that this version has, with what a dataset sets of its own."""
    path = tmp_path / "RUN.toml"
    path.write_text(FULL)
    config = load(path)
    assert config.dir == tmp_path / "runs/kimi-b"
    assert config.target.base_url == "https://openrouter.ai/api/v1"
    assert config.target.chat_template == "chat.jinja"
    assert (config.thinking("B3"), config.thinking("B4")) == (True, False)
    assert (config.max_tokens("B3"), config.max_tokens("B4")) == (16384, 128)
    assert (config.quota("B3"), config.quota("B4")) == (7_000_000, 9)
    assert config.providers.ignore == ("fireworks", "baseten")
    assert config.dataset("B4") == Dataset(
        name="B4", source="prompts/b4.jsonl", output_tokens=9, max_tokens=128, thinking=False, temperature=0.6,
        system="Be brief.", samples=2, turns="first",
    )  # fmt: skip
    with pytest.raises(UsageError, match="B3, B4"):
        config.dataset("b3")


def test_what_is_left_out_has_the_designs_defaults() -> None:
    """The least RUN.toml is a safe run."""
    config = read(LEAST)
    assert (config.target.backend, config.target.max_tokens, config.target.thinking) == ("openrouter", 16384, True)
    assert (config.budget.waste, config.budget.keep_from, config.budget.on_length) == (0.10, 64, "keep")
    assert (config.limits.in_flight, config.providers.precision, config.providers.routing) == (2000, "native", "pinned")
    assert config.quota("A") is None
    assert (
        read(
            LEAST.replace("[budget]\nusd = 1", "").replace(
                '"m"', '"m"\nbackend = "sglang"\nbase_url = "http://127.0.0.1:30000"'
            )
        ).budget.usd
        is None
    )


def test_a_total_of_tokens_is_shared_by_weight_after_what_datasets_name_themselves() -> None:
    """1000 tokens: 400 named by one set, the rest 2 : 1."""
    sets = "".join(
        f'[[datasets]]\nname = "{name}"\nsource = "s"\n{more}\n'
        for name, more in (("B", "output_tokens = 400"), ("C", "weight = 0.5"))
    )
    config = read(LEAST.replace("usd = 1", "usd = 1\ntotal_output_tokens = 1000") + sets)
    assert [config.quota(name) for name in "ABC"] == [400, 400, 200]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("usd = 1", "usd = 1\noutput_token = 5", ("budget.output_token", "did you mean output_tokens?")),
        ("[budget]", "[budgt]", ("budgt", "did you mean budget?")),
        ('name = "A"', 'name = "A"\nsampels = 2', ("datasets[0].sampels", "did you mean samples?")),
        ('model = "m"', 'model = "m"\nzzz = 1', ("target.zzz", "known here", "max_tokens")),
        ("[run]\ndir", "[runs]\ndir", ("run: missing",)),
        ('dir = "r"', "", ("run.dir: missing: add it",)),
        ('dir = "r"', 'dir = ""', ("run.dir",)),
        ('[[datasets]]\nname = "A"\nsource = "s"', "", ("datasets: missing",)),
        ('source = "s"', "", ("datasets[0].source: missing",)),
        ("usd = 1", "usd = 1\noutput_tokens = 5\ntotal_output_tokens = 9", ("budget", "not both")),
        ('source = "s"', 'source = "s"\nfilter = "keep"', ("datasets[0].filter", "keep.py:keep")),
        ('source = "s"', 'source = "s"\nmap = {roles = "x"}', ("datasets[0].map",)),
        ('source = "s"', 'source = "s"\nsystem = [{weight = 2}]', ("datasets[0].system", "text or file")),
        ("usd = 1", 'usd = "much"', ("budget.usd", "number")),
        ("usd = 1", "usd = 0", ("budget.usd", "greater than 0")),
        ("usd = 1", "usd = -3", ("budget.usd", "greater than 0")),
        ("usd = 1", "usd = nan", ("budget.usd",)),
        ("usd = 1", "usd = inf", ("budget.usd",)),
        ("usd = 1", "", ("budget.usd: missing", "usd = 100.0")),
        ("usd = 1", 'usd = 1\nmode = "free"', ("budget.mode", "strict")),
        ("usd = 1", 'usd = 1\non_length = "maybe"', ("budget.on_length", "redo")),
        ("usd = 1", "usd = 1\n[limits]\nin_flight = 6000", ("limits.in_flight", "5000")),
        ("usd = 1", "usd = 1\n[limits]\nin_flight = 0", ("limits.in_flight", "1")),
        ("usd = 1", 'usd = 1\n[providers]\nprecision = "any-thing"', ("providers.precision", "native")),
        ('name = "A"', 'name = "../x"', ("datasets[0].name", "letters, digits")),
        ('name = "A"', 'name = "a..b"', ("datasets[0].name", "letters, digits")),
        ('name = "A"', 'name = ""', ("datasets[0].name", "letters, digits")),
        ('name = "A"', 'name = "é"', ("datasets[0].name", "letters, digits")),
        ('name = "A"', 'name = "A"\nsource = "x"\n[[datasets]]\nname = "a"', ("'a' stands twice", "rename one")),
        ('model = "m"', 'model = "m"\nbase_url = "http://example.org/v1"', ("base_url", "use https://")),
        ('model = "m"', 'model = "m"\nbase_url = "openrouter.ai"', ("target.base_url", "full address")),
        ('model = "m"', 'model = "m"\nbase_url = "ftp://x/y"', ("target.base_url", "full address")),
        ('model = "m"', 'model = "m"\nmax_tokens = 0', ("target.max_tokens",)),
        ('model = "m"', "model = 5", ("target.model", "string")),
        ('model = "m"', 'model = "m"\ntemperature = 3', ("target.temperature", "2")),
        ('model = "m"', 'model = "m"\nextra_body = { max_tokens = 99 }', ("target.extra_body", "max_tokens")),
        ('model = "m"', 'model = "m"\nextra_body = { provider = {} }', ("target.extra_body", "provider")),
        ("[run]", "[run", ("not valid TOML",)),
    ],
)
def test_each_wrong_key_is_named_with_its_remedy(old: str, new: str, says: tuple[str, ...]) -> None:
    """The message names the file, the key, and what would be right."""
    assert LEAST.count(old) == 1
    message = complaint(LEAST.replace(old, new))
    assert "RUN.toml" in message
    for part in says:
        assert part in message


def test_all_wrong_keys_are_named_at_once() -> None:
    """Three mistakes are one message of three lines."""
    text = LEAST.replace("usd = 1", 'usd = "x"\nwast = 1').replace('dir = "r"', "")
    message = complaint(text)
    assert all(part in message for part in ("budget.usd", "budget.wast", "did you mean waste?", "run.dir"))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/v1", "http://localhost/v1", "http://[::1]:9/v1", "HTTPS://x.org"]
)
def test_plain_http_is_for_this_machine_only(url: str) -> None:
    """Loopback may be plain; https may be anywhere."""
    assert read(LEAST.replace('model = "m"', f'model = "m"\nbase_url = "{url}"')).target.base_url == url


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    """Missing, a folder, not UTF-8."""
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            load(path)
    (tmp_path / "latin.toml").write_bytes(b'dir = "\xe9"')
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "latin.toml")


def test_a_frozen_config_is_the_same_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths go on starting from the folder of the RUN.toml, wherever the run directory is read from."""
    home = tmp_path / 'odd "home" é'
    home.mkdir()
    (home / "RUN.toml").write_text(FULL)
    monkeypatch.chdir(home)
    config = load(Path("RUN.toml"))
    config.dir.mkdir(parents=True)
    freeze(config, FULL)
    monkeypatch.chdir(tmp_path)
    again = frozen(home / "runs/kimi-b")
    assert again.base == home
    assert again.dir == home / "runs/kimi-b"
    assert again.model_copy(update={"base": config.base}) == config
    freeze(again, FULL)
    assert frozen(again.dir) == again
    assert sorted(path.name for path in again.dir.iterdir()) == ["run.toml"]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    """No run.toml, one that was written by hand, a directory that is missing: each says what to do."""
    with pytest.raises(UsageError, match="no run directory"):
        frozen(tmp_path)
    (tmp_path / "run.toml").write_text(LEAST)
    with pytest.raises(UsageError, match="changed by hand"):
        frozen(tmp_path)
    with pytest.raises(StorageError, match="free some space"):
        freeze(parse(LEAST, tmp_path / "RUN.toml"), LEAST)
