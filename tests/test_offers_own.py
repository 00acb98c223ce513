"""`eyas providers` of servers of one's own: who answers now, with how much room, and why another does not."""

from __future__ import annotations

from typing import Any

import pytest

from eyas.cli import providers as cli
from eyas.config.target import API
from eyas.engine.inputs import Offer
from eyas.errors import UsageError
from eyas.providers.choose import Verdict
from eyas.providers.rules import Rule
from eyas.report.offer_table import table
from eyas.report.offers import figures
from eyas.state import State
from tests.localkit import HERE, THERE, answered, config, replica

SHORT = "http://127.0.0.1:8001 cannot be reached: is the server started?"


def shown(*, away: bool = False, state: State | None = None) -> dict[str, Any]:
    """The figures of two servers, the second one perhaps away."""
    found = (
        Verdict(replica(HERE), use=True, reason="answers", rule=Rule.STATUS),
        Verdict(replica(THERE, context=None), use=not away, reason=SHORT if away else "answers", rule=Rule.STATUS),
    )
    return figures(cli.market(config(), Offer(found, {}), state))


def test_json_keeps_its_keys() -> None:
    """The same as those of an API, prices 0; each server is a way of its own, without a `provider` object."""
    found = shown()
    assert {"schema", "model", "native", "native_source", "endpoints", "provider_block", "routes"} <= found.keys()
    assert (found["backend"], found["native"], found["provider_block"]) == ("vllm", None, {})
    assert found["routes"] == [{"tag": HERE, "provider": {}}, {"tag": THERE, "provider": {}}]
    first = found["endpoints"][0]
    assert (first["usd_per_m_prompt"], first["usd_per_m_completion"], first["usd_per_request"]) == (0.0, 0.0, 0.0)
    assert (first["tag"], first["context"], first["slots"], first["verdict"]) == (HERE, 32_768, None, "use")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_table(width: int) -> None:
    """It fits the terminal (of 60 at least), names the reason of whoever is away, and speaks of no dollars but once."""
    text = table(shown(away=True), width)
    assert max(map(len, text.splitlines())) <= max(60, width)
    flat = " ".join(text.split())
    for part in (
        f"{HERE} 32,768 ? use",
        f"{THERE} ? ? exclude",
        SHORT,
        "1 of 2 can be asked now",
        "`eyas doctor RUN.toml`",
    ):
        assert part in flat
    assert flat.count("dollar") == 1


def test_what_a_run_got_from_each() -> None:
    """With --run: answers and tokens of each server."""
    text = " ".join(table(shown(state=answered({HERE: 30, THERE: 25})), 80).split())
    assert f"{HERE} 32,768 ? 30 15,000 use" in text


def test_none_answers() -> None:
    """Then no run would start."""
    found = figures(cli.market(config(), Offer((Verdict(replica(), False, SHORT, Rule.STATUS),), {})))
    assert table(found, 80).endswith("A run would not start.")


def test_addresses_and_backend_come_from_the_command_line() -> None:
    """Several addresses are several servers; one without a word of what listens there is OpenRouter's API."""
    where = {"backend": "vllm", "base_url": ("http://a:1", "http://b:1")}
    assert cli._config("m", where, None, {}).target.urls == ("http://a:1", "http://b:1")
    assert cli._config("m", {"backend": "sglang", "base_url": "http://a:1"}, None, {}).target.backend == "sglang"
    assert cli._config("m", {}, config(), {}).target.urls == config().target.urls
    assert cli._config("m", {}, None, {}).target.backend == API
    for wrong in ({"backend": "vllm"}, {"backend": "vllm", "base_url": "nowhere"}):
        with pytest.raises(UsageError, match="--base-url"):
            cli._config("m", wrong, None, {})
