"""What has come of an answer so far, and how is the rest of it read?

The head is there when somebody gets to see a response; mostly the whole body is, too.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from holdfast.upstreams.http.encoding import decoder
from holdfast.upstreams.http.errors import Broken

if TYPE_CHECKING:
    from holdfast.upstreams.http.connection import Connection

JSON = "application/json"
HELD_BYTES = 256 * 1024
"""Of a body nobody has read yet; then the server has to wait."""


class Response:
    __slots__ = (
        "_connection",
        "_error",
        "_held",
        "_parts",
        "_reader",
        "content_type",
        "ended",
        "fields",
        "plain",
        "status",
    )

    def __init__(self, connection: "Connection", status: int, fields: dict[bytes, bytes]) -> None:
        self._connection, self.status, self.fields = connection, status, fields
        self._parts: list[bytes] = []
        self._held = 0
        self._error: Broken | None = None
        self._reader: asyncio.Future[None] | None = None
        self.ended = False
        kind = fields.get(b"content-type", b"")
        self.content_type = JSON if kind == b"application/json" else _kind(kind)
        self.plain = b"content-encoding" not in fields or fields[b"content-encoding"].lower() == b"identity"
        """The body is as it came."""

    def header(self, name: str) -> str | None:
        """The value of the first header of this name, which is in lower case."""
        value = self.fields.get(name.encode())
        return None if value is None else value.decode("utf-8", "surrogateescape")

    @property
    def content_length(self) -> int | None:
        told = self.header("content-length")
        return int(told) if told is not None and told.isdigit() else None

    @property
    def until_eof(self) -> bool:
        """Nothing says where the body ends but the end of the connection."""
        return self.header("content-length") is None and self.header("transfer-encoding") is None

    @property
    def whole(self) -> bytes | None:
        """The body, if all of it has come and nobody has read any of it."""
        if not self.ended or self._error is not None or not self.plain:
            return None
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def chunks(self) -> AsyncIterator[bytes]:
        """The body piece by piece, as it comes; raises Broken where it ends too early."""
        return _Chunks(self) if self.plain else self._unfolded()

    async def _unfolded(self) -> AsyncIterator[bytes]:
        decode = decoder(self.header("content-encoding") or "")
        while (part := await self.part()) is not None:
            for piece in decode.feed(part):
                yield piece
        decode.end()

    async def part(self) -> bytes | None:
        """What has come since, or comes next; None at the end."""
        while not self._parts:
            if self._error is not None:
                raise self._error
            if self.ended:
                return None
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        data, self._parts, self._held = b"".join(self._parts), [], 0
        self._connection.go_on(self)
        return data

    def close(self) -> None:
        """Nobody will read the rest: the server is told so by the end of the connection."""
        if not self.ended:
            self._connection.abort()

    # what the connection does

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self._held += len(part)

    @property
    def full(self) -> bool:
        return self._held > HELD_BYTES

    def end(self, error: Broken | None = None) -> None:
        self.ended, self._error = True, error
        self.wake()

    def wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class _Chunks:
    """No generator: whoever stops in the middle leaves nothing behind that has to be ended."""

    __slots__ = ("_response",)

    def __init__(self, response: Response) -> None:
        self._response = response

    def __aiter__(self) -> "_Chunks":
        return self

    async def __anext__(self) -> bytes:
        part = await self._response.part()
        if part is None:
            raise StopAsyncIteration
        return part


def _kind(value: bytes) -> str:
    """Without parameters; what has no form of a type at all is not made into one."""
    kind = value.partition(b";")[0].strip().lower().decode("ascii", "replace")
    return kind if kind.count("/") == 1 else "application/octet-stream"
