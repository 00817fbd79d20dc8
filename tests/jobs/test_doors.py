"""How jobs look from every door: chains, HTTP, MCP and the console."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.chains.reading import read
from holdfast.gateway import Gateway
from holdfast.model.observation import Status
from holdfast.model.run import RunState
from holdfast.servers.app import build
from holdfast.testing import ManualClock
from tests.console.visitor import Visitor, text
from tests.jobs.bakery import Bakery, counter
from tests.jobs.works import ADA, Works, opened, yard
from tests.polling import FELT_S, pause, until
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.mcp.raw import MODERN, Line
from tests.stored import ALL

BAKE = {"tool": "bakery.bake", "arguments": {"order": "rye"}, "key": "k-1", "deadline_ms": 1500}
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
CALL: dict[str, Any] = {
    "name": "bakery__bake",
    "arguments": {"order": "rye"},
    "_meta": {"holdfast/deadline_ms": 1500, "progressToken": 7},
}
CHAIN = read(
    {
        "chain": "show",
        "input": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
        "steps": [
            {"id": "make", "tool": "works.render", "with": {"title": "=input.title"}},
            {"id": "look", "tool": "works.look", "with": {"job": "job-1"}},
        ],
        "output": {"file": "=make.file"},
    }
)


@pytest.mark.parametrize("kind", ALL)
@requirement("EXE-6")
@requirement("CHN-7")
async def test_a_step_that_submits_makes_its_run_wait_and_go_on_when_the_job_ends(
    kind: str, tmp_path: Path
) -> None:
    async with yard(kind, tmp_path) as here:
        chains = here.gateway.chains
        run = await here.driven(chains.start(ADA, CHAIN, {"title": "tea"}, "c-1"))
        waits = await here.driven(chains.wait(ADA, run.id, 60.0))
        assert (waits.state, waits.waits_for.startswith("the job of call ")) == (RunState.RUNNING, True)
        here.works.finish()
        await here.clock.advance(20.0)
        await here.driven(here.gateway.tidy())
        done = await here.driven(chains.wait(ADA, run.id, 60.0))
        assert (done.state, done.output) == (RunState.COMPLETED, {"file": "film.mp4"})
        assert here.works.submitted == ["tea"]


@requirement("EXE-6")
@requirement("NAM-4")
async def test_over_http_it_is_partial_until_it_is_done_and_can_be_cancelled(tmp_path: Path) -> None:
    bakery = Bakery()
    async with counter(bakery, tmp_path) as (gateway, _):
        client = Client(build(gateway), {"host": "127.0.0.1", "x-holdfast-user": "ana"})
        seen = await client.post("/v1/calls", BAKE)
        body = seen.json()
        assert (seen.status, body["status"], body["outcome"]["rung"]) == (200, "partial", "accepted")
        assert (body["pending"]["kind"], body["pending"]["id"]) == ("job", "t-1")
        assert "code" not in body
        found = await client.get(f"/v1/calls/{body['call_id']}")
        assert found.json()["status"] == "partial"
        cancelled = await client.post(f"/v1/calls/{body['call_id']}/cancel", {})
        assert (cancelled.status, cancelled.json()["result"]) == (202, "requested")
        await until(lambda: bakery.taken_out == ["t-1"])


@requirement("EXE-6")
@requirement("PRO-1")
async def test_an_mcp_client_hears_how_far_it_is_and_follows_it_as_a_task(tmp_path: Path) -> None:
    bakery = Bakery()
    async with counter(bakery, tmp_path) as (gateway, url), aiohttp.ClientSession() as http:
        line = Line(http, f"{url}/mcp", MODERN, capabilities=TASKS)
        line.headers["x-holdfast-user"] = "ana"
        asking = asyncio.ensure_future(line.hear("tools/call", CALL))
        await bakery.ordered.wait()
        await _heard(gateway, bakery)
        *told, created = await asking
        assert (created["result"]["resultType"], created["result"]["status"]) == ("task", "working")
        assert "goes on" in created["result"]["statusMessage"]
        progress = [one["params"] for one in told if one.get("method") == "notifications/progress"]
        assert [one["progress"] for one in progress] == [0.5]
        task = {"taskId": created["result"]["taskId"]}
        assert (await line.ask("tasks/get", task))["result"]["status"] == "working"
        assert await bakery.finish("t-1", "a dark one") == 202
        async with asyncio.timeout(FELT_S):
            while (found := (await line.ask("tasks/get", task))["result"])["status"] == "working":
                await pause()
        assert found["result"]["structuredContent"] == {"loaf": "a dark one"}


async def _heard(gateway: Gateway, bakery: Bakery) -> None:
    """Have it asked after once, as an upstream with news would."""
    word = bakery.notify["t-1"].rpartition("/")[2]
    async with asyncio.timeout(FELT_S):
        while not await gateway.jobs.called_back(word):
            await pause()


@requirement("EXE-6")
@requirement("PPL-4")
async def test_the_page_of_the_call_shows_how_far_it_is_and_stops_it(tmp_path: Path) -> None:
    bakery = Bakery()
    async with counter(bakery, tmp_path) as (gateway, _):
        ana = gateway.identity.at_terminal("ana")
        seen = await gateway.call("bakery.bake", {"order": "rye"}, principal=ana, key="k-1", deadline_ms=1500)
        assert seen.status is Status.PARTIAL
        await _heard(gateway, bakery)
        await until(lambda: bakery.looked > 0)
        visitor = Visitor(build(gateway))
        await visitor.sign_in("ana")
        async with asyncio.timeout(FELT_S):
            while "50 %" not in text(page := await visitor.get(f"/calls/{seen.call_id}")):
                await pause()
        assert "Its job goes on" in text(page)
        assert "ask again with the same key" not in text(page)
        assert "The job t-1" in text(page)
        assert 'hx-trigger="every 2s"' in page.body.decode()
        assert "goes on without the call" in text(page)
        answer = await visitor.post(f"/calls/{seen.call_id}/cancel")
        assert answer.status == 303
        after = await visitor.get(f"/calls/{seen.call_id}")
        assert "is being cancelled" in text(after)
        assert "Cancel the job" not in text(after)
        await until(lambda: bakery.taken_out == ["t-1"])


@requirement("EXE-6")
async def test_who_waits_when_the_time_of_a_drain_is_over_is_told_that_it_goes_on(tmp_path: Path) -> None:
    works = Works()
    async with opened("memory", tmp_path, works, ManualClock()) as here:
        waiting = asyncio.ensure_future(
            here.gateway.call("works.render", {"title": "tea"}, principal=ADA, key="k-1", deadline_ms=60_000)
        )
        await here.clock.advance(3.0)
        here.gateway.answer_waiting()
        seen = await waiting
        assert (seen.status, seen.pending is not None) == (Status.PARTIAL, True)
