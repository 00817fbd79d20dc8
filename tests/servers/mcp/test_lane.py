"""Does a call that goes without the SDK keep what the SDK promises of it?"""

import asyncio
import json
from typing import Any

import orjson
import pytest

from holdfast.gateway import Gateway
from holdfast.servers.app import build
from holdfast.servers.mcp import answering, inside
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS
from tests.servers.mcp.office import Office
from tests.servers.mcp.raw import LEGACY, MODERN, messages, speaking
from tests.servers.mcp.test_leaving import SLOW, begun, gone, quiet
from tests.servers.serving import Served, serving

LOOK: dict[str, Any] = {"name": "office__look_slowly", "arguments": {}}
COUNT: dict[str, Any] = {"name": "office__count", "arguments": {}}


@ERAS
@requirement("PRO-1")
async def test_a_client_that_waits_for_long_is_shown_that_its_call_goes_on(
    served: Served, office: Office, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "PING_S", 0.001)
    async with speaking(served, era) as line:
        body, headers = line.request("tools/call", LOOK)
        async with line.post(body, headers) as response:
            assert await response.content.readuntil(b"\r\n\r\n") == b": ping\r\n\r\n"
            assert response.headers["content-type"] == "text/event-stream"
            office.go_on.set()
            [last] = messages(await response.read())
    assert (last["id"], last["result"]["content"][0]["text"]) == (body["id"], '"seen"')


@requirement("PRO-1", "EXE-1")
async def test_the_end_of_a_session_breaks_off_what_is_under_way_in_it(
    served: Served, gateway: Gateway, office: Office
) -> None:
    async with speaking(served, LEGACY) as line:
        task, _ = await begun(line, office, LOOK)
        async with line.http.delete(line.url, headers=line.headers) as response:
            assert response.status == 200
        [said] = await task
        await quiet(gateway)
    assert said["error"]["message"] == "Session terminated before the request completed"
    assert not office.go_on.is_set()


@requirement("PRO-1")
async def test_another_request_is_not_taken_back(served: Served, office: Office) -> None:
    async with speaking(served, LEGACY) as line, speaking(served, LEGACY) as other:
        task, request = await begun(line, office, LOOK)
        await line.tell("notifications/cancelled", {"requestId": request + 1})
        await other.tell("notifications/cancelled", {"requestId": request})
        assert "result" in await other.ask("tools/call", COUNT)
        office.go_on.set()
        [said] = await task
    assert "result" in said


@requirement("PRO-1")
async def test_two_requests_of_one_id_are_both_answered(served: Served, office: Office) -> None:
    async with speaking(served, LEGACY) as line:
        task, request = await begun(line, office, LOOK)
        body, headers = line.request("tools/call", COUNT)
        async with line.post({**body, "id": request}, headers) as response:
            [said] = messages(await response.read())
        assert said["result"]["content"][0]["text"] == "0"
        office.go_on.set()
        assert "result" in (await task)[0]


@requirement("PRO-1")
async def test_calls_keep_a_session_open_though_the_sdk_does_not_see_them(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inside, "TOUCHES", 1e9)  # with every call, not a few times in half an hour
    app = build(gateway)
    async with app.state.mcp.running(), serving(app) as served, speaking(served, LEGACY) as line:
        [transport] = app.state.mcp._inside.manager._server_instances.values()
        before = transport.idle_scope.deadline
        assert "result" in await line.ask("tools/call", COUNT)
        while transport.idle_scope.deadline in (before, float("inf")):  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert transport.idle_scope.deadline > before


@ERAS
@pytest.mark.parametrize("like_ours", [True, False], ids=["our server", "another server"])
@requirement("IDM-1")
async def test_a_client_that_leaves_and_calls_again_at_once_gets_what_it_left(
    gateway: Gateway, office: Office, era: str, like_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "MOMENT_S", 3600)
    app = build(gateway)
    async with app.state.mcp.running(), serving(app, like_ours=like_ours) as served:
        async with speaking(served, era) as line:
            task, _ = await begun(line, office, SLOW)
            await gone(task)
        await served.until_nobody_is_connected()
        async with speaking(served, era) as line:
            again = asyncio.create_task(line.ask("tools/call", SLOW))
            await asyncio.sleep(0)
            office.go_on.set()
            told = (await again)["result"]["_meta"]["holdfast/observation"]
        await quiet(gateway)
    assert (told["key_source"], told["status"]) == ("adopted", "done")
    assert office.notes == ["a"]


@requirement("PRO-1")
async def test_a_tool_tells_an_older_client_something_before_its_answer(served: Served) -> None:
    async with speaking(served, LEGACY) as line:
        asks = {"name": "office__ask_name", "arguments": {"text": "hi"}, "_meta": {"progressToken": "t"}}
        said = await line.hear("tools/call", asks)
    assert [one.get("method") for one in said] == ["notifications/progress", "notifications/message", None]
    assert said[0]["params"]["progressToken"] == "t"
    assert "result" in said[2]


@requirement("PRO-1")
async def test_a_modern_client_is_told_how_far_its_call_has_come(served: Served) -> None:
    async with speaking(served, MODERN) as line:
        asks = {"name": "office__ask_name", "arguments": {"text": "hi"}, "_meta": {"progressToken": 1}}
        said = await line.hear("tools/call", asks)
    assert [one.get("method") for one in said] == ["notifications/progress", None]


def test_whatever_an_upstream_says_can_be_written() -> None:
    said = {"number": 2**70, "text": "\ud800", "nothing": None}
    assert json.loads(answering.encoded(said)) == said
    assert answering.encoded({"a": 1}) == orjson.dumps({"a": 1})
    written = {"stored": orjson.Fragment(b'{"b":[2]}')}
    assert json.loads(answering.encoded({**said, **written})) == {**said, "stored": {"b": [2]}}
