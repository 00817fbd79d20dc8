"""Operators show over HTTP that undoings undo, or take a saga as it is; SAG-4."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from holdfast.chains.writing import written
from holdfast.gateway import Gateway
from holdfast.servers.app import build
from holdfast.servers.openapi import document
from tests.chains.ledger import REAL, TWINS, proving
from tests.chains.test_prove import CHARGE, RESERVE, saga
from tests.requirements import requirement
from tests.servers.asgi import Client

TEA = {"item": "tea"}


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Gateway]:
    (tmp_path / "chains").mkdir()
    (tmp_path / "chains" / "order.yaml").write_text(yaml.safe_dump(written(saga(RESERVE, CHARGE))))
    async with proving(tmp_path, chains=str(tmp_path / "chains")) as gateway:
        yield gateway


def client(here: Gateway, name: str) -> Client:
    return Client(build(here), {"host": "127.0.0.1:8080", "x-holdfast-user": name})


def fits(name: str, said: Any) -> Any:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    jsonschema_rs.validate(schema, said)
    return said


@requirement("SAG-4", "NAM-3")
async def test_an_operator_shows_what_can_be_shown_and_takes_the_rest_and_then_it_starts(
    here: Gateway,
) -> None:
    ada, ola = client(here, "ada"), client(here, "ola")
    wish = {"chain": "order", "input": TEA, "key": "k-1"}
    assert (await ada.post("/v1/runs", wish)).status == 409
    shown = await ola.post("/v1/chains/order/prove", {"input": TEA})
    assert shown.status == 200
    told = fits("ChainProof", shown.json())
    assert (told["chain"], told["ok"]) == ("order", False)
    assert {one["step"]: one["found"] for one in told["steps"]} == {"reserve": "shown", "charge": "refuted"}
    assert "leaves 250, and it was 0" in told["steps"][1]["text"]
    assert (REAL[0].calls, bool(TWINS[0].calls)) == ([], True)
    assert (await ola.post("/v1/chains/order/accept", {})).status == 400
    assert (await ola.post("/v1/chains/order/accept", {"note": " "})).status == 409
    taken = await ola.post("/v1/chains/order/accept", {"note": "checked by hand"})
    assert fits("ChainAccepted", taken.json()) == {
        "chain": "order",
        "accepted": [{"step": "charge", "tool": "shop.charge", "undone_by": "shop.refund"}],
    }
    assert (await ola.post("/v1/chains/order/accept", {"note": "again"})).json()["accepted"] == []
    assert (await ada.post("/v1/runs", wish)).status in (200, 202)


@requirement("SAG-4", "AUT-2")
async def test_nobody_else_shows_or_takes_anything(here: Gateway) -> None:
    ada = client(here, "ada")
    assert (await ada.post("/v1/chains/order/prove", {"input": TEA})).status == 403
    assert (await ada.post("/v1/chains/order/accept", {"note": "please"})).status == 403
    assert (await client(here, "ola").post("/v1/chains/other/prove", {"input": TEA})).status == 404
    assert (len(TWINS), REAL[0].calls) == (0, [])


@requirement("SAG-4")
async def test_without_a_twin_it_is_said_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "chains").mkdir()
    (tmp_path / "chains" / "order.yaml").write_text(yaml.safe_dump(written(saga(RESERVE))))
    upstreams = {"shop": {"functions": "tests.chains.ledger:real"}}
    async with proving(tmp_path, chains=str(tmp_path / "chains"), upstreams=upstreams) as gateway:
        refused = await client(gateway, "ola").post("/v1/chains/order/prove", {"input": TEA})
    assert (refused.status, "name one under 'upstreams.NAME.twin'" in refused.json()["error"]) == (409, True)
