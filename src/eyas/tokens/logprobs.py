"""The ids of an answer from a list of logprobs, which names the bytes of every sampled token (pure).

A list counts only if it is complete: some servers fold a character of several tokens into one entry, some list the
content alone. So every entry must be one vocabulary entry, and together they must be the texts of the answer.
"""

from __future__ import annotations

from eyas.families import Part
from eyas.tokens.reading import Answer
from eyas.vocab import Vocab


def read_logprobs(parts: tuple[Part, ...], tokens: tuple[bytes, ...], vocab: Vocab) -> Answer | None:
    """The answer as its list of logprobs gives it, or None if the list is not complete.

    A special id may be listed by its spelling, as an empty entry, or not at all; texts must be there to the last byte.

    Args:
        parts: what the model sampled, as the family reads the answer.
        tokens: bytes of each listed token, in order.
        vocab: the tokenizer.
    """
    ids: list[list[int]] = []
    at = 0
    for part in parts:
        if part.token is not None:
            spelled = at < len(tokens) and tokens[at] in (b"", part.text.encode())
            at += spelled
            ids.append([part.token])
            continue
        found, at = _text(part.text.encode(errors="surrogatepass"), tokens, at, vocab)
        if found is None:
            return None
        ids.append(found)
    return Answer(parts, ids) if at == len(tokens) else None


def _text(text: bytes, tokens: tuple[bytes, ...], at: int, vocab: Vocab) -> tuple[list[int] | None, int]:
    """Ids of the tokens from `at` on that make up a text, and where the next token stands."""
    ids: list[int] = []
    done = 0
    while done < len(text):
        token = tokens[at] if at < len(tokens) else b""
        number = vocab.id_of(token)
        if not token or number is None or not text.startswith(token, done):
            return None, at
        ids.append(number)
        done += len(token)
        at += 1
    return ids, at
