"""One work for people: a head of aligned lines, its messages, its answer, its tokens and its attempts. Pure.

Text of models and of prompts is inert: it cannot move the cursor or colour the screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, cast

from eyas.cli.style import Style
from eyas.cli.wrap import cells, wrapped
from eyas.report.columns import plain
from eyas.report.fit import fit

PLAIN = Style(on=False)
_NAMES = {"content": "answer"}
_MOST = 400


def text(figures: dict[str, Any], width: int = 0, style: Style = PLAIN) -> str:
    """The figures of `eyas show --json` for people, in lines of at most `width` columns (0: as long as they are)."""
    lines = _head(figures, width, style)
    for message in figures["messages"]:
        called: list[dict[str, Any]] = [call.get("function") or {} for call in message.get("tool_calls") or ()]
        lines += _part(str(message["role"]), said(message.get("content")), width, style)
        lines += [_called("", each, width, style) for each in called]
    for name in ("reasoning", "content"):
        if figures.get(name):
            written = _part(_NAMES.get(name, name), figures[name], width, style)
            lines += [*written[:2], *(map(style.dim, written[2:]) if name == "reasoning" else written[2:])]
    lines += [_called(call["id"], call, width, style) for call in figures.get("tool_calls", ())]
    return "\n".join(
        [*lines, "", style.bold("attempts:"), *(_attempt(each, width, style) for each in figures["attempts"])]
    )


def _head(figures: dict[str, Any], width: int, style: Style) -> list[str]:
    told = figures["detail"] or ("" if "label" in figures else _last(figures["attempts"]))
    why = f": {inert(told)}" if told else ""
    first = f"{style.bold(figures['id'])}  {style.standing(figures['state'])}{why}"
    rows = dict(_rows(figures, style))
    wide = max(map(len, rows), default=0)
    indent = " " * (wide + 4)
    # The names are aligned by the text alone: codes of colour have no width.
    body = (
        f"  {name.ljust(wide)}  {fit(row, max(0, width - wide - 4), indent) if width else row}"
        for name, row in rows.items()
    )
    return [first, *(line.replace(f"\n{indent * 2}", f"\n{indent}") for line in body)]


def _last(attempts: Sequence[dict[str, Any]]) -> str:
    """What became of the last attempt that ended badly: it is why there is no answer."""
    last = next((each for each in reversed(attempts) if each["kind"]), None)
    return "" if last is None else f"{last['kind']}, {last['detail']}" if last["detail"] else last["kind"]


def _rows(figures: dict[str, Any], style: Style) -> Iterator[tuple[str, str]]:
    """What stands in the head below the id, as far as it is known."""
    if "label" in figures:
        why = f": {figures['label_reason']}" if figures["label_reason"] else ""
        yield "label", style.standing(figures["label"]) + why
    answered = next((each for each in reversed(figures["attempts"]) if each["verdict"] in ("done", "partial")), None)
    if answered:
        who = plain(answered["provider"] or "(nobody named)", 60)
        yield "provider", who if who == answered["endpoint"] else f"{who} ({plain(answered['endpoint'], 60)})"
    paid = _paid(figures["attempts"], answered)
    if paid:
        yield "cost", paid
    if "label" in figures:
        yield "tokens", _tokens(figures)
        yield "times", _times(figures)
        yield "finish", str(figures["finish"])
    if figures.get("source"):
        yield "source", f"{plain(str(figures['source']['file']), _MOST)}, line {figures['source']['line']}"


def _paid(attempts: Sequence[dict[str, Any]], answered: dict[str, Any] | None) -> str:
    if not any(each["usd"] or each["reserved_usd"] for each in attempts):
        return ""  # a server of the user's own
    times = "1 attempt" if len(attempts) == 1 else f"{len(attempts)} attempts"
    whole = f"${sum(each['usd'] or 0.0 for each in attempts):.6f} in {times}"
    unknown = sum(each["usd"] is None for each in attempts)
    held = f", {unknown} of them unknown" if unknown else ""
    if answered is None or answered["usd"] is None:
        return whole + held
    own = f"${answered['usd']:.6f}"
    return own if len(attempts) == 1 else f"{own}; {whole}{held}"


def _tokens(figures: dict[str, Any]) -> str:
    usage = figures.get("usage")
    counts = f"{sum(figures['loss_mask']):,} supervised of {len(figures['input_ids']):,} ids"
    if not usage:
        return f"{counts}; the API counted none"
    thought = f", {usage['reasoning_tokens']:,} of them reasoning" if usage["reasoning_tokens"] else ""
    return f"{usage['prompt_tokens']:,} prompt, {usage['completion_tokens']:,} completion{thought}; {counts}"


def _times(figures: dict[str, Any]) -> str:
    first = figures["first_token_seconds"]
    begun = "" if first is None else f"{first:.2f} s to the first token, "
    return f"{begun}{figures['seconds']:.1f} s in all"


def _part(name: str, content: str, width: int, style: Style) -> list[str]:
    return ["", style.bold(style.named(f"[{inert(name)}]")), *wrapped(inert(content), width).split("\n")]


def said(content: object) -> str:
    """The text of a message's content: a string as it is, parts joined."""
    if isinstance(content, list | tuple):
        parts = cast("Sequence[Any]", content)
        return "".join(str(part.get("text", "")) for part in parts if hasattr(part, "get"))
    return str(content or "")


