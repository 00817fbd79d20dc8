"""Is a plain request answered as any other, for less, and does everything unusual go uvicorn's own way?"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from holdfast.cli.protocol import Protocol
from holdfast.cli.turn import Turn
from holdfast.servers.offers import LEAVING, WHOLE
from tests.cli.test_protocol import Kernel, served

KEPT = b"Host: x\r\n"
POST = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
HEAD = POST[:-2]
LINES = b"content-type: text/plain\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Says what it was sent, and whether it could say so at once."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    whole = scope["extensions"].get(WHOLE)
    text = b"%s %s %s" % (b"in pieces" if whole is None else b"whole", body, scope["client"][0].encode())
    if whole is None or not whole(200, LINES, text):
        head = [(b"content-length", b"%d" % len(text))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": text})


async def asked(port: int, request: bytes) -> bytes:
    """Everything that is answered on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    said = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return said


def closing(request: bytes) -> bytes:
    return request.replace(KEPT, KEPT + b"Connection: close\r\n", 1)


async def test_a_plain_request_is_answered_at_once() -> None:
    async with served({}, app) as port:
        head, _, body = (await asked(port, closing(POST))).partition(b"\r\n\r\n")
    assert body == b"whole hi 127.0.0.1"
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\ncontent-type: text/plain\r\ncontent-length: 18\r\nconnection: close" in head


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (POST.replace(b"/mcp", b"/elsewhere"), b"in pieces hi 127.0.0.1"),
        (POST.replace(b"/mcp", b"/mcp?a=b"), b"in pieces hi 127.0.0.1"),
        (POST.replace(b"POST", b"PUT"), b"in pieces hi 127.0.0.1"),
        (POST.replace(b"HTTP/1.1", b"HTTP/1.0"), b"in pieces hi 127.0.0.1"),
        (POST.replace(KEPT, KEPT + b"X-Forwarded-For: 10.0.0.1\r\n"), b"in pieces hi 10.0.0.1"),
        (POST.replace(KEPT, KEPT + b"X-Forwarded-Proto: https\r\n"), b"in pieces hi 127.0.0.1"),
        (POST.replace(KEPT, KEPT + b"Upgrade: h2c\r\n"), b"in pieces hi 127.0.0.1"),
        (
            b"POST /mcp HTTP/1.1\r\n" + KEPT + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            b"in pieces hi 127.0.0.1",
        ),
    ],
)
async def test_whatever_is_unusual_is_uvicorns(request_: bytes, said: bytes) -> None:
    async with served({}, app) as port:
        assert (await asked(port, closing(request_))).endswith(b"\r\n\r\n" + said)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ((HEAD, b"hi"), b"in pieces hi 127.0.0.1"),
        ((HEAD + b"h", b"i"), b"in pieces hi 127.0.0.1"),
        ((HEAD[:30], HEAD[30:] + b"hi"), b"whole hi 127.0.0.1"),
    ],
)
async def test_a_request_that_comes_in_several_reads_is_waited_for(
    read: tuple[bytes, ...], said: bytes
) -> None:
    protocol, wire = connected(asyncio.get_running_loop())
    for part in read:
        protocol.data_received(part)
    await asyncio.wait_for(asyncio.gather(*protocol.tasks), 20)
    protocol.connection_lost(None)
    assert b"".join(wire.trips).endswith(b"\r\n\r\n" + said)


async def test_a_client_that_asks_whether_to_go_on_is_told_to() -> None:
    request = closing(POST).replace(KEPT, KEPT + b"Expect: 100-continue\r\n")
    async with served({}, app) as port:
        said = await asked(port, request)
    assert said.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert said.endswith(b"in pieces hi 127.0.0.1")


async def test_requests_on_top_of_one_another_are_answered_in_their_order() -> None:
    first, second, third = (POST.replace(b"hi", text) for text in (b"h1", b"h2", b"h3"))
    async with served({}, app) as port:
        said = await asked(port, first + second + closing(third))
    assert 0 < said.find(b"whole h1") < said.find(b"in pieces h2") < said.find(b"in pieces h3")


