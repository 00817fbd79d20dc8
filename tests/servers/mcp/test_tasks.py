"""How does a client that knows tasks follow a call that waits for a person?"""

from typing import Any

import pytest

from holdfast.gateway import Gateway
from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.mcp.conftest import opened
from tests.servers.mcp.office import Office
from tests.servers.mcp.raw import LEGACY, MODERN, Line, speaking
from tests.servers.serving import Served, serving

EXTENSION = "io.modelcontextprotocol/tasks"
KNOWS: dict[str, Any] = {"extensions": {EXTENSION: {}}}
PAY = {"name": "office__pay_much", "arguments": {"to": "x"}}


async def until(line: Line, task: str, gateway: Gateway, status: str) -> dict[str, Any]:
    """Ask as a client does, and let the gateway do its housekeeping in between."""
    for _ in range(200):
        found: dict[str, Any] = (await line.ask("tasks/get", {"taskId": task}))["result"]
        if found["status"] == status:
            return found
        await gateway.tidy()
    raise AssertionError(f"the task never became {status}: {found}")


@requirement("APR-5", "PRO-1")
async def test_a_held_call_is_a_task_and_its_result_is_there_once_it_was_approved(
    served: Served, gateway: Gateway, office: Office
) -> None:
    async with speaking(served, MODERN, capabilities=KNOWS) as line:
        created = (await line.ask("tools/call", PAY))["result"]
        assert (created["resultType"], created["status"]) == ("task", "working")
        assert "holdfast approve" in created["statusMessage"]
        waiting = (await line.ask("tasks/get", {"taskId": created["taskId"]}))["result"]
        assert (waiting["status"], waiting["resultType"]) == ("working", "complete")
        asked = created["_meta"]["holdfast/observation"]["approval"]["id"]
        await gateway.decide(gateway.identity.at_terminal("olga"), asked, True)
        done = await until(line, created["taskId"], gateway, "completed")
    assert done["result"]["structuredContent"] == {"to": "x"}
    assert done["result"]["_meta"]["holdfast/observation"]["status"] == "done"
    assert office.paid == ["x"]


@requirement("APR-5")
async def test_a_task_that_was_denied_is_completed_with_a_result_that_says_so(
    served: Served, gateway: Gateway, office: Office
) -> None:
    async with speaking(served, MODERN, capabilities=KNOWS) as line:
        created = (await line.ask("tools/call", PAY))["result"]
        asked = created["_meta"]["holdfast/observation"]["approval"]["id"]
        await gateway.decide(gateway.identity.at_terminal("olga"), asked, False)
        done = await until(line, created["taskId"], gateway, "completed")
    assert done["result"]["isError"] is True
    assert "denied" in done["result"]["content"][0]["text"].lower()
    assert office.paid == []


@requirement("APR-5")
async def test_a_cancelled_task_says_so_and_never_runs(
    served: Served, gateway: Gateway, office: Office
) -> None:
    async with speaking(served, MODERN, capabilities=KNOWS) as line:
        created = (await line.ask("tools/call", PAY))["result"]
        assert "result" in await line.ask("tasks/cancel", {"taskId": created["taskId"]})
        assert (await until(line, created["taskId"], gateway, "cancelled"))["taskId"] == created["taskId"]
        assert "result" in await line.ask("tasks/update", {"taskId": created["taskId"], "inputResponses": {}})
    assert office.paid == []


@requirement("APR-5")
async def test_a_task_is_still_there_in_another_process(config: dict[str, Any], office: Office) -> None:
    async with opened(config, office) as gateway:
        app = build(gateway)
        async with (
            app.state.mcp.running(),
            serving(app) as served,
            speaking(served, MODERN, capabilities=KNOWS) as line,
        ):
            task = (await line.ask("tools/call", PAY))["result"]["taskId"]
    async with opened(config, office) as gateway:
        app = build(gateway)
        async with (
            app.state.mcp.running(),
            serving(app) as served,
            speaking(served, MODERN, capabilities=KNOWS) as line,
        ):
            found = (await line.ask("tasks/get", {"taskId": task}))["result"]
    assert found["status"] == "working"


@requirement("AUT-6", "APR-5")
async def test_a_task_of_somebody_else_is_not_there(served: Served) -> None:
    async with speaking(served, MODERN, capabilities=KNOWS) as line:
        task = (await line.ask("tools/call", PAY))["result"]["taskId"]
        line.headers["x-holdfast-user"] = "bob"
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            error = (await line.ask(method, {"taskId": task}))["error"]
            assert (error["code"], "not yours" in error["message"]) == (-32602, True)


@pytest.mark.parametrize(("era", "code"), [(LEGACY, -32601), (MODERN, -32021)])
async def test_who_did_not_declare_tasks_has_none(served: Served, era: str, code: int) -> None:
    async with speaking(served, era) as line:
        held = (await line.ask("tools/call", PAY))["result"]
        assert held["isError"] is True
        error = (await line.ask("tasks/get", {"taskId": "call_x"}))["error"]
    assert error["code"] == code
