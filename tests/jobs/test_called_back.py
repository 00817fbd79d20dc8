"""A job at a real MCP server that calls back over real HTTP."""

import asyncio
from pathlib import Path
from typing import Any

from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from holdfast import Gateway
from holdfast.model.observation import Observation, Status
from holdfast.servers.app import build
from tests.jobs.bakery import Bakery, called, counter
from tests.jobs.works import yard
from tests.polling import until
from tests.requirements import requirement
from tests.servers.asgi import Client

PATIENT_MS = 30_000
SHORT: Any = {"holdfast/deadline_ms": 1500}


async def _bake(gateway: Gateway, **said: Any) -> Observation:
    ana = gateway.identity.at_terminal("ana")
    return await gateway.call("bakery.bake", {"order": "rye"}, principal=ana, key="k-1", **said)


@requirement("EXE-6")
async def test_a_call_back_has_the_job_asked_after_at_once(tmp_path: Path) -> None:
    bakery = Bakery()
    async with counter(bakery, tmp_path) as (gateway, url):
        waiting = asyncio.ensure_future(_bake(gateway, deadline_ms=PATIENT_MS))
        await bakery.ordered.wait()
        assert bakery.notify["t-1"].startswith(f"{url}/v1/jobs/")
        status = 404
        while status == 404:  # its submission is on its way into the ledger
            status = await bakery.finish("t-1", "a dark one")
        assert status == 202
        seen = await waiting
        assert (seen.status, seen.data) == (Status.DONE, {"loaf": "a dark one"})
        assert bakery.looked == 1
        assert await called(bakery.notify["t-1"]) == 404


@requirement("EXE-6")
async def test_who_calls_back_before_the_submission_is_written_is_heard_then(tmp_path: Path) -> None:
    bakery = Bakery(hasty="a pale one")
    async with counter(bakery, tmp_path) as (gateway, _):
        seen = await _bake(gateway, deadline_ms=PATIENT_MS)
        assert (seen.status, seen.data) == (Status.DONE, {"loaf": "a pale one"})
        assert bakery.hastened == [404]


@requirement("EXE-6")
async def test_nothing_that_is_said_there_is_believed(tmp_path: Path) -> None:
    bakery = Bakery()
    async with counter(bakery, tmp_path) as (gateway, _):
        seen = await _bake(gateway, deadline_ms=1500)
        assert seen.status is Status.PARTIAL
        assert await called(bakery.notify["t-1"], b'{"ready": true, "loaf": "a stone"}') == 202
        ana = gateway.identity.at_terminal("ana")
        await until(lambda: bakery.looked > 0)
        now = await gateway.find(ana, seen.call_id)
        assert now is not None
        assert (now.status, now.data) == (Status.PARTIAL, None)


@requirement("EXE-6")
async def test_a_stranger_learns_nothing_and_asks_for_nothing(tmp_path: Path) -> None:
    bakery = Bakery()
    async with counter(bakery, tmp_path) as (gateway, url):
        await _bake(gateway, deadline_ms=1000)
        word = bakery.notify["t-1"].rpartition("/")[2]
        assert len(word) >= 43
        assert await called(f"{url}/v1/jobs/{word[:-1]}") == 404
        assert await called(f"{url}/v1/jobs/{word}", b"x" * 70_000) == 413
        assert bakery.looked == 0


@requirement("EXE-6")
async def test_no_client_gives_the_address_and_a_pending_answer_is_no_error(tmp_path: Path) -> None:
    bakery = Bakery()
    async with counter(bakery, tmp_path) as (_, url):
        headers = {"x-holdfast-user": "ana", "x-holdfast-agent": "bot"}
        async with create_mcp_http_client(headers=headers) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with McpClient(transport, cache=None) as client:
                [bake] = [one for one in (await client.list_tools()).tools if one.name == "bakery__bake"]
                told = await client.call_tool("bakery__bake", {"order": "rye", "notify_url": "http://evil"})
                waits = await client.call_tool("bakery__bake", {"order": "rye"}, meta=SHORT)
        assert "notify_url" not in bake.input_schema["properties"]
        assert bake.output_schema is None
        assert told.is_error is True
        assert waits.is_error is False
        assert "job 't-1' goes on" in waits.content[0].text.lower()  # type: ignore[union-attr]
        assert list(bakery.notify) == ["t-1"]


@requirement("EXE-6")
async def test_strangers_are_not_heard_without_end(tmp_path: Path) -> None:
    async with yard("memory", tmp_path) as here:
        client = Client(build(here.gateway), {"host": "127.0.0.1"})
        answers = [await client.post(f"/v1/jobs/guess-{number}", {}) for number in range(210)]
        assert [one.status for one in answers] == [404] * 200 + [429] * 10
        assert answers[-1].headers["retry-after"] == "1"
        assert len(here.gateway.jobs._early) <= 256
