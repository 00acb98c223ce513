"""What the API says was used: its JSON and its CSV are read, a wrong file is told by its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eyas.errors import UsageError
from eyas.ledger import nano_dollars
from eyas.survey.activity import OfDay, read

MODEL = "moonshotai/kimi-k2.5"
ROW: dict[str, Any] = {
    "date": "2026-01-16 00:00:00",
    "model": MODEL,
    "model_permaslug": f"{MODEL}-0127",
    "endpoint_id": "550e8400-e29b-41d4-a716-446655440000",
    "provider_name": "Chutes",
    "usage": 0.015,
    "byok_usage_inference": 0,
    "requests": 5,
    "prompt_tokens": 50,
    "completion_tokens": 125,
    "reasoning_tokens": 25,
}
"""As https://openrouter.ai/docs/api/api-reference/analytics/get-user-activity shows it."""


def write(folder: Path, text: str) -> Path:
    """A file with that text."""
    path = folder / "activity"
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_of_the_model_are_summed_by_day(tmp_path: Path) -> None:
    """Endpoints and variants of the model count, other models do not; money is exact."""
    rows = [
        ROW,
        {**ROW, "date": "2026-01-16", "provider_name": "Novita", "usage": 0.1, "requests": 2},
        {**ROW, "date": "2026-01-17", "model": f"{MODEL}:nitro", "model_permaslug": "", "usage": "0.2"},
        {**ROW, "model": "moonshotai/kimi-k2.5-mini", "model_permaslug": "moonshotai/kimi-k2.5-mini-0127"},
        {**ROW, "model": "openai/gpt-4.1", "model_permaslug": "openai/gpt-4.1-2025-04-14"},
    ]
    found = read(write(tmp_path, json.dumps({"data": rows})), MODEL)
    assert found.days == {
        "2026-01-16": OfDay(7, nano_dollars("0.115")),
        "2026-01-17": OfDay(5, nano_dollars("0.2")),
    }
    assert "activity" in found.source


def test_the_export_of_the_page_is_read_too(tmp_path: Path) -> None:
    """A CSV with a row a request: each counts as one, by its day, its model named by its version."""
    text = (
        "\ufeffgeneration_id,created_at,cost_total,tokens_prompt,tokens_completion,model_permaslug,provider_name\n"
        f"gen-1,2026-02-06 18:54:30.040,0.0012,20,30,{MODEL}-20260127,Chutes\n"
        f"gen-2,2026-02-06 23:59:59.999,0.0008,20,30,{MODEL},Novita\n"
        "gen-3,2026-02-06 18:54:30.040,1,20,30,z-ai/glm-5,Z.AI\n"
        f"gen-4,2026-02-07T00:00:00.000Z,0.5,20,30,{MODEL},Novita\n"
    )
    found = read(write(tmp_path, text), MODEL)
    assert found.days == {"2026-02-06": OfDay(2, nano_dollars("0.002")), "2026-02-07": OfDay(1, nano_dollars("0.5"))}


def test_a_file_without_the_model_says_so(tmp_path: Path) -> None:
    """No day is better than a wrong one; the words tell why."""
    found = read(write(tmp_path, json.dumps([{**ROW, "model": "x/y", "model_permaslug": "x/y"}])), MODEL)
    assert found.days == {}
    assert f"none of {MODEL}" in found.source


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no JSON"),
        ('{"error": {"code": 403}}', 'no "data"'),
        ("[3]", "row 1"),
        (json.dumps([ROW, {**ROW, "date": "yesterday"}]), "row 2"),
        (json.dumps([{**ROW, "usage": None}]), "row 1"),
        (json.dumps([{**ROW, "requests": "many"}]), "row 1"),
        ("name,price\nx,1\n", "line 1"),
        (f"created_at,cost_total,model_permaslug\n2026-01-01,1,{MODEL}\n2026-01-02,much,{MODEL}\n", "line 3"),
        ("", "line 1"),
    ],
)
def test_a_wrong_file_is_told_by_its_line(tmp_path: Path, text: str, says: str) -> None:
    """What is no activity of the API is refused in a sentence that says where and what to give."""
    with pytest.raises(UsageError) as error:
        read(write(tmp_path, text), MODEL)
    assert says in str(error.value)
    assert "give the" in str(error.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    """The message names the option and the file."""
    with pytest.raises(UsageError, match=r"--activity .*nothing\.json"):
        read(tmp_path / "nothing.json", MODEL)
