"""`eyas show`: works listed by state or by an expression, one work for people, its tokens with boundaries and mask."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from eyas.cli import eyas
from eyas.cli.shown import text, token_text
from eyas.cli.style import Style
from eyas.cli.wrap import cells, wrapped
from eyas.errors import UsageError
from eyas.events import AnyEvent, Intent, PromptAdded, Settled
from eyas.journal import Payload
from eyas.types import FailureKind, Prices, Prompt, Record, Verdict, Work
from tests import exportkit

CODES = re.compile(r"\x1b\[[\d;]*m")
FAILED = Work("D", "f" * 16)


def failed() -> list[tuple[AnyEvent, Payload]]:
    """A work that failed, and one that is still owed; the text of one would clear the screen."""
    asked = Prompt(FAILED.prompt_id, "D", ({"role": "user", "content": "Ring \x1b[2J\x07 the bell\nnow"},))
    owed = Prompt("e" * 16, "D", ({"role": "user", "content": "Wait."},))
    again = Settled(9.0, 99, Verdict.FAILED, 0, kind=FailureKind.UPSTREAM, detail="502 \x1b[31mbad")
    return [
        (PromptAdded(8.0, "D", asked.id, 4), asked),
        (PromptAdded(8.0, "D", owed.id, 4), owed),
        (Intent(8.0, 99, FAILED, 1, "p", Prices(1, 1), 5000), b"{}"),
        (again, None),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, answer: Callable[..., Record], kimi_folder: Path) -> Path:
    """A run of twelve answers, one failure, one prompt that waits."""
    place = tmp_path_factory.mktemp("shown") / "run"
    return exportkit.write_run(place, kimi_folder, exportkit.good(answer, range(12)), more=failed())


def show(folder: Path, *arguments: str, wrong: bool = False) -> Result:
    """The command; it succeeds, or is refused with a sentence."""
    ended = CliRunner().invoke(eyas, ["show", str(folder), *arguments], prog_name="eyas")
    assert isinstance(ended.exception, UsageError) if wrong else ended.exit_code == 0, ended.output
    return ended


def test_without_an_id_some_of_each_state_are_listed(folder: Path) -> None:
    """How many stand so, the first few, their first words; stdout holds the list, stderr what to do next."""
    ended = show(folder)
    lines = ended.stdout.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == ["done: 12", "failed: 1", "pending: 1"]
    assert sum(line.startswith("  B3/") for line in lines) == 3
    assert re.search(rf"^  {FAILED.key} +upstream ", ended.stdout, flags=re.MULTILINE)
    assert "Ring  [2J  the bell now" in ended.stdout
    assert "eyas show" in ended.stderr
    assert show(folder, "--limit", "5").stdout.count("  B3/") == 5


def test_an_expression_chooses(folder: Path) -> None:
    """The same language as `eyas retry`: sorted, as many as --limit says, and how many match."""
    ended = show(folder, "--where", "dataset=B4, verdict=done", "--limit", "2")
    assert [line.split()[0] for line in ended.stdout.splitlines()[1:]] == [f"B4/{n:016x}/t0/s0" for n in (1, 3)]
    assert "6 works match, the first 2 are listed (--limit)" in ended.stderr
    none = show(folder, "--where", "verdict=refused")
    assert (none.stdout, "no work that ended matches" in none.stderr) == ("", True)
    assert show(folder, "--where", "verdict").stdout == "verdict has: done 12, failed 1\n"


def test_the_start_of_an_id_will_do(folder: Path) -> None:
    """Where it is the only one; else the works that begin so are named."""
    assert show(folder, "D/ff").stdout.startswith(f"{FAILED.key}  failed: upstream, 502 ")
    assert show(folder, "D/e").stdout.startswith(f"D/{'e' * 16}/t0/s0  pending")
    assert show(folder, f"B3/{0:016x}").stdout.startswith(f"B3/{0:016x}/t0/s0  done")
    assert "names 6 works in this run" in str(show(folder, "B4/0", wrong=True).exception)
    assert "names no work" in str(show(folder, "B9", wrong=True).exception)


def test_one_work_for_people(folder: Path) -> None:
    """State, label, provider, cost, tokens, times and finish in aligned lines; the roles, the answer, the attempts."""
    said = show(folder, f"B3/{0:016x}").stdout
    head = said.partition("\n\n")[0].splitlines()[1:]
    assert [line.split()[0] for line in head] == ["label", "provider", "cost", "tokens", "times", "finish"]
    assert [line[:12] for line in head] == [f"  {line.split()[0]:<10}" for line in head]
    assert "\n[user]\n" in said
    assert "\n[reasoning]\n The user wants an answer" in said
    assert "\n[answer]\n ok." in said
    assert said.splitlines()[-2] == "attempts:"


def test_text_of_others_is_inert(folder: Path) -> None:
    """No control character of a prompt or of an error reaches the terminal."""
    said = show(folder, "D/f").stdout
    assert "\x1b" not in said
    assert "502 \ufffd[31mbad" in said


def test_tokens_are_shown_with_their_boundaries(folder: Path) -> None:
    """What is not supervised stands in ⟨⟩, the sampled tokens behind bars; all of them are there."""
    said = show(folder, f"B3/{0:016x}", "--tokens").stdout
    figures = json.loads(show(folder, f"B3/{0:016x}", "--json").stdout)
    assert said.startswith("⟨<|im_")
    assert "⟩| The| user| wants| an| answer|</think>| ok|.|<|im_end|>" in said
    assert said.count("⟩") == sum(
        a < b for a, b in zip(figures["loss_mask"], [*figures["loss_mask"][1:], 1], strict=True)
    )
    assert "has no answer" in str(show(folder, "D/f", "--tokens", wrong=True).exception)


@pytest.mark.parametrize(
    "arguments", [("--tokens",), ("--json",), ("D/f", "--limit", "2"), ("D/f", "--where", "verdict=done")]
)
def test_what_does_not_go_together_is_refused(folder: Path, arguments: Sequence[str]) -> None:
    """Options that choose works beside an id, and those that show one without it."""
    show(folder, *arguments, wrong=True)


TOKENS = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6), st.integers(0, 1)), max_size=30
)


@given(pieces=TOKENS, width=st.sampled_from([0, 20, 80]), on=st.booleans())
def test_no_token_is_lost_or_broken(pieces: list[tuple[str, int]], width: int, on: bool) -> None:
    """Whatever the tokens, all stand there in order, and no line is longer than the terminal and one token."""
    tokens, mask = [token for token, _ in pieces], [learned for _, learned in pieces]
    drawn = CODES.sub("", token_text(tokens, mask, width, Style(on=on)))
    shown = ["".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in token) for token in tokens]
    wanted = "".join(shown).replace("\n", "⏎").replace("\t", "→")
    marks = "" if on else "|⟨⟩"
    assert (
        re.sub(f"[{marks}\n]", "", drawn) == re.sub(f"[{marks}]", "", wanted)
        if marks
        else drawn.replace("\n", "") == wanted
    )
    assert not width or all(len(line) <= max(width, 9) for line in drawn.splitlines())


@given(written=st.text(st.sampled_from("ab 这里先。e\u0301x-\n  "), max_size=60), width=st.integers(2, 30))
def test_text_is_wrapped_by_the_columns_it_takes(written: str, width: int) -> None:
    """No line is wider than the terminal, and nothing but gaps at line ends is lost."""
    drawn = wrapped(written, width)
    assert all(cells(line) <= width for line in drawn.splitlines())
    assert "".join(drawn.split()) == "".join(written.split())
    assert wrapped(written, 0) == written
    assert cells("这a\u0301") == 3


def test_lines_fit_the_terminal(folder: Path) -> None:
    """The head hangs under itself, the text is wrapped at spaces."""
    figures = json.loads(show(folder, f"B3/{0:016x}", "--json").stdout)
    figures |= {
        "label_reason": "a reason that is told in a good many words " * 4,
        "content": "word 这 " * 60 + "x" * 200,
    }
    for width in (40, 80):
        said = text(figures, width, Style(on=True))
        assert max(cells(CODES.sub("", line)) for line in said.splitlines()) <= width
