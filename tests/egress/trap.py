"""An upstream that a gateway trusts enough to ask, and that answers with the address of somebody else."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

REASON = "HTTP/1.1 {status} Whatever\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n"


@dataclass(frozen=True)
class Lure:
    """One answer."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    location: str | None = None

    def encoded(self) -> bytes:
        head = REASON.format(status=self.status, kind=self.kind, length=len(self.body))
        moved = "" if self.location is None else f"location: {self.location}\r\n"
        return (head + moved + "\r\n").encode() + self.body


def document(**members: Any) -> Lure:
    return Lure(body=json.dumps(members).encode())


Serve = Callable[[str, str], Lure]
"""By verb and path."""


class Trap:
    def __init__(self) -> None:
        self.serve: Serve = lambda verb, path: Lure(404)
        self.asked: list[str] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self.origin = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Trap"]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                writer.close()
            await server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                lengths = [int(line[15:]) for line in head if line.lower().startswith("content-length:")]
                await reader.readexactly(sum(lengths))
                verb, path, _ = head[0].split(" ")
                self.asked.append(f"{verb} {path}")
                writer.write(self.serve(verb, path).encoded())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
