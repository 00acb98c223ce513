"""HTML that cannot be broken out of: text is escaped unless it was made here, and what cannot be seen is shown as a sign."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

_VOID = frozenset({"br", "col", "input", "meta"})
_TEXT_ONLY = re.compile(r"[a-z][a-z0-9-]*")

UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0d"
    "\ufeff\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff"
)
"""The characters that show nothing, turn the direction of a line or hide text: a character class. Newline and tab are none.

The joiners U+200C and U+200D are left as they are, since Persian, Indic scripts and emoji need them; so are the variation
selectors U+FE0E and U+FE0F. static/text.js has the same class; a test compares the two over all code points.
"""
_UNSEEN = re.compile(f"[{UNSEEN}]")


class Html(str):
    """A piece of markup that was made by `tag` or `text`: it is not escaped again."""

    __slots__ = ()


Child = str | None


def sign(character: str) -> str:
    """One unseen character as a sign that is seen: ␛ for the controls that have a picture, otherwise ⟨U+202E⟩."""
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def plain(value: str) -> str:
    """Text with its unseen characters as signs, for an attribute; not escaped."""
    return _UNSEEN.sub(lambda found: sign(found[0]), value)


def text(value: str) -> Html:
    """Text of anybody's as markup: escaped, its unseen characters as muted signs."""
    if isinstance(value, Html):
        return value
    pieces: list[str] = []
    place = 0
    for found in _UNSEEN.finditer(value):
        pieces += (html.escape(value[place : found.start()]), f'<i class="sign">{sign(found[0])}</i>')
        place = found.end()
    return Html("".join(pieces) + html.escape(value[place:]))


def tag(name: str, *children: Child, attributes: Mapping[str, str | None] | None = None, of: str = "") -> Html:
    """An element.

    Args:
        name: of the element.
        *children: texts, escaped unless they are Html; None is left out.
        attributes: by name; one whose value is None is left out. No handler and no style passes.
        of: its class.

    Raises:
        ValueError: if an attribute could run a script or load something.
    """
    given: dict[str, str | None] = {"class": of or None, **(attributes or {})}
    for key in given:
        if key.startswith("on") or key in ("style", "src", "srcdoc") or not _TEXT_ONLY.fullmatch(key.lower()):
            raise ValueError(f"the page has no attribute {key!r}: it could run or load something")
    head = "".join(f' {key}="{html.escape(plain(each))}"' for key, each in given.items() if each is not None)
    if name in _VOID:
        return Html(f"<{name}{head}>")
    return Html(f"<{name}{head}>{''.join(text(each) for each in children if each is not None)}</{name}>")


def join(*children: Child) -> Html:
    """Pieces one after another."""
    return Html("".join(text(each) for each in children if each is not None))
