"""What does a client see on `tools/list`?"""

from typing import Any

import pytest
from mcp import MCPError

from holdfast.gateway import Gateway
from holdfast.model.errors import ConfigError
from holdfast.servers.app import build
from holdfast.servers.mcp import listing
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS, Connect
from tests.servers.mcp.office import Office, OfficeUpstream
from tests.servers.mcp.raw import MODERN, speaking
from tests.servers.serving import Served


@ERAS
@requirement("NAM-5", "SEL-4")
async def test_a_tool_you_may_not_use_is_never_shown(connect: Connect, era: str) -> None:
    async with connect(era, user="bob") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names == {"office__count", "office__look_slowly", "office__raw", "office__failing"}


@ERAS
@requirement("PRO-1")
async def test_a_long_list_comes_in_pages_that_give_everything_once(
    connect: Connect, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE", 3)
    names: list[str] = []
    async with connect(era) as client:
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            assert len(page.tools) <= 3
            names += [tool.name for tool in page.tools]
            if (cursor := page.next_cursor) is None:
                break
        with pytest.raises(MCPError, match="list from the start"):
            await client.list_tools(cursor="bm9uZQ")
    assert len(names) == len(set(names)) == 11


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
