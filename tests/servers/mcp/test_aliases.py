"""Are aliases short names for pinned reads, and nothing more?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client

from holdfast.gateway import Gateway
from holdfast.policy import load
from holdfast.servers.app import build
from tests.gateway.depot import Depot, fronted
from tests.requirements import requirement
from tests.servers.mcp.conftest import seen
from tests.servers.serving import serving

LAZY = {"lazy_above": 0, "pinned": ["depot.*"]}
SHUT = """
@id("no_stock")
@reason("nobody looks at the stock today")
forbid (principal, action == Action::"depot.stock", resource);

@id("rest")
@reason("everything else")
permit (principal, action, resource);
"""


@asynccontextmanager
async def client(gateway: Gateway) -> AsyncIterator[Client]:
    app = build(gateway)
    async with app.state.mcp.running(), serving(app) as served, Client(f"{served.url}/mcp") as one:
        yield one


@requirement("REG-9", "SEL-1")
async def test_a_pinned_read_is_listed_under_its_alias_and_a_write_under_its_own_name(tmp_path: Path) -> None:
    async with fronted(Depot(), tmp_path, mcp=LAZY) as gateway, client(gateway) as one:
        names = {tool.name for tool in (await one.list_tools()).tools}
        read = await one.call_tool("mcp_depot_stock", {"item": "nail"})
    assert names == {"search_tools", "describe_tool", "call_tool", "mcp_depot_stock", "depot__take"}
    assert seen(read)["tool"] == "depot.stock"


@requirement("REG-9")
async def test_what_nobody_pinned_has_no_alias(tmp_path: Path) -> None:
    lazy = {"lazy_above": 0, "pinned": ["depot.take"]}
    async with fronted(Depot(), tmp_path, mcp=lazy) as gateway, client(gateway) as one:
        names = {tool.name for tool in (await one.list_tools()).tools}
    assert not [name for name in names if name.startswith("mcp_")]


@requirement("REG-9")
async def test_a_promotion_drops_every_alias_and_what_is_forbidden_then_is_refused_by_any_name(
    tmp_path: Path,
) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "all.cedar").write_text(SHUT)
    async with fronted(Depot(), tmp_path, mcp=LAZY) as gateway:
        app = build(gateway)
        async with app.state.mcp.running(), serving(app) as served, Client(f"{served.url}/mcp") as one:
            await one.call_tool("mcp_depot_stock", {"item": "nail"})
            hub = app.state.mcp._inside.hub
            before = hub.aliases.find("mcp_depot_stock")
            await gateway.policies.promote(gateway.identity.at_terminal("ben"), load(tmp_path / "policies"))
            after = hub.aliases.find("mcp_depot_stock")
            refused = await one.call_tool("mcp_depot_stock", {"item": "nail"})
    assert before is not after
    assert seen(refused)["code"] == "POLICY_VIOLATION"
