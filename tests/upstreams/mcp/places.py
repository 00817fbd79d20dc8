"""Where do the servers of these tests run?"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import uvicorn
from mcp.server.sse import SseServerTransport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.upstreams.mcp.target import HttpTarget, StdioTarget
from tests.upstreams.mcp.workshop import Workshop

HERE = Path(__file__).parent
Era = Literal["both", "legacy", "modern"]
MODERN = b"2026-07-28"


def workshop_program(era: str = "both", **env: str) -> StdioTarget:
    return StdioTarget(sys.executable, (str(HERE / "workshop.py"), era), env)


def rogue_program(*how: str, **env: str) -> StdioTarget:
    return StdioTarget(sys.executable, ("-S", "-E", str(HERE / "rogue.py"), *how), env)


class OneEra:
    """Lets through the requests of one era, and answers the others as such servers do."""

    def __init__(self, app: ASGIApp, era: Era) -> None:
        self._app, self._era = app, era

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._era == "both":
            return await self._app(scope, receive, send)
        modern = dict(scope["headers"]).get(b"mcp-protocol-version") == MODERN
        if modern == (self._era == "modern"):
            return await self._app(scope, receive, send)
        data = {"supported": [MODERN.decode()], "requested": "2025-11-25"}
        error: dict[str, Any] = {"code": -32022, "message": "Unsupported protocol version", "data": data}
        if modern:
            error = {"code": -32000, "message": "Bad Request: Unsupported protocol version"}
        answer = JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)
        return await answer(scope, receive, send)


class Seen:
    """The requests that reached a server: method, path and headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.connections: set[Any] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.requests.append((scope["method"], scope["path"], headers))
            self.connections.add(tuple(scope["client"]))
        await self._app(scope, receive, send)

    def methods(self) -> list[str]:
        return [headers["mcp-method"] for _, _, headers in self.requests if "mcp-method" in headers]


class Quiet(uvicorn.Server):
    def install_signal_handlers(self) -> None: ...


@asynccontextmanager
async def serving(app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """A server on a free port of this machine, until the block ends; gives its origin."""
    listener = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(app, log_config=None, ws="none", lifespan="on", timeout_graceful_shutdown=1)
    server = Quiet(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
        listener.close()


@asynccontextmanager
async def workshop_http(
    workshop: Workshop, era: Era = "both", **options: Any
) -> AsyncIterator[tuple[HttpTarget, Seen]]:
    app = Seen(OneEra(workshop.server().streamable_http_app(**options), era))
    async with serving(app) as origin:
        yield HttpTarget(f"{origin}/mcp"), app


@asynccontextmanager
async def workshop_sse(workshop: Workshop) -> AsyncIterator[HttpTarget]:
    server, transport = workshop.server(), SseServerTransport("/messages/")

    async def stream(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    app = Starlette(routes=[Route("/sse", stream), Mount("/messages/", app=transport.handle_post_message)])
    async with serving(app) as origin:
        yield HttpTarget(f"{origin}/sse", transport="sse")
