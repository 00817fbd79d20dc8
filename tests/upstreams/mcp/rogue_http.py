"""A server on a bare socket that speaks HTTP and MCP badly, as each test wants it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from holdfast.upstreams.mcp.target import HttpTarget


class Visit:
    """One request, and the socket to answer it on."""

    def __init__(self, head: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> None:
        self.verb, self.path, _ = head.split(" ", 2)
        self.headers = headers
        self.message: dict[str, Any] = json.loads(body) if body else {}
        self.writer = writer

    @property
    def method(self) -> str:
        return str(self.message.get("method", ""))

    def reply(self, body: bytes, status: int = 200, kind: str = "application/json", **more: str) -> None:
        head = [f"HTTP/1.1 {status} Whatever", f"content-type: {kind}", f"content-length: {len(body)}"]
        head += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
        self.writer.write("\r\n".join([*head, "", ""]).encode() + body)

    def answer(self, **result: Any) -> None:
        body = {"jsonrpc": "2.0", "id": self.message.get("id"), "result": result}
        self.reply(json.dumps(body).encode())

    def error(self, code: int, status: int = 200, message: str = "no") -> None:
        error = {"code": code, "message": message}
        body = {"jsonrpc": "2.0", "id": self.message.get("id"), "error": error}
        self.reply(json.dumps(body).encode(), status)

    def stream(self) -> None:
        self.writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")

    def event(self, message: Any, name: str = "message", **more: str) -> None:
        lines = [f"event: {name}", *(f"{key}: {value}" for key, value in more.items())]
        data = message if isinstance(message, str) else json.dumps(message)
        self.writer.write("\n".join([*lines, f"data: {data}", "", ""]).encode())

    def result(self, text: str = "done") -> dict[str, Any]:
        result = {"content": [], "structuredContent": {"text": text}}
        return {"jsonrpc": "2.0", "id": self.message["id"], "result": result}

    async def gone(self) -> None:
        """Until the other side has closed the connection."""
        while not self.writer.is_closing():
            try:
                self.writer.write(b": still here\n\n")
                await self.writer.drain()
            except ConnectionError:
                return
            await asyncio.sleep(0)


Act = Callable[[Visit], Awaitable[None]]


class RogueHttp:
    """Answers `server/discover` properly and leaves calls to `act`."""

    def __init__(self, act: Act, legacy: bool = False) -> None:
        self.act, self.legacy = act, legacy
        self.visits: list[Visit] = []

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                visit = await self._read(reader, writer)
                self.visits.append(visit)
                await self._serve(visit)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Visit:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        lines = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in lines}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Visit(head[0], headers, body, writer)

    async def _serve(self, visit: Visit) -> None:
        if visit.method == "server/discover" and not self.legacy:
            visit.answer(supportedVersions=["2026-07-28"], capabilities={"tools": {}}, resultType="complete")
        elif visit.method == "server/discover":
            visit.error(-32601, 404)
        elif visit.method == "initialize":
            body = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}}
            message = {"jsonrpc": "2.0", "id": visit.message["id"], "result": body}
            visit.reply(json.dumps(message).encode(), mcp_session_id="s-1")
        elif visit.method.startswith("notifications/"):
            visit.reply(b"", 202)
        elif visit.verb == "DELETE" or (visit.verb == "GET" and "last-event-id" not in visit.headers):
            visit.reply(b"", 405)
        else:
            await self.act(visit)

    @asynccontextmanager
    async def open(self, port: int = 0) -> AsyncIterator[HttpTarget]:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        try:
            yield HttpTarget(f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp")
        finally:
            self._server.close()
            for visit in self.visits:
                visit.writer.close()
            await self._server.wait_closed()
