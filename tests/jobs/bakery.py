"""A bakery: a real MCP server over HTTP that takes orders, and calls back over HTTP when one is ready."""

import asyncio
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as t
import uvicorn
from mcp.server.lowlevel import Server

from holdfast import Gateway
from holdfast.servers.app import build
from tests.upstreams.mcp.places import serving

OVERLAY = """
version: 1
tools:
  bake:
    effect: LOW_RISK_INTERNAL
    undo: exact
    manifest: [[bread, CREATE, one]]
    idempotency: none
    job:
      id: result.ticket
      poll: {tool: oven, arguments: {ticket: "=job"}}
      done: state.ready
      result: "{'loaf': state.loaf}"
      progress: state.share
      cancel: {tool: take_out, arguments: {ticket: "=job"}}
      callback: notify_url
      every_s: 3600
      slowest_s: 3600
    output_schema: {type: object, properties: {loaf: {type: string}}, required: [loaf]}
  oven: {effect: READ_ONLY}
  take_out: {effect: LOW_RISK_INTERNAL, undo: exact, manifest: [[bread, DELETE, one]], idempotency: none}
"""
_TICKET = {"type": "object", "properties": {"ticket": {"type": "string"}}, "required": ["ticket"]}
_ORDER = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "notify_url": {"type": "string"}},
    "required": ["order", "notify_url"],
}


@dataclass
class Bakery:
    notify: dict[str, str] = field(default_factory=dict)
    """Where to call, by ticket."""
    ready: dict[str, str] = field(default_factory=dict)
    looked: int = 0
    taken_out: list[str] = field(default_factory=list)
    hasty: str = ""
    """What is ready before the order is answered; it is said at once."""
    hastened: list[int] = field(default_factory=list)
    ordered: asyncio.Event = field(default_factory=asyncio.Event)

    def app(self) -> Any:
        server: Server[Any] = Server("bakery", on_list_tools=self._list, on_call_tool=self._call)
        return server.streamable_http_app()

    async def finish(self, ticket: str, loaf: str, body: bytes = b'{"ready": false}') -> int:
        """Done; say so over HTTP. What was answered."""
        self.ready[ticket] = loaf
        return await called(self.notify[ticket], body)

    async def _list(self, ctx: Any, params: Any) -> t.ListToolsResult:
        return t.ListToolsResult(
            tools=[
                t.Tool(name="bake", description="Bake.", input_schema=_ORDER, output_schema=_TICKET),
                t.Tool(name="oven", description="How far a bread is.", input_schema=_TICKET),
                t.Tool(name="take_out", description="Stop baking.", input_schema=_TICKET),
            ]
        )

    async def _call(self, ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
        told = self._answer(params.name, params.arguments or {})
        if params.name == "bake" and self.hasty:
            self.hastened.append(await self.finish(told["ticket"], self.hasty))
        return t.CallToolResult(content=[], structured_content=told)

    def _answer(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        if name == "bake":
            ticket = f"t-{len(self.notify) + 1}"
            self.notify[ticket] = given["notify_url"]
            self.ordered.set()
            return {"ticket": ticket}
        ticket = given["ticket"]
        if name == "take_out":
            self.taken_out.append(ticket)
            return {"ok": True}
        self.looked += 1
        return {"ready": ticket in self.ready, "loaf": self.ready.get(ticket, ""), "share": 0.5}


async def called(url: str, body: bytes = b"") -> int:
    """The status that a POST there is answered with."""

    def post() -> int:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, method="POST"), timeout=20) as told:
                return int(told.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    return await asyncio.to_thread(post)


@asynccontextmanager
async def counter(bakery: Bakery, folder: Path, **more: Any) -> AsyncIterator[tuple[Gateway, str]]:
    """A gateway before a running bakery, served where it says that it is."""
    (folder / "bakery.yaml").write_text(OVERLAY)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with serving(bakery.app()) as origin:
        config = {
            "store": f"sqlite:///{folder}/holdfast.db",
            "base_url": url,
            "auth": {"people": {"ana": {"scopes": ["**"], "trust": 90}}},
            "lock": str(folder / "holdfast.lock"),
            "upstreams": {
                "bakery": {"mcp": {"url": f"{origin}/mcp"}, "contracts": str(folder / "bakery.yaml")}
            },
            **more,
        }
        async with Gateway.open(config) as gateway:
            app = build(gateway)
            server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
            async with app.state.mcp.running():
                running = asyncio.create_task(server.serve(sockets=[listener]))
                try:
                    yield gateway, url
                finally:
                    server.should_exit = True
                    await running
