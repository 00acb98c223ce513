"""`eyas providers`: verdicts on a made market of thirteen endpoints, the block as it is sent, the table and the JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from pydantic import SecretStr

from eyas.cli import providers as cli
from eyas.engine.inputs import Offer, list_endpoints
from eyas.engine.target import backend_of
from eyas.errors import UsageError
from eyas.families import Loaded
from eyas.plan import GATEWAY
from eyas.report.offer_table import table
from eyas.report.offers import Learned, figures, learned
from eyas.sim import Reply, load
from eyas.sim import World as Sim
from eyas.types import StopReason
from tests.stage import SMALL, Stage, simulated
from tests.virtual import FakeTransport, now, play, reply

DATA = (Path(__file__).parent / "data" / "endpoints_kimi_k25.json").read_bytes()
MODEL = "moonshotai/kimi-k2.5"
PROVIDERS = [{"name": "Moonshot AI", "slug": "moonshotai", "headquarters": "SG", "datacenters": ["CN", "SG"]}]
USED = ["chutes/int4", "siliconflow/int4", "atlas-cloud/int4", "moonshotai/int4"]
NO_WISH: dict[str, Any] = {"only": (), "ignore": (), "precision": None, "unknown": None}


def asked(target: str, zdr: Any = None) -> Reply:
    """What the API answers to a GET."""
    if target.endswith("/endpoints"):
        return reply(DATA)
    if target.endswith("/zdr") and zdr is not None:
        return reply(json.dumps({"data": zdr}).encode())
    return (
        reply(json.dumps({"data": PROVIDERS}).encode()) if target.endswith("/providers") else reply(b"no", status=404)
    )


def offered(zdr: Any = None, **wish: Any) -> dict[str, Any]:
    """The figures of the made market under these wishes."""
    config = cli._config(MODEL, {}, None, NO_WISH | wish)

    async def main() -> Offer:
        transport = FakeTransport(lambda method, target, headers, body: asked(target, zdr))
        return await list_endpoints(config, backend_of(config, SecretStr("")), transport, privacy=True)

    return figures(cli.market(config, play(main)))


def verdicts(found: Mapping[str, Any]) -> dict[str, str]:
    """Rule by tag, with a minus before it where the endpoint is excluded."""
    return {row["tag"]: ("" if row["verdict"] == "use" else "-") + row["rule"] for row in found["endpoints"]}


def test_the_made_market_is_judged_as_people_judged_it() -> None:
    """INT4 is used; Fireworks and BaseTen are out by knowledge, unlabelled ones as unknown, FP4 by its label, the sick by status."""
    found = offered()
    assert found["native"] == "int4"
    assert verdicts(found) == {
        "chutes/int4": "label", "siliconflow/int4": "label", "atlas-cloud/int4": "label", "moonshotai/int4": "label",
        "made/nvfp4": "-label", "deepinfra": "-label", "siliconflow/fp8": "-status", "baseten/fp4": "-knowledge",
        "fireworks": "-knowledge", "venice": "-unknown", "novita": "-unknown", "together": "-unknown",
        "amazon-bedrock/us-east-2": "-unknown",
    }  # fmt: skip
    assert found["endpoints"][0]["tag"] == "made/nvfp4", "the cheapest of all must not be used"
    reasons = {row["tag"]: row["reason"] for row in found["endpoints"]}
    assert "known to serve nvfp4" in reasons["fireworks"]
    assert "INT4 to NVFP4" in reasons["baseten/fp4"]
    assert "status -5" in reasons["baseten/fp4"]
    assert found["provider_block"]["only"] == USED
    assert found["provider_block"]["max_price"] == {"prompt": 0.6, "completion": 3.0}
    assert [route["tag"] for route in found["routes"]] == USED


def test_wishes_change_verdicts_and_block() -> None:
    """What the flags say is what [providers] would say."""
    assert verdicts(offered(unknown="accept"))["venice"] == "unknown"
    assert offered(ignore=("moonshotai",))["provider_block"]["ignore"] == ["moonshotai"]
    assert [r["tag"] for r in offered(only=("baseten",), precision="any")["routes"]] == ["baseten/fp4"]
    none = offered(only=("nobody",))
    assert none["routes"] == []
    assert "a run would not start" in table(none, 80)


def test_json_keeps_its_keys() -> None:
    """A promise to other programs: these keys stand, null where the API says nothing."""
    found = offered()
    assert {"schema", "model", "native", "endpoints", "provider_block"} <= found.keys()
    made = found["endpoints"][0]
    assert made == {
        "provider": "Made Provider", "slug": "made", "tag": "made/nvfp4", "quantization": "nvfp4", "status": 0,
        "context": 262144, "max_output": None, "usd_per_m_prompt": 0.3, "usd_per_m_completion": 1.5, "verdict": "exclude",
        "reason": "nvfp4 re-quantizes the native int4 weights", "rule": "label", "fidelity": "other", "uptime": None,
        "cancel_stops_billing": None, "prompts_kept": None, "prompts_trained_on": None, "country": None, "datacenters": [],
        "discount": 0.0, "usd_per_request": 0.0,
    }  # fmt: skip
    assert json.loads(json.dumps(found)) == found


def test_terms_come_from_the_lists_beside() -> None:
    """Where a provider sits, and who keeps no prompt; without that list nobody knows."""
    rows = {
        row["tag"]: row for row in offered(zdr=[{"name": f"Chutes | {MODEL}-0127", "tag": "chutes/int4"}])["endpoints"]
    }
    assert (rows["moonshotai/int4"]["country"], rows["moonshotai/int4"]["datacenters"]) == ("SG", ["CN", "SG"])
    assert (rows["chutes/int4"]["prompts_kept"], rows["chutes/int4"]["prompts_trained_on"]) == (False, False)
    assert (rows["novita"]["prompts_kept"], rows["novita"]["prompts_trained_on"]) == (True, None)
    assert rows["chutes/int4"]["cancel_stops_billing"] is True
    assert rows["amazon-bedrock/us-east-2"]["cancel_stops_billing"] is False


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_the_table_fits_every_terminal(width: int) -> None:
    """No line is wider than the terminal (of 60 at least); columns that do not fit go under their row; all is said somewhere."""
    found = offered(zdr=[{"name": f"Chutes | {MODEL}-0127", "tag": "chutes/int4"}])
    text = table(found, width)
    assert max(map(len, text.splitlines())) <= max(60, width)
    for row in found["endpoints"]:
        assert row["tag"] in text
    flat = " ".join(text.split())
    for word in (
        "native weights are int4",
        "To decide otherwise",
        'precision = "any"',
        "known to serve nvfp4",
        "SG, CN",
    ):
        assert word in flat
    assert ("cancel ends the bill: yes" in flat) == (width < 100)
    assert "The API does not say: trained on" not in flat


def test_what_nobody_says_is_named_once() -> None:
    """A column without any content is not shown; a line says what is not known."""
    found = offered()
    for row in found["endpoints"]:
        row.update(country=None, datacenters=[])
    assert "The API does not say: prompts kept, trained on, country." in table(found, 120)


def test_names_of_others_cannot_move_the_cursor() -> None:
    """Control characters in what the API sends are not printed."""
    found = offered()
    found["endpoints"][3].update(
        tag="x\x1b[2Jy", provider="\x07", quantization="\x1b[31m", reason="a\r\nb", country="\x9b"
    )
    found["routes"][0] = {"tag": "\x1b", "provider": {"only": ["\x1b\x9b"]}}
    assert all(character.isprintable() or character == "\n" for character in table(found, 80))


@pytest.mark.parametrize("routing", ["pinned", "gateway"])
def test_the_block_shown_is_the_block_sent(kimi: Loaded, routing: str) -> None:
    """Byte for byte, in every request of a run under the same wishes."""
    stage = Stage(kimi, prompts=15, more={"providers.routing": routing, "providers.ignore": ["parasail"]})
    assert play(simulated(stage, replace(load("clean"), **SMALL, slots=2), 1)) is StopReason.COMPLETE

    async def main() -> Offer:
        sim = Sim(load("clean"), 1, kimi.vocab, now, kimi.count_prompt)
        return await list_endpoints(
            stage.config(), backend_of(stage.config(), SecretStr("k")), FakeTransport(sim.handle)
        )

    shown = figures(cli.market(stage.config(), play(main)))
    blocks = [msgspec.json.encode(route["provider"]) for route in shown["routes"]]
    if routing == GATEWAY:
        assert blocks == [msgspec.json.encode(shown["provider_block"])]
    found = {block: sum(b'"provider":' + block in body for _, body in stage.transport.sent) for block in blocks}
    assert sum(found.values()) == len(stage.transport.sent)
    assert routing == GATEWAY or sum(map(bool, found.values())) > 2


@pytest.mark.parametrize("routing", ["pinned", "gateway"])
def test_what_a_run_learned_stands_beside_each_endpoint(kimi: Loaded, routing: str) -> None:
    """Tokens kept and all dollars of the run are spread over its endpoints, waste included; how streams are cut is in words."""
    stage = Stage(kimi, prompts=20, more={"providers.routing": routing})
    play(simulated(stage, replace(load("rough"), **SMALL), 2))
    stage.state.habits["Chutes"] = {"cut": "token"}

    async def main() -> Offer:
        return await list_endpoints(
            stage.config(), backend_of(stage.config(), SecretStr("k")), FakeTransport(stage.sim.handle)
        )

    offer = play(main)
    market = cli.market(stage.config(), offer, stage.state)
    seen = learned(stage.state, [verdict.endpoint for verdict in offer.verdicts])
    answered = [a for a in stage.state.attempts.values() if a.answered]
    assert sum(each.answers for each in seen.values()) == len(answered)
    assert sum(each.output_tokens for each in seen.values()) == sum(a.settled.tokens for a in answered)
    assert sum(each.usd for each in seen.values()) == pytest.approx(stage.state.money.settled / 1e9)
    row = next(row for row in figures(market)["endpoints"] if row["tag"] == "chutes/int4")
    assert row["run"]["streams"] == "a token a piece"
    assert row["run"]["usd_per_m_output"] > row["usd_per_m_completion"]
    text = " ".join(table(figures(market), 80).split())
    assert "this run kept there" in text
    assert "a token a piece" in text
    assert Learned(0, 0, 1.0, "").usd_per_m_output is None


def test_a_wrong_address_is_a_usage_error() -> None:
    """Options are checked as RUN.toml is."""
    with pytest.raises(UsageError, match="--base-url: give a full address"):
        cli._config(MODEL, {"base_url": "nowhere"}, None, NO_WISH)
    with pytest.raises(UsageError, match="unencrypted"):
        cli._config(MODEL, {"base_url": "http://example.com/api/v1"}, None, NO_WISH)
