"""How do the head of an answer and its body leave in one write?

uvicorn writes one after the other, and uvloop hands each to the kernel at once. A trip into the kernel costs
as much as several gates, so a head whose body is about to follow waits for it.
"""

import asyncio
from typing import Any

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
