"""Who may look at /metrics, and what do they see?"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast import Gateway
from holdfast.identity import mint
from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import LOCAL, PEOPLE
from tests.servers.desk import DESKS, Desk
from tests.telemetry.world import total


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "store": f"sqlite:///{folder}/holdfast.db",
        "upstreams": {"desk": {"functions": "tests.servers.desk:desk"}},
        "auth": {"mode": "local", "people": PEOPLE},
        **more,
    }


@pytest.fixture(autouse=True)
async def desk() -> AsyncIterator[None]:
    DESKS.append(Desk())
    yield
    DESKS.pop()


@requirement("TEL-2", "NAM-3")
async def test_a_scraper_on_this_machine_reads_what_was_counted(tmp_path: Path) -> None:
    async with Gateway.open(settings(tmp_path)) as gateway:
        client = Client(build(gateway), {**LOCAL, "x-holdfast-user": "ann"})
        await client.post("/v1/calls", {"tool": "desk.add", "arguments": {"text": "x"}, "key": "k"})
        await client.send("POST", "/v1/calls", [b"{not json"])
        await client.post("/v1/calls", {"tool": "desk.add", "argument": {}})
        await client.send("POST", "/rpc", [b"{not json"])
        await client.post("/v1/halts", {"target": 7})  # not a proposal
        answer = await client.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = [s for family in text_string_to_metric_families(answer.body.decode()) for s in family.samples]
    assert total(found, "tool_invocation_count_total", tool="desk.add", status="done") == 1
    unread = {"gate": "parse", "tool": "unknown", "recorded": "false"}
    assert total(found, "tool_invocation_count_total", code="SYNTACTIC_PARSE_FAIL", **unread) == 2
    assert total(found, "tool_invocation_count_total", code="STRUCTURAL_VIOLATION", **unread) == 1
    assert total(found, "tool_invocation_count_total") == 4


@requirement("TEL-2", "AUT-1")
async def test_with_keys_it_takes_the_scope_or_the_role(tmp_path: Path) -> None:
    people = {
        "reader": {"scopes": ["holdfast:metrics"]},
        "olga": {"roles": ["operator"]},
        "nobody": {"scopes": ["notes:*"]},
    }
    minted = {user: mint(user) for user in people}
    auth = {"mode": "api_key", "people": people, "keys": [entry for _, entry in minted.values()]}
    async with Gateway.open(settings(tmp_path, auth=auth)) as gateway:
        app = build(gateway)
        statuses = {
            user: (await Client(app, {"authorization": f"Bearer {key}"}).get("/metrics")).status
            for user, (key, _) in minted.items()
        }
        assert (await Client(app, {}).get("/metrics")).status == 401
    assert statuses == {"reader": 200, "olga": 200, "nobody": 403}


@requirement("TEL-2")
async def test_metrics_that_are_switched_off_are_not_there(tmp_path: Path) -> None:
    async with Gateway.open(settings(tmp_path, telemetry={"metrics": "off"})) as gateway:
        client = Client(build(gateway), {**LOCAL, "x-holdfast-user": "ann"})
        answer = await client.get("/metrics")
    assert answer.status == 404
    assert "switched off" in answer.json()["error"]
