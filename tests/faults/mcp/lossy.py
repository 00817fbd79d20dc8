"""An MCP server over HTTP that acts, and then loses its answer.

Speaks either era. Every tool writes into the book first. Then, by the plan: the connection is dropped,
nothing ever comes, HTTP says 500, or what comes is no answer. The second time it is asked for the same thing
it answers well; tools called `honoured-…` do not act again then, all others do. `patient` answers well too,
when it may, and `dying` ends the process.

    GET /acted/NAME    answers once NAME was done        POST /release/NAME    lets `patient` answer for NAME
    GET /quiet         answers once nothing hangs
"""

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import aiohttp
from aiohttp import web

from tests.faults.mcp import plan
from tests.faults.mcp.book import Book
from tests.faults.mcp.protocol import METHOD_NOT_FOUND, Era, Json, answer, done, error, introduction, tool

HTML = "<!doctype html><title>502 Bad Gateway</title><h1>Bad Gateway</h1>"
SESSION = "Mcp-Session-Id"
SEEN = tool("seen", "key", "Look up whether what was asked for under a key was done.", "lines")


def listed(numbers: int) -> list[Json]:
    acting = [*plan.tools(numbers), "patient", "dying"]
    return [SEEN, *(tool(name, "thing", "Do a thing and write it down.", "line") for name in acting)]


class Lossy:
    """What is done, and what hangs."""

    def __init__(self, book: Book, era: Era, numbers: int) -> None:
        self.book, self.era = book, era
        self.tools = listed(numbers)
        self._acted: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._released: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._hanging: dict[object, asyncio.Event] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/mcp", self.serve)
        app.router.add_get("/acted/{name}", self._told_acted)
        app.router.add_post("/release/{name}", self._release)
        app.router.add_get("/quiet", self._told_quiet)
        return app

    # --- MCP ------------------------------------------------------------------------------

    async def serve(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        method, params = message["method"], message.get("params", {})
        if "id" not in message:
            self._stop(request, params)
            return web.Response(status=202)
        if method == "tools/call":
            return await self._call(request, message["id"], params)
        result = introduction(self.era, method, params, self.tools)
        if result is None:
            said = error(message["id"], METHOD_NOT_FOUND, f"there is no {method}")
            return web.json_response(said, status=404 if self.era == "modern" else 200)
        session = {SESSION: token_hex(8)} if method == "initialize" else {}
        return web.json_response(answer(message["id"], result), headers=session)

    async def _call(self, request: web.Request, number: Any, params: Json) -> web.StreamResponse:
        arguments, key = params["arguments"], params["_meta"].get("holdfast/key", "")
        if params["name"] == "seen":
            return self._well(number, {"lines": self.book.lines(arguments["key"])})
        name = arguments["thing"]
        line, first = self.book.asked(params["name"], name, key)
        self._acted[name].set()
        if params["name"] == "dying":
            os._exit(1)
        if params["name"] == "patient":
            await self._released[name].wait()
        elif first:
            return await self._lose(request, number, name, line)
        return self._well(number, {"line": line})

    def _well(self, number: Any, data: Json) -> web.Response:
        return web.json_response(answer(number, done(self.era, data)))

    # --- the ways to lose an answer -------------------------------------------------------

    async def _lose(self, request: web.Request, number: Any, name: str, line: int) -> web.StreamResponse:
        variant = plan.variant(name)
        match plan.way(name):
            case "drop":
                return await self._drop(request, after_headers=variant % 2 == 0)
            case "hang":
                return await self._hang(request, number)
            case "error" if variant % 2 == 0:
                return web.Response(status=500, text="internal error")
            case "error":
                return web.json_response(error(number, -32603, "internal error"), status=500)
        return self._garbage(number, name, line)

    async def _drop(self, request: web.Request, *, after_headers: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "1000"})
        if after_headers:
            await response.prepare(request)
            await response.write(b'{"jsonrpc":"2.0","id":')
        assert request.transport is not None
        request.transport.abort()
        return response

    async def _hang(self, request: web.Request, number: Any) -> web.StreamResponse:
        """Until the request is taken back: by its connection, or in the handshake era by a message."""
        me = object() if self.era == "modern" else (request.headers[SESSION], number)
        stopped = asyncio.Event()
        self._hanging[me] = stopped
        self._quiet.clear()
        try:
            await stopped.wait()
            return web.Response(status=202)  # nobody waits for this
        finally:
            del self._hanging[me]
            if not self._hanging:
                self._quiet.set()

    def _stop(self, request: web.Request, params: Json) -> None:
        if (hanging := self._hanging.get((request.headers[SESSION], params.get("requestId")))) is not None:
            hanging.set()

    def _garbage(self, number: Any, name: str, line: int) -> web.Response:
        right = done(self.era, {"line": line})
        match plan.garbage(name):
            case "broken":
                return web.Response(text='{"jsonrpc": "2.0", "result": {', content_type="application/json")
            case "page":
                return web.Response(text=HTML, content_type="text/html")
            case "other id":
                return web.json_response(answer(f"not-{number}", right))
            case "other type":
                return web.json_response({"jsonrpc": "2.0", "id": number, "result": "done"})
            case "other answer":
                return web.json_response(answer(number, {**right, "structuredContent": {"row": line}}))
        return web.json_response([1, None, "done"])

    # --- for the test ---------------------------------------------------------------------

    async def _told_acted(self, request: web.Request) -> web.Response:
        await self._acted[request.match_info["name"]].wait()
        return web.Response()

    async def _release(self, request: web.Request) -> web.Response:
        self._released[request.match_info["name"]].set()
        return web.Response()

    async def _told_quiet(self, request: web.Request) -> web.Response:
        await self._quiet.wait()
        return web.Response()


@dataclass(frozen=True)
class Running:
    """The server's process, as a test sees it."""

    url: str
    book: Book
    _control: aiohttp.ClientSession

    async def acted(self, name: str) -> None:
        async with self._control.get(f"/acted/{name}") as said:
            said.raise_for_status()

    async def release(self, name: str) -> None:
        async with self._control.post(f"/release/{name}") as said:
            said.raise_for_status()

    async def quiet(self) -> None:
        """Everything that hung was taken back by the gateway."""
        async with self._control.get("/quiet") as said:
            said.raise_for_status()


@asynccontextmanager
async def lossy(file: Path, era: Era, numbers: int) -> AsyncIterator[Running]:
    """The server as a process of its own, until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.mcp.lossy", str(file), era, str(numbers)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        address = f"http://127.0.0.1:{port}"
        everybody = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(address, connector=everybody) as control:
            book = Book(file)
            yield Running(f"{address}/mcp", book, control)
            book.close()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def main(file: Path, era: Era, numbers: int) -> None:
    runner = web.AppRunner(Lossy(Book(file), era, numbers).application(), handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), "modern" if sys.argv[2] == "modern" else "legacy", int(sys.argv[3])))
