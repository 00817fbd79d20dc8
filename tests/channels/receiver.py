"""A server that takes webhooks, checks their signatures by itself, and answers as the test says."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "whsec_" + base64.b64encode(KEY).decode()


@dataclass(frozen=True)
class Got:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def said(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.body)
        return told

    def signed_by(self, key: bytes) -> bool:
        """As the standard says: base64 of an HMAC-SHA256 over id, time and body; any of several counts."""
        text = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        wanted = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
        return wanted in self.headers["webhook-signature"].split(" ")


class Receiver:
    """Answers what is in `answers`, one after the other, and 200 from then on; None: nothing at all."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.answers: list[tuple[int, dict[str, str]] | None] = []
        self.url = ""
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def events(self) -> list[str]:
        return [one.said["type"] for one in self.got]

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Receiver"]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
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
                await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.got.append(Got(first.split(" ")[1], headers, body))
        answer = self.answers.pop(0) if self.answers else (200, {})
        if answer is None:
            await asyncio.Event().wait()
            return
        status, fields = answer
        told = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {status} Whatever\r\ncontent-length: 0\r\n{told}\r\n".encode())
        await writer.drain()
