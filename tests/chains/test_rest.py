"""Chains and their runs over HTTP and MCP, as any other tool and any other thing that is looked at."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from holdfast.servers.openapi import document
from tests.chains.counter import ANNOUNCE, LOOK, ORDER, Counter, counter
from tests.polling import FELT_S, pause
from tests.requirements import requirement
from tests.servers.serving import serving

TEA = {"item": "tea"}
ORDERED = {"chain": "order", "input": TEA, "key": "k-1"}
WAITING = {"chain": "announce", "input": TEA, "key": "k-1"}


@pytest.fixture(params=["memory", "sqlite"])
async def here(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Counter]:
    async with counter(request.param, tmp_path, ORDER, LOOK, ANNOUNCE) as opened:
        yield opened


def fits(name: str, said: Any) -> Any:
    """What was said, if the published schema of that name says the same."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    jsonschema_rs.Draft202012Validator(schema).validate(said)
    return said


async def still(here: Counter, run_id: str, by: str = "ada") -> dict[str, Any]:
    """The run once nobody drives it."""
    async with asyncio.timeout(FELT_S):
        while True:
            run = fits("RunShown", (await here.client(by).get(f"/v1/runs/{run_id}")).json())
            if run["state"] in ("COMPLETED", "ABORTED", "COMPENSATED") or run["waits_for"]:
                return dict(run)
            await pause()


@requirement("CHN-6", "PRO-2")
async def test_a_chain_is_called_as_any_tool(here: Counter) -> None:
    body = {"tool": "chains.order", "arguments": TEA, "key": "k-1"}
    seen = await here.client("ada").post("/v1/calls", body)
    said = fits("Observation", seen.json())
    assert (seen.status, said["data"]) == (200, {"charge": "charge-tea"})
    assert said["steps"] == {"completed": ["reserve", "charge"], "failed": []}
    listed = (await here.client("ada").get("/v1/tools")).json()
    assert "chains.order" in {tool["name"] for tool in listed["tools"]}


@requirement("CHN-6", "NAM-3")
async def test_chains_are_listed_with_what_keeps_one_from_running_them(here: Counter) -> None:
    for name, known in (("ada", {"announce", "look", "order"}), ("bob", {"look"})):
        found = fits("ChainReports", (await here.client(name).get("/v1/chains")).json())["chains"]
        assert {one["chain"] for one in found} == known
        assert all(one["ok"] for one in found)
    everything = (await here.client("olga").get("/v1/chains")).json()["chains"]
    assert {one["chain"]: one["ok"] for one in everything} == {
        "announce": False,
        "look": False,
        "order": False,
    }
    shown = fits("Chain", (await here.client("ada").get("/v1/chains/order")).json())
    assert [step["tool"] for step in shown["declared"]["steps"]] == ["shop.reserve", "shop.charge"]
    assert (await here.client("bob").get("/v1/chains/order")).status == 404


@requirement("CHN-7", "NAM-3")
async def test_a_run_is_begun_once_for_a_key_and_looked_at(here: Counter) -> None:
    ada = here.client("ada")
    begun = await ada.post("/v1/runs", ORDERED)
    run = fits("RunShown", begun.json())
    assert begun.status == 202
    over = await still(here, run["id"])
    assert (over["state"], over["output"]) == ("COMPLETED", {"charge": "charge-tea"})
    assert [(step["name"], step["state"]) for step in over["steps"]] == [
        ("reserve", "done"),
        ("charge", "done"),
    ]
    again = await ada.post("/v1/runs", ORDERED)
    assert (again.status, again.json()["id"], here.world.did) == (200, run["id"], ["reserve", "charge"])
    other = await ada.post("/v1/runs", {**ORDERED, "input": {"item": "coffee"}})
    assert (other.status, here.world.did) == (409, ["reserve", "charge"])
    listed = fits("Runs", (await ada.get("/v1/runs")).json())["runs"]
    assert [one["id"] for one in listed] == [run["id"]]


