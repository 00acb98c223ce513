"""`tokenizer.json`: the same Vocab as from a tiktoken file, ids as `tokenizers` gives them, and what is refused."""

from __future__ import annotations

import json
import sys
import unicodedata
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.errors import UsageError
from eyas.families.kimi import LAYOUT
from eyas.vocab import Vocab
from eyas.vocab.proven import PATTERNS
from tests.bpe import QWEN_ENTRIES, QWEN_SIZE, deepseek_folder, small_json, write_qwen

tiktoken = pytest.importorskip("tiktoken")
tokenizers = pytest.importorskip("tokenizers", reason="NO TOKENIZERS: pip install 'eyas[tokenizers]'")

MIXED = (
    "It's they'll SAY'S we'RE\tdef f(x):\n    return x**2\r\n\r\n  # naïve\n\n\n",
    "你好\uff0c世界\uff01これはテスト。안녕하세요 สวัสดี हिन्दी العربية",
    "🙂\U0001f469\u200d\U0001f469\u200d\U0001f467🇩🇪 \ufeff\u00a0\u2003x\u0085 e\u0301 \x00\x1b ½Ⅷ² 12345678",
    " " * 60_000,
    "a" * 30_000 + "\n" * 30_000 + "ab " * 60_000,
)
USER, BOS = "<\uff5cUser\uff5c>", "<\uff5cbegin\u2581of\u2581sentence\uff5c>"
SPECIALS = ("<think>", "</think>", "<|im_end|>", "<|im_start|>", USER, BOS, "<|endoftext|>")
TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(SPECIALS)).map("".join)
KINDS = "aAs'1\u4f60\u3040\u30fb\u3099 \n\r\u3000!/\u0301\u200b\x00\u01c5\u00aa"
CONTEXTS = ("a%s", "%sa", "A%s", "%sA", "1%s", "!%s", " %s", "%s\n", "%s%s", "'%sz", "'r%sz", "'%slz")


@pytest.fixture(scope="session")
def hub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Vocab]:
    """Vocabularies of real tokenizer.json files."""
    cache = request.config.cache
    folder = cache.mkdir("qwen-vocabulary") if cache else tmp_path_factory.mktemp("qwen-vocabulary")
    return {"qwen": Vocab.load(write_qwen(folder), None), "deepseek": Vocab.load(deepseek_folder(), None)}


def made(folder: Path, content: dict[str, Any] | str) -> Vocab:
    """The vocabulary of a file with this content."""
    (folder / "tokenizer.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return Vocab.load(folder, None)


def assert_split_alike(splits: tuple[str, ...], texts: list[str]) -> None:
    """`tokenizers` by these splits, and tiktoken by the pattern for them, give the same pieces of each text.

    tiktoken knows every stretch of every text as one entry, so that its ids are its pieces.
    """
    stretches = (text[i:j] for text in texts for i in range(len(text)) for j in range(i + 1, len(text) + 1))
    entries = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *(each.encode() for each in stretches)])
    ranks = {data: number for number, data in enumerate(entries)}
    encoding = tiktoken.Encoding("test", pat_str=PATTERNS[splits], mergeable_ranks=ranks, special_tokens={})
    steps = tokenizers.pre_tokenizers
    split = steps.Sequence([steps.Split(tokenizers.Regex(regex), "isolated") for regex in splits])
    data = list(entries)
    for text in texts:
        expected = [piece.encode() for piece, _ in split.pre_tokenize_str(text)]
        assert [data[number] for number in encoding.encode_ordinary(text)] == expected, ascii(text)


def test_known_ids(hub: dict[str, Vocab]) -> None:
    """Ids that the makers publish; a spelled special is text unless specials are read, and no BOS is added."""
    qwen, deepseek = hub["qwen"], hub["deepseek"]
    assert (qwen.ranks, qwen.size, deepseek.size) == (QWEN_ENTRIES, QWEN_SIZE, 129_280)
    assert (qwen.specials["<think>"], qwen.specials["<|im_end|>"]) == (151_667, 151_645)
    assert qwen.encode("<think>hi") == [13708, 766, 29, 6023]
    assert qwen.encode_special("<think>hi<|im_end|>") == [151_667, 6023, 151_645]
    assert deepseek.encode_special(f"{USER}hi</think>")[0::2] == [128_803, 128_822]
    assert not set(deepseek.specials.values()) & set(deepseek.encode(f"{BOS}{USER}</think>"))


