"""How does an agent's MCP client speak to a gateway, and what does it see when something breaks?

MCP 2025-11-25 over streamable HTTP, the revision every gateway speaks. Written on bare HTTP, so that a
connection can be cut in the middle. It declares no capabilities: nobody can be asked through it.
"""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import aiohttp

from holdfast_faults.adapter import Json, Unavailable

VERSION = "2025-11-25"
HELLO = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
METHOD_NOT_FOUND = -32601
OPENING_S = 60.0
OPENING_PAUSE_S = 0.2
SESSION = "Mcp-Session-Id"
SEPARATORS = "_-./:"
GONE = 404
"""The status for a session that is not known any more."""


class Lost(Exception):
    """No answer came; nobody knows what happened."""


class Unreached(Lost):
    """Nobody listened, so nothing was delivered."""


@dataclass(frozen=True)
class Wrong:
    """An answer that is no result: an HTTP status or a JSON-RPC error."""

    text: str
    status: int = 0
    """Of HTTP, where that was wrong already."""


class Session:
    """A client's session with one gateway process, opened anew whenever the gateway does not know it."""

    def __init__(self, http: aiohttp.ClientSession, url: str, headers: Mapping[str, str]) -> None:
        self._http, self._url = http, url
        self._plain = {"Accept": "application/json, text/event-stream", **headers}
        self._headers: dict[str, str] | None = None
        self._opening = asyncio.Lock()
        self._numbers = itertools.count(1)
        self._names: dict[str, str] = {}

    async def open(self) -> None:
        until = time.monotonic() + OPENING_S
        while True:
            try:
                await self._opened()
            except Lost as lost:
                if time.monotonic() > until:
                    raise Unavailable(f"no session was to be had: {lost}") from None
                await asyncio.sleep(OPENING_PAUSE_S)
            else:
                return

    async def call(self, tool: str, arguments: Json, meta: Json) -> Json | Wrong:
        """The result of a tool. Raises Lost."""
        headers = await self._opened()
        params = {"name": self._named(tool), "arguments": arguments, "_meta": meta}
        said = await self._ask("tools/call", params, headers)
        if isinstance(said, Wrong) and said.status:
            self._headers = None  # after a restart the session is gone; a new one costs nothing
            if said.status == GONE:
                raise Lost("the session is gone")  # as MCP says it: nothing was done
        return said

    async def _opened(self) -> dict[str, str]:
        async with self._opening:
            if self._headers is None:
                self._headers = await self._open()
            return self._headers

    async def _open(self) -> dict[str, str]:
        headers = dict(self._plain)
        if isinstance(said := await self._ask("initialize", HELLO, headers, opening=True), Wrong):
            raise Lost(f"no session: {said.text}")
        headers["MCP-Protocol-Version"] = str(said.get("protocolVersion", VERSION))
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        try:
            async with self._http.post(self._url, json=note, headers=headers):
                pass
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Lost(str(error)) from None
        self._names = self._names or {name: name async for name in self._listed(headers)}
        return headers

    async def _listed(self, headers: dict[str, str]) -> AsyncIterator[str]:
        cursor: Json = {}
        while True:
            said = await self._ask("tools/list", cursor, headers)
            if isinstance(said, Wrong):
                raise Lost(f"no list of tools: {said.text}")
            for tool in said["tools"]:
                yield tool["name"]
            if not said.get("nextCursor"):
                return
            cursor = {"cursor": said["nextCursor"]}

    def _named(self, tool: str) -> str:
        """What this gateway calls the tool: most put something before the name."""
        if tool not in self._names:
            fits = [n for n in self._names if n.endswith(tool) and n[: -len(tool)][-1:] in SEPARATORS]
            if not fits:
                raise LookupError(f"the gateway lists no tool '{tool}': put it before the kit's upstream")
            self._names[tool] = min(fits, key=len)
        return self._names[tool]

    async def _ask(
        self, method: str, params: Json, headers: dict[str, str], *, opening: bool = False
    ) -> Json | Wrong:
        number = next(self._numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            async with self._http.post(self._url, json=message, headers=headers) as response:
                if opening and (session := response.headers.get(SESSION)):
                    headers[SESSION] = session
                said = await self._read(response, number, headers)
        except aiohttp.ClientConnectorError as error:
            raise Unreached(str(error)) from None
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise Lost(f"{type(error).__name__}: {error}") from None
        if isinstance(said, Wrong):
            return said
        if "error" in said:
            return Wrong(json.dumps(said["error"]))
        result: Json = said["result"]
        return result

    async def _read(
        self, response: aiohttp.ClientResponse, number: int, headers: dict[str, str]
    ) -> Json | Wrong:
        if response.status >= 400:
            return Wrong(f"HTTP {response.status}: {(await response.text())[:300]}", response.status)
        if response.content_type == "application/json":
            message: Json = await response.json()
            return message
        async for line in response.content:
            if not line.startswith(b"data:") or not (text := line.removeprefix(b"data:").strip()):
                continue
            message = json.loads(text)
            if "method" in message:
                await self._decline(message, headers)
            elif message.get("id") == number:
                return message
        raise Lost("the stream ended without an answer")

    async def _decline(self, message: Json, headers: dict[str, str]) -> None:
        """Whatever a gateway asks is answered, as every client does that cannot do it: with an error."""
        if "id" not in message:
            return
        error = {"code": METHOD_NOT_FOUND, "message": f"this client does not serve {message['method']!r}"}
        said: Json = {"error": error} if message["method"] != "ping" else {"result": {}}
        answer = {"jsonrpc": "2.0", "id": message["id"], **said}
        async with self._http.post(self._url, json=answer, headers=headers):
            pass


class Agent:
    """A client that knows every replica of a gateway, as through a load balancer."""

    def __init__(self, http: aiohttp.ClientSession, urls: Mapping[str, Mapping[str, str]]) -> None:
        self._sessions = [Session(http, url, headers) for url, headers in urls.items()]

    async def open(self) -> None:
        """Every replica knows this client: a gateway may listen long before it answers."""
        await asyncio.gather(*(session.open() for session in self._sessions))

    def at(self, replica: int) -> Session:
        return self._sessions[replica % len(self._sessions)]
