"""How does the holder of a token call a tool through each door, and what comes back?"""

from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from tests.servers.mcp.raw import ACCEPT, LEGACY, MODERN, Line, messages
from tests.servers.serving import Served

DOORS = ("rest", "rpc", MODERN, LEGACY)


@dataclass(frozen=True)
class Came:
    """What came back: the status, what it said of signing in, and the body."""

    status: int
    challenge: str | None
    body: bytes

    def observation(self) -> dict[str, Any]:
        """Of a call that became one, through whichever door."""
        said = messages(self.body)[-1]
        result = said.get("result", said.get("error", {}).get("data", said))
        meta = result.get("_meta", {})
        found: dict[str, Any] = meta.get("holdfast/observation", result)
        return found


async def come(
    served: Served, door: str, authorization: str | None, tool: str = "count", **arguments: Any
) -> Came:
    headers = {} if authorization is None else {"authorization": authorization}
    async with aiohttp.ClientSession() as http:
        if door == "rest":
            call = {"tool": f"desk.{tool}", "arguments": arguments, "key": "k-1"}
            return await _sent(http, f"{served.url}/v1/calls", call, headers)
        if door == "rpc":
            call = {"tool": f"desk.{tool}", "arguments": arguments, "key": "k-1"}
            request = {"jsonrpc": "2.0", "id": 1, "method": "tools.call", "params": call}
            return await _sent(http, f"{served.url}/rpc", request, headers)
        line = Line(http, f"{served.url}/mcp", door, headers={**ACCEPT, **headers})
        if door == LEGACY and (refused := await _opened(line)) is not None:
            return refused
        body, told = line.request("tools/call", {"name": f"desk__{tool}", "arguments": arguments})
        return await _sent(http, line.url, body, told)


async def _opened(line: Line) -> Came | None:
    client = {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "by-hand", "version": "1"},
    }
    body, headers = line.request("initialize", client)
    async with line.post(body, headers) as answer:
        if answer.status != 200:
            return Came(answer.status, answer.headers.get("www-authenticate"), await answer.read())
        line.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        await answer.read()
    await line.tell("notifications/initialized")
    return None


async def _sent(http: aiohttp.ClientSession, url: str, body: Any, headers: dict[str, str]) -> Came:
    async with http.post(url, data=orjson.dumps(body), headers=headers) as answer:
        return Came(answer.status, answer.headers.get("www-authenticate"), await answer.read())