@requirement("CHN-6", "AUT-2")
async def test_who_may_not_use_a_step_begins_nothing_and_sees_nothing(here: Counter) -> None:
    assert (await here.client("bob").post("/v1/runs", ORDERED)).status == 404
    begun = (await here.client("ada").post("/v1/runs", ORDERED)).json()
    assert (await here.client("bob").get(f"/v1/runs/{begun['id']}")).status == 404
    assert (await here.client("bob").get("/v1/runs")).json() == {"runs": []}


@requirement("CHN-6", "LIF-4")
async def test_a_halted_chain_is_begun_by_nobody(here: Counter) -> None:
    assert (await here.client("olga").post("/v1/halts", {"target": "chains.order"})).status == 200
    refused = await here.client("ada").post("/v1/runs", ORDERED)
    assert (refused.status, "is halted" in refused.json()["error"]) == (403, True)
    assert here.world.did == []


@requirement("SAG-3", "NAM-3")
async def test_an_operator_goes_on_with_a_run_or_ends_it(here: Counter) -> None:
    ada, olga = here.client("ada"), here.client("olga")
    run = await still(here, (await ada.post("/v1/runs", WAITING)).json()["id"])
    assert "approval" in run["waits_for"]
    path = f"/v1/runs/{run['id']}"
    assert (await ada.post(f"{path}/resume", {})).status == 403
    assert (await olga.post(f"{path}/resume", {})).status == 202
    await still(here, run["id"])
    assert (await olga.post(f"{path}/abandon", {})).status == 400
    ended = await olga.post(f"{path}/abandon", {"note": "nobody wants it"})
    assert (ended.status, fits("RunShown", ended.json())["state"]) == (200, "ABORTED")
    assert (await olga.post(f"{path}/abandon", {"note": "again"})).status == 409
    assert here.world.did == ["reserve"]


@requirement("CHN-6")
async def test_whoever_began_a_run_stops_it(here: Counter) -> None:
    ada = here.client("ada")
    run = await still(here, (await ada.post("/v1/runs", WAITING)).json()["id"])
    assert (await ada.post(f"/v1/runs/{run['id']}/cancel", {})).status == 202
    async with asyncio.timeout(FELT_S):
        while (await still(here, run["id"]))["state"] != "ABORTED":
            await pause()
    assert (await ada.post(f"/v1/runs/{run['id']}/cancel", {})).status == 409
    assert here.world.did == ["reserve"]


@requirement("APR-8", "CHN-6")
async def test_people_are_asked_once_about_a_whole_chain(here: Counter) -> None:
    ada, olga = here.client("ada"), here.client("olga")
    planned = await ada.post("/v1/chains/announce/plan", {"input": TEA})
    assert planned.status == 202
    approval = fits("Planned", planned.json())["approval"]["id"]
    assert (await olga.post(f"/v1/approvals/{approval}/decision", {"decision": "approve"})).status == 200
    run = await still(here, (await ada.post("/v1/runs", WAITING)).json()["id"])
    assert (run["state"], here.world.did) == ("COMPLETED", ["reserve", "send"])
    assert (await ada.post("/v1/chains/order/plan", {"input": TEA})).json()["status"] == "unneeded"
    assert (await here.client("bob").post("/v1/chains/order/plan", {"input": TEA})).status == 404


@requirement("CHN-6", "PRO-1")
async def test_an_mcp_client_calls_a_chain_and_is_told_what_it_waits_for(tmp_path: Path) -> None:
    async with counter("memory", tmp_path, ORDER, ANNOUNCE) as here:
        app = here.app
        async with app.state.mcp.running(), serving(app) as served:
            headers = {"x-holdfast-user": "ada", "x-holdfast-agent": "bot"}
            async with create_mcp_http_client(headers=headers) as http:
                transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
                async with McpClient(transport, cache=None) as client:
                    names = {tool.name for tool in (await client.list_tools()).tools}
                    assert "chains__order" in names
                    assert not [name for name in names if name.startswith("chains___")]
                    done = await client.call_tool("chains__order", TEA)
                    waits = await client.call_tool("chains__announce", TEA)
        assert (done.structured_content, done.is_error) == ({"charge": "charge-tea"}, False)
        assert waits.is_error is False
        assert "waits for approval" in str(waits.content[0].text)  # type: ignore[union-attr]
        assert here.world.did == ["reserve", "charge", "reserve"]
