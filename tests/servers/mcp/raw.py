"""How does a test speak MCP over HTTP by hand, and see every byte that comes back?"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import aiohttp
import orjson

from tests.servers.serving import Served

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
ANN = {"x-holdfast-user": "ann", "x-holdfast-agent": "bot"}
CLIENT = {"name": "by-hand", "version": "1"}
NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


@dataclass
class Line:
    """One client's connection in one era."""

    http: aiohttp.ClientSession
    url: str
    era: str
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    client: Mapping[str, Any] = field(default_factory=lambda: CLIENT)
    headers: dict[str, str] = field(default_factory=lambda: {**ACCEPT, **ANN})
    ids: Any = field(default_factory=lambda: count(1))

    def request(
        self, method: str, params: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The body and the headers of a request of this era."""
        body = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": dict(params or {})}
        headers = {**self.headers, "mcp-protocol-version": self.era}
        if self.era == MODERN:
            body["params"]["_meta"] = {
                **body["params"].get("_meta", {}),
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": dict(self.client),
                "io.modelcontextprotocol/clientCapabilities": dict(self.capabilities),
            }
            headers["mcp-method"] = method
            if method in NAMES:
                headers["mcp-name"] = str(body["params"][NAMES[method]])
        return body, headers

    def post(self, body: Any, headers: Mapping[str, str]) -> Any:
        return self.http.post(self.url, data=orjson.dumps(body), headers=headers)

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The response message to one request; whatever came before it on its stream is left out."""
        messages = await self.hear(method, params)
        return messages[-1]

    async def hear(self, method: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        body, headers = self.request(method, params)
        async with self.post(body, headers) as response:
            if session := response.headers.get("mcp-session-id"):
                self.headers["mcp-session-id"] = session
            return messages(await response.read())

    async def tell(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            body["params"] = params
        async with self.post(body, {**self.headers, "mcp-protocol-version": self.era}) as response:
            status: int = response.status
            return status


def messages(body: bytes) -> list[dict[str, Any]]:
    if body.startswith(b"{"):
        return [orjson.loads(body)]
    lines = body.replace(b"\r\n", b"\n").split(b"\n")
    return [orjson.loads(line[5:]) for line in lines if line.startswith(b"data:") and line[5:].strip()]


@asynccontextmanager
async def speaking(served: Served, era: str, **details: Any) -> AsyncIterator[Line]:
    async with aiohttp.ClientSession() as http:
        line = Line(http, f"{served.url}/mcp", era, **details)
        if era == LEGACY:
            opening = {
                "protocolVersion": era,
                "capabilities": dict(line.capabilities),
                "clientInfo": dict(line.client),
            }
            await line.ask("initialize", opening)
            await line.tell("notifications/initialized")
        yield line
