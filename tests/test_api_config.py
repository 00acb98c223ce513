"""`eyas.load`, and the RUN.toml that a config made in Python is kept as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eyas
from eyas.config import parse
from eyas.config.written import written
from eyas.errors import UsageError

TOML = """\
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
[budget]
usd = 5.0
output_tokens = 1000
[[datasets]]
name = "B3"
source = "b3.jsonl"
map = {prompt = "question"}
"""
BASE: dict[str, Any] = {
    "run": {"dir": "run"},
    "target": {"model": "moonshotai/kimi-k2.5"},
    "budget": {"usd": 5.0},
    "datasets": [{"name": "B3", "source": "b3.jsonl"}],
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
PLAIN = TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A RUN.toml."""
    (tmp_path / "RUN.toml").write_text(TOML, encoding="utf-8")
    return tmp_path / "RUN.toml"


def test_a_file_a_dict_and_a_config_are_one(path: Path) -> None:
    """Load takes each, and relative paths start from the file's folder, or from here."""
    config = eyas.load(path)
    assert config.dir == path.parent / "run"
    assert eyas.load(str(path)) == eyas.load(config) == config
    assert eyas.load(BASE).dir == Path("run")


def test_sections_are_set_over_the_source(path: Path) -> None:
    """Keys over keys, None takes one away, datasets take the place of all; neither file nor config is changed."""
    config = eyas.load(path)
    changed = eyas.load(path, budget={"usd": 1.0, "output_tokens": None}, limits={"in_flight": 7})
    assert (changed.budget.usd, changed.budget.output_tokens, changed.limits.in_flight) == (1.0, None, 7)
    assert changed.datasets == config.datasets
    other = eyas.load(config, datasets=[{"name": "C1", "source": "c.jsonl"}])
    assert [each.name for each in other.datasets] == ["C1"]
    assert other.base == path.parent
    assert eyas.load(path) == config


def test_wrong_keys_are_named(path: Path) -> None:
    """As in a RUN.toml, each with its remedy; what cannot be read is said too."""
    with pytest.raises(UsageError, match=r"RUN\.toml: these keys are wrong:\n  budget\.usb: .*did you mean usd"):
        eyas.load(path, budget={"usb": 1.0})
    with pytest.raises(UsageError, match=r"the config: these keys are wrong:\n  budgets: there is no such key"):
        eyas.load(BASE, budgets={})
    with pytest.raises(UsageError, match="eyas init"):
        eyas.load(path.parent / "absent.toml")
    path.write_text("[run", encoding="utf-8")
    with pytest.raises(UsageError, match="not valid TOML"):
        eyas.load(path)


def test_a_key_over_plain_http_is_refused_unless_agreed(path: Path) -> None:
    """The same rule as on the command line."""
    away = {"base_url": "http://example.org/api/v1"}
    with pytest.raises(UsageError, match="http:// would send the key unencrypted"):
        eyas.load(path, target=away)
    assert eyas.load(path, insecure_http=True, target=away).target.base_url == "http://example.org/api/v1"


@given(
    extra=st.dictionaries(NAMES.map("x-".__add__), JSON, max_size=3),
    headers=st.dictionaries(NAMES.map("X-".__add__), TEXTS, max_size=2),
    system=TEXTS,
    usd=st.floats(min_value=1e-9, max_value=1e9),
)
def test_what_is_kept_means_the_same(extra: dict[str, Any], headers: dict[str, str], system: str, usd: float) -> None:
    """Any config comes back from the text it is kept as, whatever its texts hold."""
    config = eyas.load(
        BASE,
        target={"extra_body": extra, "extra_headers": headers},
        budget={"usd": usd},
        datasets=[{"name": "B3", "source": "a", "system": system}, {"name": "B4", "source": "b", "map": {"role": "r"}}],
    )
    assert parse(written(config), Path("RUN.toml")) == config


def test_what_toml_cannot_say_is_refused() -> None:
    """A None that means something is named; one that means what leaving the key out means is left out."""
    kept = {**BASE, "fallback": None, "target": {"model": "moonshotai/kimi-k2.5", "family": None}}
    assert "family" not in written(eyas.load(kept))
    for section in ({"providers": {"sort": None}}, {"target": {**BASE["target"], "extra_body": {"seed": [None]}}}):
        with pytest.raises(
            UsageError, match=r"no word for None or infinity: .*(providers\.sort|extra_body\.seed\[0\])"
        ):
            written(eyas.load({**BASE, **section}))
