"""The Kimi vocabulary: known ids, long texts, broken folders."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.errors import UsageError
from eyas.families import Loaded
from eyas.families.kimi import LAYOUT
from eyas.vocab import Vocab, cuts, resolve, write_kimi_vocabulary


def _cuts_of_kimi(text: str) -> list[str]:
    """The cuts as the official encoder makes them, character by character."""
    parts: list[str] = []
    for at in range(0, len(text), 400_000):
        window, start, length, space = text[at : at + 400_000], 0, 0, text[at].isspace()
        for i, char in enumerate(window):
            if char.isspace() != space:
                space, length = char.isspace(), 1
                continue
            length += 1
            if length > 25_000:
                parts.append(window[start:i])
                start, length = i, 1
        parts.append(window[start:])
    return parts


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("user", [2482]),
        ("assistant", [69702]),
        (" the", [276]),
        ("<think>", [27, 39964, 29]),
    ],
)
def test_known_ids(kimi: Loaded, text: str, ids: list[int]) -> None:
    """Known strings have known ids, and spelled specials are ordinary text."""
    assert kimi.vocab.encode(text) == ids


def test_specials_are_read_where_they_are_allowed(kimi: Loaded) -> None:
    """`encode_special` reads every spelling of a special id, reserved ones included."""
    assert kimi.vocab.encode_special("<think>a</think><|reserved_token_163600|>") == [163606, 64, 163607, 163600]
    assert kimi.vocab.decode([163606, 64, 163607]) == "<think>a</think>"
    assert kimi.vocab.token_bytes(163586) == b"<|im_end|>"
    assert kimi.vocab.size == 163_840


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_decode_undoes_encode(kimi: Loaded, text: str) -> None:
    """Any text comes back from its ids, encoded either way."""
    assert kimi.vocab.decode(kimi.vocab.encode(text)) == text
    assert kimi.vocab.decode(kimi.vocab.encode_special(text)) == text


@given(st.integers(0, 163_583))
def test_entries_are_found_by_their_bytes(kimi: Loaded, number: int) -> None:
    """Every ordinary entry is found again by its bytes."""
    assert kimi.vocab.id_of(kimi.vocab.token_bytes(number)) == number


def test_unknown_bytes_and_specials_are_no_entries(kimi: Loaded) -> None:
    """Bytes that are no entry, and spellings of specials, have no id."""
    assert kimi.vocab.id_of(b"no such entry") is None
    assert kimi.vocab.id_of(b"<think>") is None


@pytest.mark.parametrize(
    "text", ["a" * 60_000, " " * 60_000, "ab " * 300_000, "x" * 25_000 + " " * 25_001 + "y" * 50_001, "a" * 25_001, "b"]
)
def test_cuts_are_those_of_the_official_encoder(text: str) -> None:
    """Long texts are cut where the official encoder cuts them."""
    assert list(cuts(text)) == _cuts_of_kimi(text)


def test_long_runs_are_encoded_part_by_part(kimi: Loaded) -> None:
    """60,000 spaces give the ids of their parts, which are not those of the whole."""
    text = " " * 60_000
    assert kimi.vocab.encode_special(text) == [i for part in cuts(text) for i in kimi.vocab.encode(part)]
    assert kimi.vocab.decode(kimi.vocab.encode(text)) == text


def test_loading_is_quick(kimi_folder: Path) -> None:
    """The vocabulary loads in well under a few seconds of CPU."""
    start = time.process_time()
    Vocab.load(kimi_folder, LAYOUT)
    assert time.process_time() - start < 3


def test_a_good_vocabulary_is_left_as_it_is(kimi_folder: Path) -> None:
    """Writing the vocabulary again touches nothing; a damaged file is replaced."""
    before = (kimi_folder / "tiktoken.model").stat().st_mtime_ns
    write_kimi_vocabulary(kimi_folder)
    assert (kimi_folder / "tiktoken.model").stat().st_mtime_ns == before


def test_a_damaged_vocabulary_is_replaced(kimi_folder: Path, tmp_path: Path) -> None:
    """A cut file does not pass for the vocabulary."""
    (tmp_path / "tiktoken.model").write_bytes((kimi_folder / "tiktoken.model").read_bytes()[:1000])
    (tmp_path / "tokenizer_config.json").write_text("{}")
    write_kimi_vocabulary(tmp_path)
    assert Vocab.load(tmp_path, LAYOUT).ranks == 163_584
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "no tiktoken.model and no tokenizer.json"),
        ({"tokenizer.json": "{}"}, "tokenizer.json cannot be read"),
        ({"tiktoken.model": "version https://git-lfs.github.com/spec/v1\noid sha256:1\n"}, "Git LFS"),
        ({"tiktoken.model": "IQ== 0\nIg== 2\n"}, "without gaps"),
        ({"tiktoken.model": "IQ== 0\n", "tokenizer_config.json": "[]"}, "tokenizer_config.json"),
        ({"tiktoken.model": "IQ== 0\n", "tokenizer_config.json": "{"}, "tokenizer_config.json"),
    ],
)
def test_bad_folders_say_what_is_wrong(tmp_path: Path, files: dict[str, str], says: str) -> None:
    """A folder that is no tokenizer is refused with a remedy."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=says):
        Vocab.load(tmp_path, LAYOUT)


def test_resolve_takes_a_folder_and_refuses_what_is_none(tmp_path: Path) -> None:
    """A local folder is taken as it is; a path that is not there is no hub id."""
    assert resolve(str(tmp_path)) == tmp_path
    with pytest.raises(UsageError, match="neither a folder nor a hub id"):
        resolve(str(tmp_path / "absent"))


def test_resolve_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the hub's client a hub id says what to install."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UsageError, match=r"pip install 'eyas\[hub\]'"):
        resolve("moonshotai/Kimi-K2.5@main")


def test_resolve_asks_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A hub id and its revision reach the hub's client; its failure ends in a remedy."""
    asked: list[tuple[str, str | None]] = []

    def snapshot_download(repo: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append((repo, revision))
        if revision == "gone":
            raise OSError("404")
        return str(tmp_path)

    hub = ModuleType("huggingface_hub")
    hub.snapshot_download = snapshot_download  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    assert resolve("moonshotai/Kimi-K2.5") == resolve("moonshotai/Kimi-K2.5@4d01dfe") == tmp_path
    assert asked == [("moonshotai/Kimi-K2.5", None), ("moonshotai/Kimi-K2.5", "4d01dfe")]
    with pytest.raises(UsageError, match="give a local folder"):
        resolve("moonshotai/Kimi-K2.5@gone")
