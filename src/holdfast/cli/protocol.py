"""How do answers leave through a socket, and who hears that a client left?

uvicorn writes the head of an answer and its body one after the other, and uvloop hands each to the kernel at
once. A trip into the kernel costs as much as several gates, so a head whose body is about to follow waits for
it. ASGI tells of a connection's end only to who listens, which is a task per request; here a function can be
left to be called. Everything else is uvicorn's.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.servers.mcp.answering import LEAVING

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_HEAD = b"HTTP/"
_LENGTH = b"\r\ncontent-length: "


class Joined:
    """A connection as the answer to one request sees it."""

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def write(self, data: bytes) -> None:
        if not self._head and data.startswith(_HEAD) and _LENGTH in data:
            self._head = data  # its length was given, so all of its body comes next
            return
        self._transport.write(self._head + data)
        self._head = b""

    def close(self) -> None:
        if self._head:
            self.write(b"")
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)


class Protocol(HttpToolsProtocol):
    _left: Callable[[], None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        left, self._left = self._left, None
        if left is not None:
            left()

    def _tell(self, left: Callable[[], None] | None) -> None:
        """Who is to be told when the client of the request under way leaves."""
        self._left = left

    def _start_asgi_task(self, cycle: "RequestResponseCycle", app: Any) -> None:
        if cycle.scope["method"] != "HEAD":  # whose length says nothing of what comes
            cycle.transport = Joined(self.transport)  # type: ignore[assignment]
        cycle.scope["extensions"] = {LEAVING: self._tell}  # type: ignore[dict-item]
        super()._start_asgi_task(cycle, app)
