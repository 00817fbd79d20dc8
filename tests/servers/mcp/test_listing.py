"""What does a client see on `tools/list`?"""

from typing import Any

import pytest
from mcp import MCPError

from holdfast.gateway import Gateway
from holdfast.model.errors import ConfigError
from holdfast.model.function import FunctionTool, tool
from holdfast.model.vocabulary import Effect
from holdfast.servers.app import build
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS, Connect, opened
from tests.servers.mcp.office import Office, OfficeUpstream
from tests.servers.mcp.raw import MODERN, speaking
from tests.servers.serving import Served, serving


def _numbered(number: int) -> FunctionTool[..., Any]:
    @tool(effect=Effect.READ_ONLY, name=f"number_{number}")
    async def one() -> int:
        """Tell a number."""
        return number

    return one


MANY = [_numbered(number) for number in range(400)]


@ERAS
@requirement("NAM-5", "SEL-4")
async def test_a_tool_you_may_not_use_is_never_shown(connect: Connect, era: str) -> None:
    async with connect(era, user="bob") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names == {"office__count", "office__look_slowly", "office__raw", "office__failing"}


@ERAS
@requirement("PRO-1")
async def test_a_long_list_comes_in_pages_that_give_everything_once(
    config: dict[str, Any], office: Office, era: str
) -> None:
    pages: list[list[str]] = []
    async with opened({**config, "mcp": {"lazy_above": 1000}}, office, MANY) as gateway:
        app = build(gateway)
        async with app.state.mcp.running(), serving(app) as served, speaking(served, era) as line:
            cursor: dict[str, Any] | None = {}
            while cursor is not None:
                page = (await line.ask("tools/list", cursor))["result"]
                pages.append([tool["name"] for tool in page["tools"]])
                cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
            lost = (await line.ask("tools/list", {"cursor": "bm9uZQ"}))["error"]
    names = [name for page in pages for name in page]
    assert [len(page) for page in pages] == [200, 200, 11]
    assert len(set(names)) == len(names)
    assert "list from the start" in lost["message"]


@requirement("PRO-1", "AUT-6")
async def test_a_modern_list_may_be_kept_a_while_by_who_asked_and_by_nobody_else(served: Served) -> None:
    async with speaking(served, MODERN) as line:
        result = (await line.ask("tools/list"))["result"]
    assert (result["cacheScope"], result["resultType"]) == ("private", "complete")
    assert result["ttlMs"] > 0
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "holdfast"


@requirement("PRO-1")
async def test_a_gateway_of_functions_offers_tools_and_nothing_else(connect: Connect) -> None:
    async with connect() as client:
        offered = client.server_capabilities
        assert offered.tools is not None
        others = (offered.resources, offered.prompts, offered.completions, offered.logging)
        assert others == (None, None, None, None)
        with pytest.raises(MCPError) as raised:
            await client.list_resources()
    assert raised.value.code == -32601


class TestMountedOneToOne:
    @pytest.fixture
    def config(self, config: dict[str, Any]) -> dict[str, Any]:
        upstream = {"functions": "tests.servers.mcp.office:Office", "prefix": ""}
        return {**config, "upstreams": {"office": upstream}}

    @ERAS
    @requirement("NAM-5")
    async def test_names_and_arguments_are_the_upstreams_own(
        self, connect: Connect, era: str, office: Office
    ) -> None:
        async with connect(era) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert "idempotency_key" not in tools["note"].input_schema["properties"]
            result = await client.call_tool("note", {"text": "a", "idempotency_key": "k"})
        assert result.is_error is True  # not declared there, so not ours to take
        assert office.notes == []


@requirement("NAM-5")
async def test_colliding_names_refuse_start() -> None:
    mounted = {"functions": "tests.servers.mcp.office:Office", "prefix": ""}
    both = {name: OfficeUpstream(Office()) for name in ("one", "two")}
    config = {"upstreams": dict.fromkeys(both, mounted)}
    gateway = Gateway.assemble(
        config, MemoryStore(ManualClock()), both, clock=ManualClock(), ids=CountingIds()
    )
    with pytest.raises(ConfigError, match="are both called 'count'"):
        async with build(gateway).state.mcp.running():
            pass
    await gateway.close()
