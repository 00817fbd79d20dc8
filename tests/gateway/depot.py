"""A depot: a real MCP server over HTTP whose tools a test changes under way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as t
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from holdfast import Gateway
from tests.upstreams.mcp.places import serving

SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
OVERLAY = """
version: 1
tools:
  stock: {effect: READ_ONLY}
  take: {effect: LOW_RISK_INTERNAL, undo: exact, manifest: [[item, UPDATE, stock]], idempotency: none}
"""


def described(name: str, description: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": schema or SCHEMA}


@dataclass
class Depot:
    tools: list[Any] = field(
        default_factory=lambda: [
            described("stock", "Tell how many of an item are left."),
            described("take", "Take one of an item."),
        ]
    )
    taken: list[str] = field(default_factory=list)
    listed: int = 0
    instructions: str = "Count twice."
    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)

    def app(self) -> Any:
        server: Server[Any] = Server(
            "depot",
            instructions=self.instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self.bus),
        )
        server.middleware = [self._as_it_is]
        server.get_tool_input_schema = lambda name: None
        server.add_request_handler("resources/list", t.PaginatedRequestParams, self._resources)
        server.add_request_handler("resources/read", t.ReadResourceRequestParams, self._read)
        return server.streamable_http_app()

    async def change(self, *tools: Any) -> None:
        """List other tools from now on, and say so."""
        self.tools = list(tools)
        await self.bus.publish(ToolsListChanged())

    async def _list(self, ctx: Any, params: Any) -> Any:
        self.listed += 1
        return {"tools": self.tools, "ttlMs": 0, "cacheScope": "public", "resultType": "complete"}

    async def _as_it_is(self, ctx: Any, call_next: Any) -> Any:
        """Bad descriptors too, which the SDK would not let through."""
        return await (self._list(ctx, None) if ctx.method == "tools/list" else call_next(ctx))

    async def _call(self, ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
        item = str((params.arguments or {}).get("item"))
        if params.name == "take":
            self.taken.append(item)
        if item == "jammed":
            return t.CallToolResult(
                content=[t.TextContent(type="text", text="the door is jammed")], is_error=True
            )
        return t.CallToolResult(
            content=[], structured_content={"item": item, "taken": self.taken.count(item)}
        )

    async def _resources(self, ctx: Any, params: Any) -> t.ListResourcesResult:
        return t.ListResourcesResult(resources=[t.Resource(uri="depot://plan", name="plan")])

    async def _read(self, ctx: Any, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        return t.ReadResourceResult(contents=[t.TextResourceContents(uri=params.uri, text="shelves")])


def config(folder: Path, url: str, *, overlay: str = OVERLAY, **more: Any) -> dict[str, Any]:
    (folder / "depot.yaml").write_text(overlay)
    return {
        "store": f"sqlite:///{folder}/holdfast.db",
        "auth": {"people": {"ana": {"scopes": ["**"]}, "ben": {"roles": ["operator"]}}},
        "lock": str(folder / "holdfast.lock"),
        "upstreams": {"depot": {"mcp": {"url": url}, "contracts": str(folder / "depot.yaml")}},
        **more,
    }


@asynccontextmanager
async def fronted(depot: Depot, folder: Path, **more: Any) -> AsyncIterator[Gateway]:
    """A gateway in front of a running depot."""
    async with (
        serving(depot.app()) as origin,
        Gateway.open(config(folder, f"{origin}/mcp", **more)) as gateway,
    ):
        yield gateway


class News:
    """Waits for the catalog to change."""

    def __init__(self, gateway: Gateway) -> None:
        assert gateway.native is not None
        self._heard: asyncio.Queue[str] = asyncio.Queue()
        gateway.native.listen(lambda kind, uri: self._heard.put_nowait(kind))

    async def of(self, kind: str) -> None:
        async with asyncio.timeout(30):
            while await self._heard.get() != kind:
                pass