async def test_one_connection_takes_one_turn_after_the_other() -> None:
    async with served({}, app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for text in (b"h1", b"h2", b"h3"):
            writer.write(POST.replace(b"hi", text))
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(18) == b"whole " + text + b" 127.0.0.1"
        writer.close()


async def raising(scope: Any, receive: Any, send: Any) -> None:
    raise RuntimeError("broken before it answered")


async def silent(scope: Any, receive: Any, send: Any) -> None:
    pass


@pytest.mark.parametrize("broken", [raising, silent])
async def test_a_turn_that_breaks_is_told_so(broken: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with served({}, broken) as port:
        said = await asked(port, POST)
    assert said.startswith(b"HTTP/1.1 500 ")
    assert said.endswith(b"Internal Server Error")
    assert "ASGI" in caplog.text


async def test_a_turn_can_be_answered_in_pieces() -> None:
    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"he", "more_body": True})
        await send({"type": "http.response.body", "body": b"llo"})

    async with served({}, stream) as port:
        said = await asked(port, closing(POST))
    assert said.endswith(b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")


async def test_who_waits_for_a_client_to_leave_hears_of_it_both_ways() -> None:
    begun, left, heard = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def waiting(scope: Any, receive: Any, send: Any) -> None:
        scope["extensions"][LEAVING](left.set)
        await receive()
        begun.set()
        assert (await receive())["type"] == "http.disconnect"
        assert scope["extensions"][WHOLE](200, LINES, b"to nobody")
        heard.set()

    async with served({}, waiting) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST)
        await asyncio.wait_for(begun.wait(), 20)
        writer.close()
        await asyncio.wait_for(asyncio.gather(left.wait(), heard.wait()), 20)


async def test_a_server_that_stops_lets_a_turn_finish_and_closes_what_rests() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await go_on.wait()
        await app(scope, receive, send)

    async with served({}, slow) as port:
        resting, one = await asyncio.open_connection("127.0.0.1", port)
        working, two = await asyncio.open_connection("127.0.0.1", port)
        two.write(POST)
        await asyncio.wait_for(begun.wait(), 20)
        asyncio.get_running_loop().call_later(0, _once_closed, resting, go_on)
    assert await resting.read() == b""
    said = await working.read()
    assert b"\r\nconnection: close\r\n" in said
    assert said.endswith(b"whole hi 127.0.0.1")
    for writer in (one, two):
        writer.close()


def _once_closed(resting: asyncio.StreamReader, go_on: asyncio.Event) -> None:
    """The server has begun to stop when a connection that rests is at its end."""
    if resting.at_eof():
        go_on.set()
    else:
        asyncio.get_running_loop().call_later(0.001, _once_closed, resting, go_on)


class Hours:
    """An event loop whose time passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, do: Callable[[], None]) -> None:
        self.timers.append((self.now + seconds, do))

    def pass_to(self, now: float) -> None:
        self.now = now
        due = [do for at, do in self.timers if at <= now]
        self.timers = [(at, do) for at, do in self.timers if at > now]
        for do in due:
            do()


class Wire(Kernel):
    def is_closing(self) -> bool:
        return self.closed

    plug: socket.socket | None = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 1), "socket": self.plug}.get(name, default)


def connected(loop: Any) -> tuple[Protocol, Wire]:
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_keep_alive=5)
    protocol, wire = Protocol(config, ServerState(), {}, _loop=loop), Wire()
    protocol.connection_made(wire)
    return protocol, wire


async def test_a_connection_is_closed_when_it_has_rested_for_its_time() -> None:
    hours = Hours()
    protocol, wire = connected(hours)
    protocol.on_response_complete()
    hours.now = 3.0
    protocol.data_received(b"GET")
    protocol.on_response_complete()
    hours.pass_to(5.0)
    hours.pass_to(7.9)
    assert not wire.closed
    hours.pass_to(8.0)
    assert wire.closed


async def test_a_request_that_came_before_the_time_was_over_is_read_though_nobody_had_time_for_it() -> None:
    hours = Hours()
    protocol, wire = connected(hours)
    protocol.on_response_complete()
    wire.plug, client = socket.socketpair()
    with wire.plug, client:
        client.send(b"GET")
        hours.pass_to(5.0)
        assert not wire.closed
        protocol.data_received(wire.plug.recv(10))
        protocol.on_response_complete()
        hours.pass_to(9.9)
        assert not wire.closed
        hours.pass_to(10.0)
    assert wire.closed


async def test_a_connection_that_is_used_is_not_closed() -> None:
    hours = Hours()
    protocol, wire = connected(hours)
    protocol.on_response_complete()
    protocol.data_received(b"POST /mcp HT")
    hours.pass_to(100.0)
    assert not wire.closed
    protocol.on_response_complete()
    hours.pass_to(105.0)
    assert wire.closed


async def test_a_client_that_does_not_read_is_not_written_to_at_once() -> None:
    protocol, wire = connected(Hours())
    turn = protocol._turn = Turn(protocol, {}, b"", True)
    protocol.pause_writing()
    assert not protocol._whole(200, LINES, b"body")
    protocol.resume_writing()
    assert protocol._whole(200, LINES, b"body")
    assert not protocol._whole(200, LINES, b"again")
    assert turn.response_complete
    assert wire.trips == [b"HTTP/1.1 200 OK\r\n" + LINES + b"content-length: 4\r\n\r\nbody"]


async def test_who_asks_too_late_hears_that_the_client_has_left() -> None:
    protocol, _ = connected(Hours())
    protocol.connection_lost(None)
    told: list[str] = []
    protocol._tell(lambda: told.append("left"))
    assert told == ["left"]
