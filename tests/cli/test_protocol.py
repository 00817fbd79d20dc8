"""Do answers arrive whole, whoever asks and however they are made?"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import uvicorn

from holdfast.cli.joined import Joined
from holdfast.cli.patience import Patience
from holdfast.cli.protocol import Protocol
from holdfast.cli.serving import Server
from holdfast.model import defaults
from tests.requirements import requirement

Exchange = Callable[[bytes], Awaitable[bytes]]
KNOWN = [(b"content-type", b"text/plain"), (b"content-length", b"5")]
KEEP = b"Host: x\r\n\r\n"
CLOSE = b"Host: x\r\nConnection: close\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    match scope["path"]:
        case "/known":
            await send({"type": "http.response.start", "status": 200, "headers": KNOWN})
            await send({"type": "http.response.body", "body": b"hello"})
        case "/in-pieces":
            await send({"type": "http.response.start", "status": 200, "headers": KNOWN})
            await send({"type": "http.response.body", "body": b"he", "more_body": True})
            await send({"type": "http.response.body", "body": b"llo"})
        case "/stream":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await scope["state"]["client has the head"].wait()
            await send({"type": "http.response.body", "body": b"hello"})
        case "/nothing":
            await send({"type": "http.response.start", "status": 204, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body"})
        case _:
            await send({"type": "http.response.start", "status": 200, "headers": KNOWN})
            raise RuntimeError("broken in the middle")


@asynccontextmanager
async def served(state: dict[str, Any], served: Any = app) -> AsyncIterator[int]:
    config = uvicorn.Config(served, http=Protocol, lifespan="off", log_config=None, access_log=False, port=0)
    server = uvicorn.Server(config)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    server.lifespan.state = state
    await server.startup()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        await server.shutdown()


@pytest.mark.parametrize(
    ("request_line", "body"),
    [
        (b"GET /known", b"hello"),
        (b"POST /known", b"hello"),
        (b"HEAD /known", b""),
        (b"GET /in-pieces", b"hello"),
        (b"GET /nothing", b""),
        (b"GET /broken", b""),
    ],
)
async def test_an_answer_arrives_whole(request_line: bytes, body: bytes) -> None:
    async with served({}) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request_line + b" HTTP/1.1\r\n" + CLOSE)
        head, _, rest = (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n\r\n")
        writer.close()
    assert head.startswith(b"HTTP/1.1 20")
    assert rest == body


async def test_one_connection_serves_many_requests() -> None:
    async with served({}) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for path in (b"/known", b"/in-pieces", b"/known"):
            writer.write(b"GET " + path + b" HTTP/1.1\r\n" + KEEP)
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(5) == b"hello"
        writer.close()


async def test_the_head_of_a_stream_does_not_wait_for_its_first_event() -> None:
    had = asyncio.Event()
    async with served({"client has the head": had}) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /stream HTTP/1.1\r\n" + CLOSE)
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        had.set()
        assert b"hello" in await reader.read()
        writer.close()


@requirement("PPL-4")
@pytest.mark.parametrize("before", [0, 1], ids=["a new connection", "one that was used"])
@pytest.mark.parametrize("path", [b"GET /known", b"POST /v1/calls"], ids=["any", "a plain call"])
async def test_a_request_on_its_way_when_the_server_went_is_answered(before: int, path: bytes) -> None:
    async def calls(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "path": "/known"}, receive, send)

    async with asyncio.timeout(20), served({}, calls) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(before):
            writer.write(b"GET /known HTTP/1.1\r\n" + KEEP)
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(5)
        writer.write(path + b" HTTP/1.1\r\nContent-Length: 0\r\n" + KEEP)
        # and the server is told to go before it has looked
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"hello")
    assert b"connection: close" in answer.lower()
    writer.close()


async def test_a_connection_on_which_nothing_comes_is_closed_with_the_server() -> None:
    async with asyncio.timeout(20), served({}) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert await reader.read() == b""
    writer.close()


class Kernel(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.trips: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.trips.append(bytes(data))

    def close(self) -> None:
        self.closed = True


def test_head_and_body_are_one_trip() -> None:
    kernel = Kernel()
    joined = Joined(kernel)
    joined.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
    joined.write(b"hello")
    assert kernel.trips == [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"]


def test_a_head_whose_body_never_comes_is_sent_before_the_end() -> None:
    kernel = Kernel()
    joined = Joined(kernel)
    joined.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
    joined.close()
    assert (len(kernel.trips), kernel.closed) == (1, True)


async def test_all_connections_of_a_server_know_of_each_other_however_they_are_taken() -> None:
    server = Server(cast(Any, app), cast(Any, None), Patience())
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    taken = cast(Protocol, server._connected())  # as a worker among others does
    accepted = cast(Any, server.config.http_protocol_class)(server.config, server.server_state, {})
    assert taken.linger is accepted.linger
    assert taken._heads is accepted._heads
    assert taken.timeout_keep_alive == accepted.timeout_keep_alive == defaults.KEEP_ALIVE_S
