"""What holds when clients, rounds of questions and tasks meet?"""

import asyncio
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.server.subscriptions import ResourceUpdated, ToolsListChanged

from holdfast.config import parse
from holdfast.gateway import Gateway
from holdfast.model.errors import ConfigError
from holdfast.servers.mcp.delivery import Delivery
from holdfast.servers.mcp.hub import Hub
from tests.requirements import requirement
from tests.servers.mcp.office import Office
from tests.servers.mcp.raw import LEGACY, MODERN, speaking
from tests.servers.mcp.test_tasks import KNOWS, PAY, until
from tests.servers.serving import Served

CAN: dict[str, Any] = {"elicitation": {"form": {}}}


async def noted(gateway: Gateway) -> None:
    """Every answer so far is known to have arrived."""
    async with asyncio.timeout(20):
        while gateway._ports.attendance._calls:  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0)


async def fetched(gateway: Gateway, call_id: str) -> None:
    """It is written down that somebody has the outcome."""
    tenant = gateway.identity.at_terminal("ann").tenant
    async with asyncio.timeout(20):
        while True:
            found = await gateway._ports.ledger.find_call(tenant, call_id)
            if found is not None and found.attendant is None:
                return
            await asyncio.sleep(0)


def said(name: str) -> dict[str, Any]:
    return {"q": {"action": "accept", "content": {"name": name}}}


@requirement("IDM-1", "IDM-3")
async def test_two_equal_calls_that_are_both_asked_something_are_answered_each_with_its_own(
    served: Served, gateway: Gateway, office: Office
) -> None:
    params = {"name": "office__ask_back", "arguments": {"text": "hi"}}
    async with speaking(served, MODERN, capabilities=CAN) as line:
        first = (await line.ask("tools/call", params))["result"]
        await noted(gateway)
        second = (await line.ask("tools/call", params))["result"]
        await noted(gateway)
        answers = []
        for asked, name in ((second, "Bea"), (first, "Ada")):
            back = {"inputResponses": said(name), "requestState": asked["requestState"]}
            answers.append((await line.ask("tools/call", {**params, **back}))["result"])
    assert [told["q"]["content"]["name"] for _, told in office.told] == ["Bea", "Ada"]
    assert not any(one["_meta"]["holdfast/observation"].get("replayed") for one in answers)


@requirement("IDM-1", "APR-5")
async def test_a_result_taken_from_a_task_is_not_given_to_the_next_equal_call(
    served: Served, gateway: Gateway, office: Office
) -> None:
    async with speaking(served, MODERN, capabilities=KNOWS) as line:
        created = (await line.ask("tools/call", PAY))["result"]
        asked = created["_meta"]["holdfast/observation"]["approval"]["id"]
        await gateway.decide(gateway.identity.at_terminal("olga"), asked, True)
        await until(line, created["taskId"], gateway, "completed")
        await fetched(gateway, created["taskId"])
        again = (await line.ask("tools/call", PAY))["result"]
    assert office.paid == ["x"]
    assert again["resultType"] == "task"
    assert again["taskId"] != created["taskId"]


class Deaf:
    """A connection of the older era whose client has stopped reading."""

    def __init__(self, *, deaf: bool) -> None:
        self.state: dict[str, Any] = {"holdfast/subscribed": {"memo://one": "office"}}
        self.exit_stack = AsyncExitStack()
        self.heard: list[tuple[str, Any]] = []
        self.told = asyncio.Event()
        self._deaf = deaf

    async def notify(self, method: str, params: Any) -> None:
        self.heard.append((method, params))
        self.told.set()
        if self._deaf:
            await asyncio.Event().wait()


@requirement("PRO-1")
async def test_a_client_that_does_not_read_keeps_no_other_from_hearing_news(gateway: Gateway) -> None:
    hub = Hub(gateway)
    deaf, other = Deaf(deaf=True), Deaf(deaf=False)
    for one in (deaf, other):
        hub.subscriptions.connected(SimpleNamespace(session=SimpleNamespace(_connection=one)))
    async with asyncio.timeout(20):
        for _ in range(1000):
            await hub.subscriptions.publish(ResourceUpdated("memo://one"))
        await hub.subscriptions.publish(ToolsListChanged())
        while other.heard[-1:] != [("notifications/tools/list_changed", None)]:
            other.told.clear()
            await other.told.wait()
    assert ("notifications/resources/updated", {"uri": "memo://one"}) in other.heard
    assert deaf.heard == [("notifications/resources/updated", {"uri": "memo://one"})]
    await deaf.exit_stack.aclose()
    hub.close()


@requirement("PRO-1", "APR-5")
async def test_a_tool_that_asks_a_client_that_left_is_told_so_at_once(
    served: Served, gateway: Gateway, office: Office
) -> None:
    params = {"name": "office__ask_name", "arguments": {"text": "hi"}}
    async with speaking(served, LEGACY, capabilities=CAN) as line:
        body, headers = line.request("tools/call", params)
        async with line.post(body, headers) as response:
            async for part in response.content:
                if b"elicitation/create" in part:
                    break
            response.close()
        async with asyncio.timeout(20):
            await office.go_on.wait()
        assert office.told == ["the client has left"]
        await noted(gateway)
        again = (await line.ask("tools/call", params))["result"]
    assert again["content"][0]["text"].startswith("nobody to ask: the client has left")
    assert len(office.seen) == 1


@requirement("IDM-1", "APR-5")
async def test_a_client_that_leaves_after_its_held_call_runs_again_is_known_to_have_left(
    gateway: Gateway,
) -> None:
    ann = gateway.identity.at_terminal("ann")
    held = await gateway.call("office.pay", {"to": "x"}, principal=ann, request_key="r-1")
    left: list[str] = []
    delivery = Delivery(gateway, ann)
    delivery.carries(held)
    delivery.awaits(lambda: left.append("what runs now"))
    delivery.ended(False)
    await noted(gateway)
    assert left == ["what runs now"]


@requirement("AUT-3")
def test_a_rejected_url_is_not_repeated_with_the_credential_in_it() -> None:
    with pytest.raises(ConfigError) as raised:
        parse({"upstreams": {"b": {"mcp": {"url": "http://u:sekret@host/mcp?token=sekret"}}}})
    assert "upstreams.b.mcp.url" in str(raised.value)
    assert "sekret" not in str(raised.value)
