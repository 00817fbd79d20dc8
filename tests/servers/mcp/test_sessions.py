"""Does a session of the older era go on in another process on the same store?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest

from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.mcp.conftest import opened
from tests.servers.mcp.office import Office
from tests.servers.mcp.raw import LEGACY, Line, speaking
from tests.servers.serving import Served, serving

CAN: dict[str, Any] = {"elicitation": {"form": {}}}
NOTE = {"name": "office__note", "arguments": {"text": "a"}}


@asynccontextmanager
async def door(config: dict[str, Any], office: Office, **how: Any) -> AsyncIterator[Served]:
    """A gateway of its own on the store, as another process would have it."""
    async with opened(config, office) as gateway:
        app = build(gateway, alone=how.pop("alone", True))
        app.state.mcp.idle_s = how.pop("idle_s", app.state.mcp.idle_s)
        async with app.state.mcp.running(), serving(app) as served:
            yield served


def at(line: Line, served: Served) -> Line:
    """The same client, by way of another process."""
    return replace(line, url=f"{served.url}/mcp", headers=dict(line.headers))


@pytest.fixture
async def doors(config: dict[str, Any], office: Office) -> AsyncIterator[tuple[Served, Served]]:
    async with door(config, office) as one, door(config, office) as two:
        yield one, two


@requirement("PRO-1", "PPL-6")
async def test_a_session_goes_on_in_another_process(doors: tuple[Served, Served], office: Office) -> None:
    one, two = doors
    async with speaking(one, LEGACY) as line:
        elsewhere = at(line, two)
        listed = (await elsewhere.ask("tools/list"))["result"]
        assert "office__note" in {tool["name"] for tool in listed["tools"]}
        assert (await elsewhere.ask("tools/call", NOTE))["result"]["isError"] is False
        assert elsewhere.headers["mcp-session-id"] == line.headers["mcp-session-id"]
        assert "result" in await line.ask("tools/list")
    assert office.notes == ["a"]


@requirement("IDM-1", "PPL-6")
async def test_a_request_sent_again_to_another_process_is_the_same_operation(
    doors: tuple[Served, Served], office: Office
) -> None:
    one, two = doors
    async with speaking(one, LEGACY) as line:
        body, headers = line.request("tools/call", NOTE)
        for url in (f"{one.url}/mcp", f"{two.url}/mcp"):
            async with line.http.post(url, data=orjson.dumps(body), headers=headers) as response:
                assert response.status == 200
                await response.read()
    assert office.notes == ["a"]


@requirement("AUT-1", "AUT-6")
async def test_a_session_of_somebody_else_is_not_there_in_any_process(doors: tuple[Served, Served]) -> None:
    one, two = doors
    async with speaking(one, LEGACY) as line:
        for served in (one, two):
            for stolen in ({"x-holdfast-user": "bob"}, {"mcp-session-id": "0" * 32}):
                other = at(line, served)
                body, headers = other.request("tools/list")
                async with other.post(body, {**headers, **stolen}) as response:
                    assert response.status == 404


@requirement("PRO-1")
async def test_a_session_that_its_client_ended_is_gone(doors: tuple[Served, Served]) -> None:
    _, two = doors
    async with speaking(doors[0], LEGACY) as line:
        elsewhere = at(line, two)
        async with line.http.delete(elsewhere.url, headers=line.headers) as response:
            assert response.status == 200
        body, headers = elsewhere.request("tools/list")
        async with elsewhere.post(body, headers) as response:
            assert response.status == 404


@requirement("PRO-1")
async def test_a_session_that_was_idle_for_long_is_taken_up_again(
    config: dict[str, Any], office: Office
) -> None:
    async with door(config, office, idle_s=0.001) as served, speaking(served, LEGACY) as line:
        for _ in range(20):
            assert "result" in await line.ask("tools/list")


@requirement("PRO-1")
async def test_a_session_outlives_the_process_that_opened_it(config: dict[str, Any], office: Office) -> None:
    async with door(config, office) as two:
        async with door(config, office) as one, speaking(one, LEGACY) as line:
            pass
        async with speaking(two, LEGACY) as other:
            other.headers["mcp-session-id"] = line.headers["mcp-session-id"]
            assert "result" in await other.ask("tools/call", NOTE)
    assert office.notes == ["a"]


@requirement("PRO-1", "LIF-5")
async def test_a_client_is_not_asked_where_its_answer_might_go_elsewhere(
    config: dict[str, Any], office: Office
) -> None:
    ask = {"name": "office__ask_name", "arguments": {"text": "hi"}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"name": "Ada"}}}
    async with (
        door(config, office, alone=False) as one,
        door(config, office) as two,
        speaking(one, LEGACY, capabilities=CAN) as line,
    ):
        for here in (line, at(line, two)):
            said = await here.hear("tools/call", ask)
            assert [message for message in said if "method" in message and "id" in message] == []
            async with here.post(answer, {**here.headers, "mcp-protocol-version": LEGACY}) as response:
                assert response.status == 409
                assert "Mcp-Session-Id" in (await response.json())["error"]["message"]


@requirement("PRO-1")
async def test_a_client_that_says_very_much_of_itself_keeps_to_the_process_it_began_with(
    doors: tuple[Served, Served],
) -> None:
    one, two = doors
    async with speaking(one, LEGACY, client={"name": "x" * 3_900, "version": "1"}) as line:
        assert len(line.headers["mcp-session-id"]) == 32
        assert "result" in await line.ask("tools/list")
        elsewhere = at(line, two)
        body, headers = elsewhere.request("tools/list")
        async with elsewhere.post(body, headers) as response:
            assert response.status == 404
