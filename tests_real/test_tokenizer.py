"""The tokenizer that eyas loads against the one inside the server: ids, not counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eyas.families.template import TemplateFamily
from eyas.vocab import Vocab
from tests_real.serving import Server, served
from tests_real.texts import questions, texts

TEXTS = 500


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this file's own."""
    with served(tmp_path_factory.mktemp("server")) as started:
        yield started


def _ids(server: Server, text: str, *, special: bool) -> list[int]:
    body = {"content": text, "add_special": False, "parse_special": special}
    return server.ask("/tokenize", body)["tokens"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("special", [True, False])
def test_five_hundred_texts_have_the_ids_of_the_server(tokenizer: Path, server: Server, special: bool) -> None:
    """Scripts, emoji, code, digits, spaces: each text has the server's ids, spellings of specials read as both read them."""
    vocab = Vocab.load(tokenizer, None)
    encode = vocab.encode_special if special else vocab.encode
    wrong = {text: ids for text in texts(TEXTS) if encode(text) != (ids := _ids(server, text, special=special))}
    assert not wrong, (
        f"{len(wrong)} of {TEXTS}, such as {[(text, encode(text), ids) for text, ids in wrong.items()][:3]}"
    )


@pytest.mark.timeout(120)
def test_prompts_have_the_text_and_the_ids_of_the_server(tokenizer: Path, server: Server) -> None:
    """The chat template says what the server's does, the default system turn included."""
    family = TemplateFamily().load(tokenizer)
    for question in questions(30):
        messages = ({"role": "user", "content": question},)
        rendered = server.ask("/apply-template", {"messages": list(messages)})["prompt"]
        ids = family.prompt_ids(messages, (), False)
        assert family.vocab.decode(ids) == rendered
        assert ids == _ids(server, rendered, special=True)


@pytest.mark.timeout(120)
def test_bytes_that_the_vocabulary_lacks_are_refused_by_the_server(tokenizer: Path, server: Server) -> None:
    """A prompt with one of SmolLM2's eight missing bytes cannot be answered as if the byte were not there."""
    vocab = Vocab.load(tokenizer, None)
    size = server.ask("/v1/models")["data"][0]["meta"]["n_vocab"]
    ids = vocab.encode("a\x04b")
    assert vocab.decode(ids) == "a\x04b"
    assert max(ids) >= size
    assert _ids(server, "a\x04b", special=False) == [number for number in ids if number < size]
