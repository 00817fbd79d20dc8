"""How does an answer leave without the SDK, and is its client still there to take it?

One JSON body, as long as there is nothing to say before it. A client that is told something on the way, or
waits long enough for a proxy to lose patience, gets a stream of events instead, as the SDK would give it.

A client that leaves may call again at once, so its leaving must be known at once. A server that can say when
a connection ends is asked to (`LEAVING`); otherwise a task listens, as ASGI has it. Where a request takes
longer than a moment, one listens anyway: to show now and then that we are here.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from starlette.types import Receive, Scope, Send

from holdfast.servers.offers import LEAVING, WHOLE, Leaving, Whole

MOMENT_S = 0.25
"""How often is looked for requests that take long; nobody waits for what they are then shown."""
PING_S = 15.0
"""How often a stream shows that it is alive, and when it begins."""
JSON = (b"content-type", b"application/json")
JSON_LINE = b"%b: %b\r\n" % JSON
NOTHING: Mapping[str, Any] = {}
STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]


class Answer:
    """What one client is told in answer to one request."""

    # What most answers never set.
    left = begun = _streams = _aged = False
    _lock: asyncio.Lock | None = None
    _watching: "asyncio.Task[None] | None" = None

    def __init__(self, scope: Scope, receive: Receive, send: Send, gone: Callable[[], object]) -> None:
        self._receive, self._send = receive, send
        offered = scope.get("extensions") or NOTHING
        self._leaving: Leaving | None = offered.get(LEAVING)
        self._whole: Whole | None = offered.get(WHOLE)
        self.gone = gone
        """What is to happen when the client is seen to leave while it waits."""

    def at_once(self, body: bytes, status: int) -> bool:
        """Give the whole answer without waiting for anything; False where that takes `give`."""
        if self._lock is not None or self.left or self._whole is None:
            return False
        self.begun = self._whole(status, JSON_LINE, body)
        return self.begun

    async def give(self, body: bytes, status: int) -> bool:
        """Send the whole answer; whether there was somebody to take it."""
        if self._lock is not None:
            return await self._end(body, status)
        if not self.left:
            await self._body(body, status)
        return not self.left

    async def tell(self, message: Mapping[str, Any]) -> None:
        """An event before the answer; one that has left is told nothing."""
        async with self._locked():
            if not self.left:
                await self._event(encoded(message))

    def open(self) -> None:
        """From now on the client may leave."""
        if self._leaving is None:
            self._listen()
        else:
            self._leaving(self._leave)

    def watch(self) -> None:
        """To be called every moment while the answer is not given."""
        if self._watching is None and self._aged:
            self._listen()
        self._aged = True

    def close(self) -> None:
        if self._leaving is not None:
            self._leaving(None)
        if self._watching is not None:
            self._watching.cancel()

    def _listen(self) -> None:
        self._locked()
        self._watching = asyncio.get_running_loop().create_task(self._attend())

    def _leave(self) -> None:
        if not self.left:
            self.left = True
            self.gone()

    async def _end(self, body: bytes, status: int) -> bool:
        async with self._locked():  # an event that is being sent is sent first
            self.close()
            if self.left:
                return False
            if self._streams:
                frame = b"event: message\r\ndata: %b\r\n\r\n" % body
                await self._send({"type": "http.response.body", "body": frame, "more_body": False})
            else:
                await self._body(body, status)
            return True

    async def _body(self, body: bytes, status: int) -> None:
        self.begun = True
        if self._whole is not None and self._whole(status, JSON_LINE, body):
            return
        headers = [(b"content-length", b"%d" % len(body)), JSON]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _event(self, data: bytes | None) -> None:
        if not self._streams:
            self.begun = self._streams = True
            await self._send({"type": "http.response.start", "status": 200, "headers": STREAM})
        frame = b": ping\r\n\r\n" if data is None else b"event: message\r\ndata: %b\r\n\r\n" % data
        await self._send({"type": "http.response.body", "body": frame, "more_body": True})

    async def _attend(self) -> None:
        """Until the client leaves; it is told now and then that we are here."""
        hearing = asyncio.ensure_future(self._receive())
        try:
            while True:
                done, _ = await asyncio.wait((hearing,), timeout=PING_S)
                if not done:
                    async with self._locked():
                        await self._event(None)
                elif hearing.result()["type"] == "http.disconnect":
                    break
                else:
                    hearing = asyncio.ensure_future(self._receive())
        finally:
            hearing.cancel()
        self._leave()

    def _locked(self) -> asyncio.Lock:
        """Events are sent one after the other."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        return self._lock


class Room:
    """Requests that wait for their answer; who waits for long is watched."""

    def __init__(self) -> None:
        self._waiting: dict[Answer, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, answer: Answer) -> None:
        self._waiting[answer] = None
        answer.open()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MOMENT_S, self._look)

    def leave(self, answer: Answer) -> None:
        del self._waiting[answer]
        answer.close()

    def _look(self) -> None:
        self._timer = None
        if self._waiting:
            for answer in self._waiting:
                answer.watch()
            self._timer = asyncio.get_running_loop().call_later(MOMENT_S, self._look)


def encoded(message: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(message)
    except TypeError:  # a number or a text of an upstream's that only a more patient writer can write
        return json.dumps(message, default=_parts).encode()


def _parts(value: Any) -> Any:
    if isinstance(value, orjson.Fragment):
        return orjson.loads(orjson.dumps(value))
    raise TypeError(f"'{type(value).__name__}' has no form in JSON")
