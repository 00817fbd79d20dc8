"""A wire that breaks where a test says: between anybody and a server, at the Nth message of either side.

Messages are counted over all connections of one proxy. A cut before a message means that nobody ever gets
it; a cut after it means that the other side gets it, acts on it, and its answer reaches nobody. Whoever is
cut off sees its connection end.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

Side = Literal["client", "server"]
Address = tuple[str, int] | Path
"""A host and a port, or a Unix socket."""


class Splitter(Protocol):
    """Makes messages of the bytes of one side of one connection."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...


class Chunks:
    """Whatever arrives at once is a message."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data


class Lines:
    """Messages that end with a line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            yield line + b"\n"


Split = Callable[[], Splitter]


@dataclass(frozen=True)
class Cut:
    number: int
    """Which message, from 1."""
    side: Side | Literal["connection"]
    """Whose messages are counted; or connections, of which one is refused."""
    after: bool = False
    """The message still arrives."""


@dataclass(eq=False)
class _Connection:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter

    def abort(self) -> None:
        for writer in (self.client, self.server):
            writer.transport.abort()


class Proxy:
    """Between clients and the server at `target`; `cut` may be set at any time and is over once `fired`."""

    def __init__(self, target: Address, split: Split = Chunks) -> None:
        self.target = target
        self.cut: Cut | None = None
        self.fired = False
        self.refusing = False
        """New connections are closed at once."""
        self.delay_s = 0.0
        """How long each message is under way."""
        self.seen: Counter[str] = Counter()
        self._split = split
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def broke(self) -> bool:
        return self.fired

    def cut_all(self) -> None:
        """Every connection there is now breaks."""
        for connection in list(self._connections):
            connection.abort()

    @asynccontextmanager
    async def open(self, listen: Path | None = None) -> AsyncIterator["Proxy"]:
        """At a free port of this machine, or at a Unix socket."""
        if listen is None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
            self.port = server.sockets[0].getsockname()[1]
        else:
            server = await asyncio.start_unix_server(self._serve, listen, backlog=1024)
        try:
            yield self
        finally:
            server.close()
            self.cut_all()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    @contextmanager
    def apart(self) -> Iterator["Proxy"]:
        """In a thread of its own, for clients that do not let the event loop turn while they wait."""
        opened, close = Future[asyncio.AbstractEventLoop](), asyncio.Event()

        async def stay_open() -> None:
            async with self.open():
                opened.set_result(asyncio.get_running_loop())
                await close.wait()

        thread = threading.Thread(target=lambda: asyncio.run(stay_open()), name="proxy")
        thread.start()
        loop = opened.result()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(close.set)
            thread.join()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._breaks("connection") or self.refusing:
            writer.transport.abort()
            return
        try:
            answers, server = await self._connect()
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(writer, server)
        self._connections.add(connection)
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(reader, server, "client"))
                pumps.create_task(self._pump(answers, writer, "server"))
        except* (OSError, _Broken):
            connection.abort()
        finally:
            self._connections.discard(connection)
            writer.close()
            server.close()
            await asyncio.gather(writer.wait_closed(), server.wait_closed(), return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.target, Path):
            return await asyncio.open_unix_connection(self.target)
        return await asyncio.open_connection(*self.target)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, side: Side) -> None:
        splitter = self._split()
        while data := await reader.read(65536):
            for message in splitter.feed(data):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)  # the delay is what was asked for
                if self._breaks(side):
                    await self._break(message, writer, side)
                writer.write(message)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    def _breaks(self, side: str) -> bool:
        self.seen[side] += 1
        cut = self.cut
        if cut is None or self.fired or cut.side != side or self.seen[side] < cut.number:
            return False
        self.fired = True
        return True

    async def _break(self, message: bytes, writer: asyncio.StreamWriter, side: Side) -> None:
        assert self.cut is not None
        if self.cut.after:
            writer.write(message)
            await writer.drain()
            if side == "client":
                await self._let_it_act(writer)
        raise _Broken

    async def _let_it_act(self, writer: asyncio.StreamWriter) -> None:
        """The client is gone; the server reads what it was sent, acts, and answers nobody."""
        [connection] = [one for one in self._connections if one.server is writer]
        connection.client.transport.abort()
        writer.write_eof()
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


class _Broken(Exception):
    """The wire broke here."""