@pytest.mark.parametrize("name", ["qwen", "deepseek"])
@pytest.mark.parametrize("text", MIXED)
def test_both_routes_give_the_same_ids(hub: dict[str, Vocab], name: str, text: str) -> None:
    """tiktoken, which encodes both, and `tokenizers` agree on mixed and on long text."""
    coder: Any = hub[name]._coder
    assert coder.fast
    assert coder._fast.encode_ordinary(text) == coder._plain.encode(text).ids == hub[name].encode(text)


@pytest.mark.parametrize("splits", PATTERNS, ids=["qwen", "qwen3.5", "llama3", "o200k", "deepseek"])
def test_every_short_text_is_split_alike(splits: tuple[str, ...]) -> None:
    """All texts of three characters, one of each kind that a pattern tells apart, come apart alike in both engines."""
    assert_split_alike(splits, ["".join(chars) for length in (1, 2, 3) for chars in product(KINDS, repeat=length)])


@pytest.mark.parametrize("splits", PATTERNS, ids=["qwen", "qwen3.5", "llama3", "o200k", "deepseek"])
def test_every_kind_of_character_is_split_alike(splits: tuple[str, ...]) -> None:
    """Wherever Unicode's categories change, the first and the last character are of the same kind in both engines."""
    kinds = [(unicodedata.category(chr(code)), chr(code).isspace()) for code in range(0x110000)]
    edges = {code for last, code in pairwise(range(0x110000)) if kinds[last] != kinds[code]}
    codes = [code for code in edges | {code - 1 for code in edges} if not 0xD800 <= code < 0xE000]
    assert_split_alike(splits, [context.replace("%s", chr(code)) for code in codes for context in CONTEXTS])


@pytest.mark.parametrize("name", ["qwen", "deepseek"])
@settings(deadline=None)
@given(text=TEXTS)
def test_text_comes_back_from_ordinary_ids(hub: dict[str, Vocab], name: str, text: str) -> None:
    """Ids of any text give back its bytes and are never special, whatever the text spells."""
    vocab = hub[name]
    ids = vocab.encode(text)
    assert vocab.decode(ids) == text
    assert b"".join(map(vocab.token_bytes, ids)) == text.encode()
    assert not set(vocab.specials.values()) & set(ids)


@pytest.mark.parametrize("name", ["qwen", "deepseek"])
def test_entries_are_found_by_their_bytes(hub: dict[str, Vocab], name: str) -> None:
    """Every ordinary entry is found again by its bytes, and no special id is."""
    vocab, special = hub[name], set(hub[name].specials.values())
    found = [(i, vocab.id_of(vocab.token_bytes(i))) for i in sorted(set(vocab._bytes) - special)]
    assert len(found) == vocab.ranks
    assert all(number == again for number, again in found)
    assert not any(vocab.id_of(spelling.encode()) in special for spelling in vocab.specials)
    with pytest.raises(KeyError):
        vocab.token_bytes(vocab.size)


@settings(deadline=None)
@given(text=TEXTS)
def test_a_prompt_is_read_as_the_file_says(hub: dict[str, Vocab], text: str) -> None:
    """`encode_special` is what `tokenizers` makes of the whole file: specials, and NFC for Qwen."""
    for vocab in hub.values():
        coder: Any = vocab._coder
        assert vocab.encode_special(text) == coder._full.encode(text, add_special_tokens=False).ids
    assert hub["qwen"].decode(hub["qwen"].encode_special(text)) == unicodedata.normalize("NFC", text)


