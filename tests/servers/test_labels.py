"""Over MCP and REST, from two processes on one store: does what was read decide what is sent?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from holdfast.config import parse
from holdfast.gateway import Gateway
from holdfast.gateway.storing import store_of
from holdfast.servers.app import build
from holdfast.system import RandomIds, SystemClock
from holdfast.upstreams.function import FunctionUpstream
from tests.policy.office import KEEPS_IN, Office
from tests.requirements import requirement
from tests.servers.serving import Served, serving
from tests.stored import DURABLE, place, url_of

PEOPLE = {
    "ana": {"scopes": ["**"], "trust": 60, "roles": ["user"]},
    "olga": {"roles": ["operator"], "trust": 60},
}
HEADERS = {"x-holdfast-user": "ana", "x-holdfast-agent": "bot"}
READ = {"tool": "office.salaries", "arguments": {"team": "a"}}


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture(params=DURABLE)
async def servers(
    request: pytest.FixtureRequest, tmp_path: Path, office: Office
) -> AsyncIterator[tuple[Served, Served]]:
    """Two gateways, each with a store of its own on the same database."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.cedar").write_text(KEEPS_IN)
    async with AsyncExitStack() as stack:
        kind = await stack.enter_async_context(place(request.param, tmp_path))
        said = {
            "store": url_of(kind, tmp_path),
            "auth": {"mode": "local", "people": PEOPLE},
            "policies": str(tmp_path / "policies"),
        }
        one = await stack.enter_async_context(_served(said, tmp_path, office))
        other = await stack.enter_async_context(_served(said, tmp_path, office))
        yield one, other


@asynccontextmanager
async def _served(said: dict[str, Any], folder: Path, office: Office) -> AsyncIterator[Served]:
    config = parse(said, folder=folder)
    async with store_of(config, SystemClock()) as store:
        upstreams = {"office": FunctionUpstream(office.tools())}
        gateway = Gateway.assemble(config, store, upstreams, clock=store.clock, ids=RandomIds())
        try:
            await gateway.prepare()
            gateway.start()
            app = build(gateway)
            async with app.state.mcp.running(), serving(app) as one:
                yield one
        finally:
            await gateway.close()


async def rest(server: Served, said: dict[str, Any], **more: str) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession(headers=HEADERS) as session,
        session.post(f"{server.url}/v1/calls", json={**said, **more}) as answer,
    ):
        seen: dict[str, Any] = await answer.json()
        return seen


def sending(key: str) -> dict[str, Any]:
    return {"tool": "office.send", "arguments": {"to": key, "text": "hello"}, "key": key}


def refused(seen: dict[str, Any]) -> bool:
    if seen["status"] == "done":
        return False
    assert seen["code"] == "POLICY_VIOLATION", seen
    assert "this session has read confidential data" in seen["message"]
    return True


@asynccontextmanager
async def mcp(server: Served, *, legacy: bool) -> AsyncIterator[Client]:
    async with create_mcp_http_client(headers=HEADERS) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode="legacy" if legacy else "auto", cache=None) as client:
            yield client


async def told(
    client: Client, tool: str, meta: dict[str, Any] | None = None, **arguments: str
) -> dict[str, Any]:
    result = await client.call_tool(f"office__{tool}", arguments, meta=meta)  # type: ignore[arg-type]
    seen: dict[str, Any] = (result.meta or {})["holdfast/observation"]
    return seen


@requirement("OBS-6")
async def test_over_rest_what_one_process_read_the_other_does_not_send(
    servers: tuple[Served, Served], office: Office
) -> None:
    one, other = servers
    assert not refused(await rest(other, sending("k-1"), session="s"))
    assert (await rest(one, READ, session="s"))["status"] == "done"
    assert refused(await rest(other, sending("k-2"), session="s"))
    assert refused(await rest(one, sending("k-3"), session="s"))
    assert refused(await rest(other, sending("k-4")))  # to leave it out helps nobody
    assert not refused(await rest(other, sending("k-5"), session="z"))
    assert office.sent == ["k-1", "k-5"]


@requirement("OBS-6", "PRO-1")
async def test_over_mcp_a_client_without_sessions_is_held_by_its_principal(
    servers: tuple[Served, Served], office: Office
) -> None:
    one, other = servers
    async with mcp(one, legacy=False) as reader, mcp(other, legacy=False) as sender:
        assert not refused(await told(sender, "send", to="a", text="x"))
        assert (await told(reader, "salaries", team="a"))["status"] == "done"
        assert refused(await told(sender, "send", to="b", text="x"))
    assert refused(await rest(other, sending("k-1"), session="whatever"))
    assert office.sent == ["a"]


@requirement("OBS-6", "PRO-1")
async def test_over_mcp_a_client_may_name_its_session(servers: tuple[Served, Served], office: Office) -> None:
    one, other = servers
    named, elsewhere = {"holdfast/session": "s"}, {"holdfast/session": "z"}
    async with mcp(one, legacy=False) as reader, mcp(other, legacy=False) as sender:
        assert (await told(reader, "salaries", named, team="a"))["status"] == "done"
        assert refused(await told(sender, "send", named, to="a", text="x"))
        assert refused(await told(sender, "send", to="b", text="x"))
        assert not refused(await told(sender, "send", elsewhere, to="c", text="x"))
    assert office.sent == ["c"]


@requirement("OBS-6", "PRO-1")
async def test_over_mcp_a_session_of_the_older_era_is_a_session(
    servers: tuple[Served, Served], office: Office
) -> None:
    one, other = servers
    async with mcp(one, legacy=True) as first, mcp(other, legacy=True) as second:
        assert (await told(first, "salaries", team="a"))["status"] == "done"
        assert refused(await told(first, "send", to="a", text="x"))
        assert not refused(await told(second, "send", to="b", text="x"))
    assert office.sent == ["b"]


@requirement("OBS-6", "LIF-6")
async def test_while_a_reading_is_under_way_sending_goes_on_and_not_once_it_is_told(
    servers: tuple[Served, Served], office: Office
) -> None:
    one, other = servers
    office.go_on.clear()
    reading = asyncio.ensure_future(rest(one, READ, session="s"))
    await office.reading.wait()
    assert not refused(await rest(other, sending("k-1"), session="s"))

    async def until_refused(server: Served, name: str) -> list[tuple[bool, bool]]:
        """Whether the reading was told when each was proposed, and whether it was refused."""
        seen = []
        for n in range(40):
            known = reading.done()
            stopped = refused(await rest(server, sending(f"{name}-{n}"), session="s"))
            seen.append((known, stopped))
            if known and n > 5:
                break
        return seen

    racing = [
        asyncio.ensure_future(until_refused(server, name)) for server, name in ((one, "a"), (other, "b"))
    ]
    office.go_on.set()
    assert (await reading)["status"] == "done"
    for seen in await asyncio.gather(*racing):
        assert all(stopped for known, stopped in seen if known)
        assert seen[-1] == (True, True)
