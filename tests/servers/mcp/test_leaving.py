"""What happens to a call whose client leaves, or takes it back?"""

import asyncio
from typing import Any

import pytest

from holdfast.gateway import Gateway
from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS
from tests.servers.mcp.office import Office
from tests.servers.mcp.raw import LEGACY, MODERN, Line, messages, speaking
from tests.servers.serving import Served, serving

BOTH_WAYS = True

SLOW: dict[str, Any] = {"name": "office__slow", "arguments": {"text": "a"}}


async def begun(line: Line, office: Office, params: dict[str, Any]) -> tuple[asyncio.Task[Any], Any]:
    """A call under way, and its request's id."""
    body, headers = line.request("tools/call", params)

    async def post() -> Any:
        async with line.post(body, headers) as response:
            return messages(await response.read())

    task = asyncio.create_task(post())
    await office.started.wait()
    return task, body["id"]


async def gone(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def quiet(gateway: Gateway) -> None:
    """Nothing is under way any more."""
    while gateway._under_way:  # noqa: ASYNC110  # the gateway tells nobody
        await asyncio.sleep(0)


@requirement("EXE-1", "PRO-1")
async def test_a_modern_client_that_hangs_up_takes_a_read_back(
    served: Served, gateway: Gateway, office: Office
) -> None:
    async with speaking(served, MODERN) as line:
        task, _ = await begun(line, office, {"name": "office__look_slowly", "arguments": {}})
        await gone(task)
        await served.until_nobody_is_connected()
    await quiet(gateway)
    assert not office.go_on.is_set()


@requirement("EXE-1", "IDM-1")
async def test_a_dispatched_write_goes_on_and_the_same_call_gets_its_answer(
    served: Served, gateway: Gateway, office: Office
) -> None:
    async with speaking(served, MODERN) as line:
        task, _ = await begun(line, office, SLOW)
        await gone(task)
        await served.until_nobody_is_connected()
        office.go_on.set()
        await quiet(gateway)
        assert office.notes == ["a"]
        again = (await line.ask("tools/call", SLOW))["result"]
    told = again["_meta"]["holdfast/observation"]
    assert (told["key_source"], told["replayed"]) == ("adopted", True)
    assert again["structuredContent"] == {"number": 1}
    assert office.notes == ["a"]


@requirement("IDM-1")
async def test_an_older_client_that_lost_its_stream_gets_the_answer_when_it_calls_again(
    served: Served, gateway: Gateway, office: Office
) -> None:
    async with speaking(served, LEGACY) as line:
        task, _ = await begun(line, office, SLOW)
        await gone(task)
    await served.until_nobody_is_connected()
    office.go_on.set()
    await quiet(gateway)
    assert office.notes == ["a"]
    async with speaking(served, LEGACY) as line:
        again = (await line.ask("tools/call", SLOW))["result"]
    told = again["_meta"]["holdfast/observation"]
    assert (told["key_source"], told["replayed"]) == ("adopted", True)
    assert office.notes == ["a"]


@ERAS
@requirement("IDM-1")
async def test_an_answer_that_arrived_is_not_given_to_the_next_equal_call(
    served: Served, era: str, office: Office
) -> None:
    note = {"name": "office__note", "arguments": {"text": "a"}}
    async with speaking(served, era) as line:
        for _ in range(3):
            result = (await line.ask("tools/call", note))["result"]
            assert result["_meta"]["holdfast/observation"]["key_source"] == "request"
    assert office.notes == ["a", "a", "a"]


@requirement("EXE-1", "PRO-1")
async def test_an_older_client_takes_a_call_back_by_saying_so(
    served: Served, gateway: Gateway, office: Office
) -> None:
    async with speaking(served, LEGACY) as line:
        task, request = await begun(line, office, {"name": "office__look_slowly", "arguments": {}})
        await line.tell("notifications/cancelled", {"requestId": request})
        [answer] = await task
        await quiet(gateway)
    assert "error" in answer


@requirement("EXE-1", "IDM-1")
async def test_taking_back_a_dispatched_write_does_not_undo_it(
    served: Served, gateway: Gateway, office: Office
) -> None:
    async with speaking(served, LEGACY) as line:
        task, request = await begun(line, office, SLOW)
        await line.tell("notifications/cancelled", {"requestId": request})
        await task
        office.go_on.set()
        await quiet(gateway)
        assert office.notes == ["a"]
        again = (await line.ask("tools/call", SLOW))["result"]
    assert again["_meta"]["holdfast/observation"]["key_source"] == "adopted"
    assert office.notes == ["a"]


@requirement("PRO-1")
async def test_open_streams_do_not_keep_a_server_from_stopping(gateway: Gateway) -> None:
    app = build(gateway)
    listen = {"notifications": {"toolsListChanged": True}}
    async with (
        app.state.mcp.running(),
        serving(app) as served,
        speaking(served, LEGACY) as older,
        speaking(served, MODERN) as modern,
    ):
        _, headers = older.request("tools/list")
        stream = await older.http.get(older.url, headers=headers)
        body, headers = modern.request("subscriptions/listen", listen)
        listening = await modern.post(body, headers)
        assert b"acknowledged" in await listening.content.readuntil(b"\r\n\r\n")
        app.state.mcp.rest()
        assert messages(await stream.read()) == []
        [last] = messages(await listening.read())
    assert last["id"] == body["id"]