def test_lone_surrogates_are_replaced(hub: dict[str, Vocab], kimi_folder: Path) -> None:
    """Half a surrogate pair is U+FFFD by every route."""
    for vocab in (*hub.values(), Vocab.load(kimi_folder, LAYOUT)):
        assert vocab.decode(vocab.encode("a\ud800b")) == vocab.decode(vocab.encode_special("a\ud800b")) == "a\ufffdb"


@pytest.mark.parametrize(
    ("more", "merges", "ids"),
    [
        ([b"ab", b"bc"], [(b"a", b"b"), (b"b", b"c")], [256, 99]),
        ([b"ab", b"bc"], [(b"b", b"c"), (b"a", b"b")], [97, 257]),
        ([b"abc", b"bc"], [(b"b", b"c")], [97, 257]),
        ([b"bc", b"ab", b"abc"], [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")], [97, 256]),
    ],
    ids=["by rank", "another order", "an entry that no merge makes", "an entry that its own bytes miss"],
)
def test_merges_decide_not_ranks(
    tmp_path: Path, more: list[bytes], merges: list[tuple[bytes, bytes]], ids: list[int]
) -> None:
    """Where the merges do not follow the ranks, tiktoken would err and is not taken."""
    vocab = made(tmp_path, small_json(more, merges, ["<think>"]))
    assert vocab.encode("abc") == ids
    assert vocab._coder.fast is (ids == [256, 99])  # type: ignore[attr-defined]


def test_an_unknown_split_is_left_to_the_library(tmp_path: Path) -> None:
    """A pattern that was not compared is not given to tiktoken."""
    by_letters = {"type": "Split", "pattern": {"Regex": "[a-z]+"}, "behavior": "Isolated", "invert": False}
    bytewise = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    steps = {"type": "Sequence", "pretokenizers": [by_letters, bytewise]}
    vocab = made(tmp_path, small_json([b"ab", b"1a"], [(b"a", b"b"), (b"1", b"a")], pre_tokenizer=steps))
    assert vocab.encode("1ab 1") == [49, 256, 32, 49]
    assert not vocab._coder.fast  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("version https://git-lfs.github.com/spec/v1", "Git LFS"),
        ("{}", "cannot be read"),
        ("[]", "cannot be read"),
        (small_json(model_type="Unigram"), r"no byte-level BPE \(Unigram\)"),
        (small_json(model_byte_fallback=True), "SentencePiece"),
        (small_json(pre_tokenizer=None), "no byte-level BPE"),
        (small_json(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True}), "add_prefix_space"),
        (small_json(normalizer={"type": "Lowercase"}), "Lowercase"),
        (small_json(model_dropout=0.1), "dropout"),
        (small_json(model_vocab={"a": 0}), "no entry for 242 single bytes"),
        (small_json(model_vocab={"\u2581a": 0}), "stands for no byte"),
        (small_json(model_merges=[["a", "b"]]), "cannot be read by tokenizers"),
        (small_json(added=["   "]), "nothing but spaces"),
        (small_json([b"ab"], [(b"a", b"b")], ["ab"], first=256), "added token 'ab'"),
        (small_json(added=["<think>"], first=300), "the id 300, and tokenizers 256"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: dict[str, Any] | str, says: str) -> None:
    """What is no byte-level BPE that keeps text whole is refused in one sentence."""
    with pytest.raises(UsageError, match=says):
        made(tmp_path, content)


def test_a_layout_prefers_the_tiktoken_file(tmp_path: Path, kimi_folder: Path) -> None:
    """With both files a layout decides; without a layout a tiktoken file alone cannot be read."""
    (tmp_path / "tiktoken.model").write_bytes((kimi_folder / "tiktoken.model").read_bytes())
    with pytest.raises(UsageError, match="only a family knows"):
        Vocab.load(tmp_path, None)
    assert made(tmp_path, small_json()).ranks == 256
    assert Vocab.load(tmp_path, LAYOUT).ranks == LAYOUT.ranks


def test_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library the message says what to install."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UsageError, match=r"pip install 'eyas\[tokenizers\]'"):
        made(tmp_path, small_json())
