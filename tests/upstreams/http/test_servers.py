"""Do servers that people run understand us, and we them?"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import uvicorn
from aiohttp import web

from holdfast.upstreams.http.address import Address, address
from tests.upstreams.http.raw import pooled, read
from tests.upstreams.mcp.places import Quiet

LARGE = b"x" * 3_000_000


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Says what it got: `/whole` with its length, `/chunks` in pieces."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    headers = [(b"content-type", b"application/json")]
    whole = scope["path"] == "/whole"
    if whole:
        headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for at in [] if whole else range(0, len(body), 100_000):
        await send({"type": "http.response.body", "body": body[at : at + 100_000], "more_body": True})
    await send({"type": "http.response.body", "body": body if whole else b""})


@asynccontextmanager
async def by_uvicorn(parser: str, path: str) -> AsyncIterator[Address]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_config=None, http=parser, lifespan="off", ws="none")
        server = Quiet(config)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        yield address(f"http://127.0.0.1:{listener.getsockname()[1]}{path}")
        server.should_exit = True
        await running


@asynccontextmanager
async def by_aiohttp(path: str) -> AsyncIterator[Address]:
    async def echo(asked: web.Request) -> web.StreamResponse:
        body = await asked.read()
        if asked.path == "/whole":
            return web.Response(body=body, content_type="application/json")
        response = web.StreamResponse(headers={"content-type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(asked)
        for at in range(0, len(body), 100_000):
            await response.write(body[at : at + 100_000])
        await response.write_eof()
        return response

    served = web.Application(client_max_size=2 * len(LARGE))
    served.router.add_post("/{way}", echo)
    runner = web.AppRunner(served)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield address(f"http://127.0.0.1:{runner.addresses[0][1]}{path}")
    finally:
        await runner.cleanup()


def opened(server: str, path: str) -> AbstractAsyncContextManager[Address]:
    return by_aiohttp(path) if server == "aiohttp" else by_uvicorn(server, path)


@pytest.mark.parametrize("path", ["/whole", "/chunks"])
@pytest.mark.parametrize("server", ["httptools", "h11", "aiohttp"])
async def test_what_is_sent_comes_back(server: str, path: str) -> None:
    async with opened(server, path) as there, pooled(there) as client:
        for size in (0, 1, 1000, len(LARGE), 5):
            response = await client.post(LARGE[:size])
            assert response.status == 200
            assert await read(response) == LARGE[:size]
        bodies = [b"%d" % number for number in range(30)]
        answers = await asyncio.gather(*(client.post(body) for body in bodies))
        assert [await read(answer) for answer in answers] == bodies
