"""Every error is a sentence that says what happened and what to do next: read from the source, for all that is raised."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import eyas
from eyas import errors

SRC = Path(eyas.__file__).parent
TREE = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.EyasError)}
INSIDE = {"LedgerError", "CapReached", "NotSentError", "BrokenError"}
"""Said to the engine, not to a person: defects (to which the command line adds what to do) and what became of a request."""
VERBS = (
    "add|ask|check|choose|compare|copy|correct|define|download|empty|end|export|fill|free|give|get|have|install|keep|leave|look|"
    "lower|make|map|mend|name|plan|press|put|raise|rehearse|remove|report|restore|return|run|say|see|set|start|take|try|update|"
    "use|wait|write|--force"
)
REMEDY = re.compile(
    rf"`[a-z]+ |pip install|(?:^|[:;,.]\s+|\0\s*|\b(?:or|and|then|only) )(?:please )?(?:{VERBS})\b(?!\.toml)",
    re.IGNORECASE,
)
"""What to do: a command to be given, or a verb at the beginning of a part of the sentence."""
EXCUSED = {
    "there is no API key: \0": "what to do differs: the command line and the Python interface each say their own",
    "the run asks no endpoint named \0: it asks \0": "the choice is listed",
    "there is no dataset \0; RUN.toml has \0": "the choice is listed",
    "--dataset \0: there is no such dataset; RUN.toml has \0": "the choice is listed",
    "--where, column \0: no work that ended has \0 \0: \0this run has \0": "the choice is listed",
    "\0: \0 is never \0: \0": "`_choice` lists the choice",
    "\0: \0 is no condition: \0\0": "the form follows",
    "\0 was not dropped, so it cannot be taken back; the run set it aside itself: \0": "nothing can be done",
    "this run asks servers of your own only: there is no API to look anything up at, and nothing to reconcile": "the same",
    "it names no endpoint at all": "told behind `the endpoint list could not be read again`, which says what the run does",
    "\0 All of them are in \0": "the first sentence says what to do with the row that it names",
    "\0: no prompt is left of its \0 rows (\0): \0": "`_REMEDY` follows",
    "\0 is nothing that a running session can change: \0": "`FORM` follows, which says what can be given",
    "\0: \0 (\0 rows were read before that)": "the sentence is that of the file that was read",
    "\0 has no entry for \0 single bytes: \0.": "`_READ` follows",
    "\0 merges ordinary text into its added token \0: \0.": "`_READ` follows",
    "\0 was changed by hand: its first line must name the folder that paths start from": "`must name` is what to do",
    "--write-off \0: no worker \0 is away: \0 \0": "the choice is listed",
    "nothing changed: \0": "the sentence is that of `judge`, in wish.py",
    "\0: these keys are wrong:\n\0": "every wrong key stands with its remedy",
}
"""Messages that say what to do in another way, and how; `\\0` stands for what is filled in."""


class Said(NamedTuple):
    r"""A message as it is written: `\0` stands for each value that is filled in."""

    place: str
    kind: str
    text: str


def text_of(node: ast.expr) -> str:
    r"""The literal text of an expression, `\0` for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    return "\0"


def messages() -> Iterator[Said]:
    """All messages of the error tree that are written where they are raised."""
    for path in sorted(SRC.rglob("*.py")):
        place = path.relative_to(SRC).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
                continue
            kind = node.exc.func.id if isinstance(node.exc.func, ast.Name) else ""
            if kind in TREE:
                yield Said(f"{place}:{node.lineno}", kind, text_of(node.exc.args[0]) if node.exc.args else "")


ALL = list(messages())
FOR_PEOPLE = [said for said in ALL if said.kind not in INSIDE]


def words(text: str) -> list[str]:
    """Its words; what is filled in is one."""
    return re.findall(r"[A-Za-z'-]{2,}|\0", text)


def made_elsewhere(said: Said) -> bool:
    """Whether the sentence is a value: nothing is to be read of it here but a name before it."""
    return len(words(said.text.replace("\0", ""))) < 2


def bare(said: Said) -> bool:
    """Whether it has too few words, or none that says what to do."""
    return not made_elsewhere(said) and (len(words(said.text)) < 4 or not REMEDY.search(said.text))


def test_there_is_something_to_read() -> None:
    """The errors are found in all rooms; a raise that goes unseen would prove nothing."""
    assert len(ALL) > 200
    assert {said.place.partition("/")[0] for said in ALL} >= {
        "cli",
        "engine",
        "prompts",
        "vocab",
        "families",
        "journal",
    }


@pytest.mark.parametrize("said", FOR_PEOPLE, ids=lambda said: said.place)
def test_a_message_says_what_to_do(said: Said) -> None:
    """Four words or more, one of them a remedy, or an excuse that is written down."""
    assert not bare(said) or said.text in EXCUSED, said.text


def test_no_excuse_is_left_over() -> None:
    """Each message that is excused is there, and needs it; few come whole from elsewhere."""
    assert set(EXCUSED) <= {said.text for said in FOR_PEOPLE if bare(said)}
    assert sum(map(made_elsewhere, FOR_PEOPLE)) < len(FOR_PEOPLE) / 10


@pytest.mark.parametrize("said", FOR_PEOPLE, ids=lambda said: said.place)
def test_a_message_is_written_as_the_others(said: Said) -> None:
    """No capital at its beginning and no mark at its end but a dot, for `eyas: ` stands before it; no bare class name."""
    assert not said.text[:1].isupper() or said.text.startswith("RUN.toml")
    assert said.text == said.text.strip()
    assert said.text[-1:] not in ("!", ":", ",", ";")
    assert not re.search(r"Error\b", said.text.replace("\0", ""))


def test_a_defect_is_told_as_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An error of the books names eyas as its cause, and asks for a report."""

    def broken(*_: object, **__: object) -> None:
        raise errors.LedgerError("attempt 5 was settled twice")

    monkeypatch.setattr("eyas.cli.eyas.main", broken)
    from eyas.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["status", "runs/a"])
    assert ended.value.code == 2
    assert "attempt 5 was settled twice: this is a defect of eyas, please report it" in capsys.readouterr().err
