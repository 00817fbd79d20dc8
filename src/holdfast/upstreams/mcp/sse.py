"""Which events does a stream of bytes carry?

The text/event-stream format of the HTML standard, fed piece by piece, with a limit on one event.
"""

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.upstreams.mcp.errors import Garbage
from holdfast.upstreams.mcp.wire import ANSWER_BYTES


class Event(NamedTuple):
    name: str
    data: bytes


class Events:
    def __init__(self, most: int = ANSWER_BYTES) -> None:
        self._most = most
        self._rest = bytearray()
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self.last_id: str | None = None
        """Where the stream can be taken up again."""
        self.retry_ms: int | None = None

    @property
    def within(self) -> bool:
        """Whether an event has begun and not ended."""
        return bool(self._rest or self._data)

    def feed(self, chunk: bytes) -> Iterator[Event]:
        chunk = self._unified(chunk)
        self._rest += chunk
        if b"\n" in chunk:
            *lines, rest = self._rest.split(b"\n")
            self._rest = rest
            for line in lines:
                event = self._line(bytes(line))
                if event is not None:
                    yield event
        if len(self._rest) + self._size > self._most:
            raise Garbage(f"the server sent an event of more than {self._most} bytes")

    def _unified(self, chunk: bytes) -> bytes:
        """Lines end in CR, LF or both, and both may be split between two chunks."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk if b"\r" not in chunk else chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _line(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
        elif field == b"event":
            self._name = value.decode(errors="replace")
        elif field == b"id" and b"\0" not in value:
            self.last_id = value.decode(errors="replace")
        elif field == b"retry" and value.isdigit() and len(value) < 9:
            self.retry_ms = int(value)
        return None

    def _dispatch(self) -> Event | None:
        event = Event(self._name or "message", b"\n".join(self._data)) if self._data else None
        self._name, self._data, self._size = "", [], 0
        return event
