"""Can an agent have its whole plan approved over MCP?"""

from typing import Any

import pytest
from mcp import MCPError

from holdfast.gateway import Gateway
from tests.approvals.bank import person
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS, Connect, seen
from tests.servers.mcp.office import Office

OLGA = person("olga", "operator")


@pytest.fixture
def config(config: dict[str, Any]) -> dict[str, Any]:
    return {**config, "mcp": {"plans": True}}


@ERAS
@requirement("APR-8", "NAM-5")
async def test_several_calls_are_approved_at_once_and_then_made(
    connect: Connect, era: str, gateway: Gateway, office: Office
) -> None:
    async with connect(era) as client:
        tool = {one.name: one for one in (await client.list_tools()).tools}["propose_plan"]
        assert "steps" in tool.input_schema["properties"]
        steps = [{"tool": "office__pay_much", "arguments": {"to": name}} for name in ("mia", "noa")]
        asked = await client.call_tool("propose_plan", {"task": "pay day", "steps": steps})
        told = asked.structured_content
        await gateway.decide(OLGA, told["approval"]["id"], True)
        meta: Any = {"holdfast/plan": told["plan"]}
        paid = [
            await client.call_tool("office__pay_much", {"to": name}, meta=meta) for name in ("noa", "mia")
        ]
    assert (told["status"], asked.is_error) == ("asked", False)
    assert [seen(one)["status"] for one in paid] == ["done", "done"]
    assert office.paid == ["noa", "mia"]


@requirement("APR-8")
async def test_a_plan_that_cannot_be_is_an_error_with_every_reason(connect: Connect) -> None:
    async with connect() as client:
        wrong = [{"tool": "office__nothing", "arguments": {}}, {"tool": "office__pay_much", "arguments": {}}]
        refused = await client.call_tool("propose_plan", {"steps": wrong})
        with pytest.raises(MCPError, match="steps"):
            await client.call_tool("propose_plan", {})
    assert refused.is_error
    assert [step["code"] for step in refused.structured_content["steps"]] == [
        "TOOL_NOT_FOUND",
        "STRUCTURAL_VIOLATION",
    ]


@requirement("APR-8")
async def test_who_may_call_nothing_that_needs_approval_is_not_offered_it(connect: Connect) -> None:
    async with connect(user="bob") as client:
        assert "propose_plan" not in {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("propose_plan", {"steps": []})
