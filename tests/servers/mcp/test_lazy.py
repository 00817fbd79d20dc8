"""How does a client work with more tools than are listed?"""

from typing import Any

import pytest
from mcp import MCPError

from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS, Connect, seen
from tests.servers.mcp.office import Office


@pytest.fixture
def config(config: dict[str, Any]) -> dict[str, Any]:
    return {**config, "mcp": {"lazy_above": 4, "pinned": ["office.cou*"]}}


@ERAS
@requirement("SEL-1")
async def test_above_the_limit_pinned_tools_and_three_more_are_listed(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names == {"search_tools", "describe_tool", "call_tool", "office__count"}


@requirement("SEL-1")
async def test_who_may_use_few_tools_sees_them_all_and_no_others_are_made_up(connect: Connect) -> None:
    async with connect(user="bob") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert len(names) == 4
        assert "search_tools" not in names
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("search_tools", {"query": "note"})


@ERAS
@requirement("SEL-1", "SEL-4")
async def test_a_search_tells_a_line_about_each_and_only_what_you_may_use(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        found = await client.call_tool("search_tools", {"query": "write a note", "limit": 2})
        nothing = await client.call_tool("search_tools", {"query": "zebra"})
    tools = found.structured_content["tools"]
    assert tools[0] == {"name": "office__note", "does": "Write a note", "effect": "LOW_RISK_INTERNAL"}
    assert len(tools) == 2
    assert nothing.structured_content["tools"] == []
    assert "use others" in nothing.structured_content["hint"]


@ERAS
@requirement("SEL-1", "IDM-1")
async def test_a_tool_is_described_and_called_by_name_like_any_other(
    connect: Connect, era: str, office: Office
) -> None:
    async with connect(era) as client:
        about = await client.call_tool("describe_tool", {"name": "office__note"})
        assert "idempotency_key" in about.structured_content["inputSchema"]["properties"]
        arguments = {"text": "a", "idempotency_key": "k"}
        first = await client.call_tool("call_tool", {"name": "office__note", "arguments": arguments})
        again = await client.call_tool("office__note", arguments)
    assert (seen(first)["status"], seen(again)["replayed"]) == ("done", True)
    assert office.notes == ["a"]


@requirement("SEL-1")
async def test_what_is_asked_wrongly_is_said(connect: Connect) -> None:
    async with connect() as client:
        for name, arguments in (
            ("describe_tool", {"name": "office__nothing"}),
            ("call_tool", {"name": "office__note"}),
            ("search_tools", {"query": 3}),
        ):
            with pytest.raises(MCPError) as raised:
                await client.call_tool(name, arguments)
            assert raised.value.code == -32602
