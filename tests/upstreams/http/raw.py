"""A server on a bare socket: each connection is served by what the test says, byte by byte."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from holdfast.model.egress.rules import Rules
from holdfast.upstreams.http.address import Address, address
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.head import head, request
from holdfast.upstreams.http.pool import Pool
from holdfast.upstreams.http.response import Response

SOON_S = 20.0
JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


class Visitor:
    """One connection."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number, self.reader, self.writer = number, reader, writer

    async def asked(self) -> bytes:
        """The next request's body; raises IncompleteReadError when there is none."""
        start = await self.reader.readuntil(b"\r\n\r\n")
        length = next(
            (
                int(line.partition(b":")[2])
                for line in start.split(b"\r\n")
                if line.startswith(b"content-length")
            ),
            0,
        )
        return await self.reader.readexactly(length)

    async def say(self, *parts: bytes) -> None:
        """Each part is on its way before the next is written."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def answer(self, body: bytes = b"{}", more: bytes = b"") -> None:
        await self.say(JSON_HEAD + more + b"content-length: %d\r\n\r\n" % len(body) + body)

    def reset(self) -> None:
        """Not closed but broken: the other side gets an error and not an end."""
        bound: socket.socket = self.writer.get_extra_info("socket")
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Until the client has closed."""
        while await self.reader.read(65536):
            pass


Serve = Callable[[Visitor], Awaitable[None]]


class Raw:
    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.visitors: list[Visitor] = []
        self.over = 0
        """How many connections have ended."""
        self.left = asyncio.Event()
        """Set when a connection is over on our side too."""

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitor = Visitor(len(self.visitors), reader, writer)
        self.visitors.append(visitor)
        try:
            await self._serve(visitor)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self.over += 1
            self.left.set()

    @asynccontextmanager
    async def open(self, **options: Any) -> AsyncIterator[Address]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, **options)
        scheme = "https" if options.get("ssl") else "http"
        try:
            yield address(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/place")
        finally:
            server.close()
            for visitor in self.visitors:
                visitor.writer.close()
            await server.wait_closed()


@asynccontextmanager
async def pooled(there: Address, **options: Any) -> AsyncIterator["Client"]:
    here = f"http://{there.host}:{there.port}"
    pool = Pool(there, Guard(Rules(written=(here,))), **options)
    try:
        yield Client(pool, there)
    finally:
        await pool.close()


class Client:
    def __init__(self, pool: Pool, there: Address) -> None:
        self.pool, self.there = pool, there

    async def post(self, body: bytes = b"ask") -> Response:
        async with asyncio.timeout(SOON_S):
            return await self.pool.request(request(head("POST", self.there, {}), body))

    async def get(self) -> Response:
        async with asyncio.timeout(SOON_S):
            return await self.pool.harmless(request(head("GET", self.there, {}), None))


@asynccontextmanager
async def facing(serve: Serve) -> AsyncIterator[tuple[Client, Raw]]:
    raw = Raw(serve)
    async with raw.open() as there, pooled(there) as client:
        yield client, raw


async def read(response: Response) -> bytes:
    """All of a body, piece by piece."""
    async with asyncio.timeout(SOON_S):
        return b"".join([chunk async for chunk in response.chunks()])
