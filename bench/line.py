"""How is one HTTP request after the other sent down a connection, as cheaply as Python can?"""

import asyncio
from typing import Any

import httptools


class Line(asyncio.Protocol):
    """One connection: a request is written, the answer's body is what `ask` returns."""

    def __init__(self) -> None:
        self._parser: Any = None
        self._waiting: asyncio.Future[bytes] | None = None
        self._body = bytearray()
        self.session = ""
        self.status = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionError("the connection was closed before the answer came"))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"mcp-session-id":
            self.session = value.decode()

    def on_body(self, part: bytes) -> None:
        self._body += part

    def on_message_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(bytes(self._body))

    @property
    def closed(self) -> bool:
        return bool(self._transport.is_closing())

    def close(self) -> None:
        self._transport.close()

    def ask(self, head: bytes, body: bytes) -> asyncio.Future[bytes]:
        self._waiting = asyncio.get_running_loop().create_future()
        self._body.clear()
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(head + b"%d\r\n\r\n" % len(body) + body)
        return self._waiting