def _called(number: str, call: dict[str, Any], width: int, style: Style) -> str:
    name = style.bold(style.named(f"[tool call{' ' + inert(number) if number else ''}]"))
    told = f"{inert(str(call.get('name')))} {inert(str(call.get('arguments')))}"
    return "\n" * bool(number) + (f"{name} {told}" if not width else f"{name}\n{wrapped(told, width)}")


def _attempt(each: dict[str, Any], width: int, style: Style) -> str:
    cost = ", unknown cost" if each["usd"] is None else f", ${each['usd']:.6f}"
    if not (each["usd"] or each["reserved_usd"]):
        cost = ""  # a server of the user's own
    cost += " (written off)" if each["written_off"] else ""
    what = " ".join(part for part in (each["verdict"], each["kind"] or "", inert(each["detail"])) if part)
    line = f"  {each['number']}. {each['endpoint']} {each['generation_id'] or '(no id)'}: {what}{cost}"
    colour = style.standing(each["verdict"])
    return fit(line, width, "   ").replace(f": {each['verdict']}", f": {colour}", 1)


def token_text(tokens: Sequence[str], mask: Sequence[int], width: int = 0, style: Style = PLAIN) -> str:
    """Tokens side by side with their boundaries, and what is not supervised (mask 0) set apart.

    In colour boundaries are seen by the ground, and mask 0 is faint, every other token underlined; without it they are `|`,
    and what is not supervised stands in ⟨⟩. A line break within a token is shown as ⏎ where it stands.
    """
    pieces = list(_coloured(tokens, mask, style) if style.on else _bare(tokens, mask))
    lines, room = [""], width
    for shown, bare in pieces:
        taken = cells(bare)
        if width and taken > room and room < width:
            lines.append("")
            room = width
        lines[-1] += shown
        room -= taken
        if "⏎" in bare:
            lines.append("")
            room = width
    return "\n".join(lines).rstrip("\n")


def _coloured(tokens: Sequence[str], mask: Sequence[int], style: Style) -> Iterator[tuple[str, str]]:
    for number, (token, learned) in enumerate(zip(tokens, mask, strict=True)):
        bare = _inline(token)
        if learned:
            yield style.block(bare, number), bare
        else:
            yield (style.faint_line(bare) if number % 2 else style.dim(bare)), bare


def _bare(tokens: Sequence[str], mask: Sequence[int]) -> Iterator[tuple[str, str]]:
    for learned, run in groupby(zip(tokens, mask, strict=True), key=lambda pair: pair[1]):
        pieces = [_inline(token) for token, _ in run]
        for place, piece in enumerate(pieces):
            opening = "|" if learned or place else "⟨"
            closing = "⟩" if not learned and place == len(pieces) - 1 else ""
            shown = f"{opening}{piece}{closing}"
            yield shown, shown


def _inline(token: str) -> str:
    return inert(token).replace("\n", "⏎").replace("\t", "→")


def inert(value: str) -> str:
    """Text without control characters; line breaks and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in value)
