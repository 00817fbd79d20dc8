"""How does a raw MCP client speak to the gateway, in either era?

By hand, so that ids can be the same as everybody else's and a connection can be cut in the middle.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson

from tests.faults.mcp.protocol import LEGACY, MODERN, Era, Json

ACCEPT: Final = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
ABOUT: Final[Json] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Answered:
    """One answer, and what came before it on the same stream."""

    message: Json
    before: Sequence[Json]

    @property
    def result(self) -> Json:
        assert "result" in self.message, self.message
        result: Json = self.message["result"]
        return result

    @property
    def observation(self) -> Json:
        observation: Json = self.result["_meta"]["holdfast/observation"]
        return observation

    @property
    def status(self) -> str:
        status: str = self.observation["status"]
        return status

    @property
    def data(self) -> Json:
        data: Json = self.result["structuredContent"]
        return data


class Client:
    """One client. Its requests are numbered 1, 2, 3, like everybody's."""

    def __init__(
        self, http: aiohttp.ClientSession, url: str, era: Era, headers: Mapping[str, str] | None = None
    ) -> None:
        self._http, self._url, self.era = http, url, era
        self.headers = {**ACCEPT, **(headers or {})}
        self._numbers = itertools.count(1)

    async def open(self) -> "Client":
        """Starts a session where the era has sessions."""
        if self.era == "modern":
            self.headers["MCP-Protocol-Version"] = MODERN
            return self
        about = {
            "protocolVersion": LEGACY,
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
        }
        async with self._http.post(
            self._url, data=_message(0, "initialize", about), headers=self.headers
        ) as response:
            assert response.status == 200, await response.text()
            assert (await _answered(response, 0)).result["protocolVersion"] == LEGACY
            session = response.headers["Mcp-Session-Id"]
        self.headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
        await self.note("notifications/initialized")
        return self

    async def note(self, method: str) -> None:
        body = orjson.dumps({"jsonrpc": "2.0", "method": method})
        async with self._http.post(self._url, data=body, headers=self.headers) as response:
            assert response.status == 202, await response.text()

    async def call(self, tool: str, arguments: Json, **meta: Any) -> Answered:
        """Call a tool; `meta` goes into `_meta`."""
        number = next(self._numbers)
        headers, body = self._prepared(number, tool, arguments, meta)
        async with self._http.post(self._url, data=body, headers=headers) as response:
            assert response.status == 200, f"{response.status}: {await response.text()}"
            return await _answered(response, number)

    @asynccontextmanager
    async def leaving(self, tool: str, arguments: Json, **meta: Any) -> AsyncIterator[None]:
        """Call a tool and cut the connection at the end of the block, without having read anything."""
        headers, body = self._prepared(next(self._numbers), tool, arguments, meta)
        host, port = self._url.split("/")[2].split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        lines = [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Host: {host}:{port}", f"Content-Length: {len(body)}"]
        writer.write("\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body)
        try:
            yield
        finally:
            writer.transport.abort()

    def _prepared(
        self, number: int, tool: str, arguments: Json, meta: Mapping[str, Any]
    ) -> tuple[Mapping[str, str], bytes]:
        params: Json = {"name": tool, "arguments": arguments, "_meta": dict(meta)}
        if self.era == "legacy":
            return self.headers, _message(number, "tools/call", params)
        params["_meta"] |= ABOUT
        routing = {"Mcp-Method": "tools/call", "Mcp-Name": tool}
        return {**self.headers, **routing}, _message(number, "tools/call", params)


def _message(number: int, method: str, params: Json) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


async def _answered(response: aiohttp.ClientResponse, number: int) -> Answered:
    """Reads up to the answer. Whatever else is on the stream is kept, wherever it belongs."""
    if response.content_type == "application/json":
        message = orjson.loads(await response.read())
        assert message["id"] == number
        return Answered(message, ())
    before: list[Json] = []
    async for line in response.content:
        if not line.startswith(b"data:") or not (text := line.removeprefix(b"data:").strip()):
            continue
        message = orjson.loads(text)
        if "method" in message:
            before.append(message)
            continue
        assert message["id"] == number
        return Answered(message, before)
    raise AssertionError("the stream ended without an answer")
