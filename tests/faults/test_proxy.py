"""Does the wire break exactly where it is told to?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.faults.proxy import Address, Cut, Lines, Proxy, Side


class Echo:
    """Answers every line, and remembers what it got."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.heard = asyncio.Condition()
        self.serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)
        try:
            while line := await reader.readline():
                async with self.heard:
                    self.got.append(line)
                    self.heard.notify_all()
                writer.write(line)
        except ConnectionError:
            pass
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    async def has(self, count: int) -> None:
        async with self.heard:
            await self.heard.wait_for(lambda: len(self.got) >= count)


@asynccontextmanager
async def echo(path: Path | None = None) -> AsyncIterator[tuple[Echo, Address]]:
    made = Echo()
    if path is None:
        server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
        address: Address = ("127.0.0.1", server.sockets[0].getsockname()[1])
    else:
        server, address = await asyncio.start_unix_server(made.serve, path), path
    try:
        yield made, address
    finally:
        server.close()
        await asyncio.gather(*made.serving, return_exceptions=True)


async def say(proxy: Proxy, *words: bytes) -> list[bytes]:
    """What comes back for each line on one connection, until it breaks."""
    answers: list[bytes] = []
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        try:
            for word in words:
                writer.write(word + b"\n")
                answer = await reader.readline()
                if not answer.endswith(b"\n"):
                    break
                answers.append(answer.strip())
        finally:
            writer.close()
            await writer.wait_closed()
    except ConnectionError:
        pass
    return answers


async def test_everything_arrives_while_nothing_is_cut() -> None:
    async with echo() as (server, address), Proxy(address, Lines).open() as proxy:
        assert await say(proxy, b"a", b"b", b"c") == [b"a", b"b", b"c"]
        assert server.got == [b"a\n", b"b\n", b"c\n"]
        assert (proxy.seen["client"], proxy.seen["server"]) == (3, 3)


@pytest.mark.parametrize(
    ("side", "after", "answers", "arrived"),
    [("client", False, 1, 1), ("client", True, 1, 2), ("server", False, 1, 2), ("server", True, 2, 2)],
)
async def test_the_second_message_is_the_last(side: Side, after: bool, answers: int, arrived: int) -> None:
    async with echo() as (server, address), Proxy(address, Lines).open() as proxy:
        proxy.cut = Cut(2, side, after)
        assert len(await say(proxy, b"a", b"b", b"c")) == answers
        await server.has(arrived)
        assert proxy.fired
        assert len(server.got) == arrived
        assert await say(proxy, b"d") == [b"d"]  # broken once, and whole again


async def test_messages_are_counted_over_all_connections() -> None:
    async with echo() as (server, address), Proxy(address, Lines).open() as proxy:
        proxy.cut = Cut(3, "client")
        assert [await say(proxy, word) for word in (b"a", b"b", b"c", b"d")] == [[b"a"], [b"b"], [], [b"d"]]
        assert server.got == [b"a\n", b"b\n", b"d\n"]


async def test_one_connection_is_refused() -> None:
    async with echo() as (server, address), Proxy(address, Lines).open() as proxy:
        proxy.cut = Cut(2, "connection")
        assert [await say(proxy, word) for word in (b"a", b"b", b"c")] == [[b"a"], [], [b"c"]]
        assert server.got == [b"a\n", b"c\n"]


async def test_nobody_gets_in_while_it_refuses() -> None:
    async with echo() as (_, address), Proxy(address, Lines).open() as proxy:
        proxy.refusing = True
        assert await say(proxy, b"a") == []
        proxy.refusing = False
        assert await say(proxy, b"a") == [b"a"]


async def test_a_server_that_is_not_there_is_a_connection_that_breaks() -> None:
    async with echo() as (_, address):
        gone = address
    async with Proxy(gone, Lines).open() as proxy:
        assert await say(proxy, b"a") == []


async def test_every_connection_can_be_cut_at_once() -> None:
    async with echo() as (_, address), Proxy(address, Lines).open() as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"a\n")
        assert await reader.readline() == b"a\n"
        proxy.cut_all()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_it_stands_between_unix_sockets_too(tmp_path: Path) -> None:
    async with (
        echo(tmp_path / "server") as (_, address),
        Proxy(address, Lines).open(tmp_path / "proxy"),
    ):
        reader, writer = await asyncio.open_unix_connection(tmp_path / "proxy")
        writer.write(b"a\n")
        assert await reader.readline() == b"a\n"
        writer.close()
        await writer.wait_closed()
