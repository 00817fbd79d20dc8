"""How is a server called over the SSE transport of 2024-11-05?

One stream comes down; it names the place to which messages are posted, and carries every answer.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from holdfast.model.errors import NoEffect
from holdfast.upstreams.http.response import Response
from holdfast.upstreams.mcp import negotiate, wire
from holdfast.upstreams.mcp.answering import read
from holdfast.upstreams.mcp.change import Hear
from holdfast.upstreams.mcp.channel import Channel
from holdfast.upstreams.mcp.door import Door, Heading, within
from holdfast.upstreams.mcp.errors import Garbage, Lost, Rejected, Unsent
from holdfast.upstreams.mcp.exchange import Exchange
from holdfast.upstreams.mcp.protocol import Facts
from holdfast.upstreams.mcp.sse import Event, Events

BACKLOG = 1000
"""Messages that may wait to be posted."""


class SseLink:
    """One stream; open it with `open_sse`."""

    facts: Facts

    def __init__(self, door: Door, info: Mapping[str, Any], hear: Hear) -> None:
        self._door, self._info = door, info
        self.channel = Channel(self._queue, hear)
        self.over = self.channel.over
        self.in_flight = self.channel.in_flight
        self._out: asyncio.Queue[tuple[dict[str, Any], Exchange]] = asyncio.Queue(BACKLOG)
        self._place: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task[None]] = []
        self._response: Response | None = None

    @property
    def heard(self) -> int:
        return self.channel.heard

    async def open(self) -> None:
        self._response = response = await self._door.get({"accept": "text/event-stream"})
        if response.status != 200 or response.content_type != "text/event-stream":
            raise Rejected(response.status, ", where a stream was expected")
        self._tasks.append(asyncio.ensure_future(self._read(response)))
        self._tasks.append(asyncio.ensure_future(self._write(await self._place)))
        self.facts = negotiate.initialized(
            await self.channel.request("initialize", negotiate.offer(self._info))
        )
        await self.notify("notifications/initialized", None)

    async def request(
        self, method: str, params: dict[str, Any] | None, exchange: Exchange | None = None
    ) -> dict[str, Any]:
        return await self.channel.request(method, params, exchange)

    async def notify(self, method: str, params: dict[str, Any] | None) -> None:
        self.channel.say(wire.noted(method, params))

    async def close(self) -> str | None:
        self.channel.lose("it was closed")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._response is not None:
            self._response.close()
        self._place.cancel()
        return None

    def _queue(self, message: dict[str, Any], about: Exchange | None) -> None:
        try:
            self._out.put_nowait((message, about or Exchange()))
        except asyncio.QueueFull:
            raise Unsent(f"{BACKLOG} messages wait for it already") from None

    async def _read(self, response: Response) -> None:
        why = "the stream ended"
        try:
            async for event in read(response, Events()):
                self._take(event)
        except Garbage as error:
            why = str(error)
        self.channel.lose(why)
        if not self._place.done():
            self._place.set_exception(Unsent(why))

    def _take(self, event: Event) -> None:
        if event.name == "endpoint" and not self._place.done():
            there = within(self._door.target.url, self._door.url, event.data.decode(errors="replace"))
            if there is not None:
                self._place.set_result(there)
            else:
                self._place.set_exception(Unsent("it wants messages sent to another origin"))
        elif event.name == "message":
            with contextlib.suppress(ValueError):
                self.channel.receive(wire.decoded(event.data))

    async def _write(self, place: str) -> None:
        while True:
            message, about = await self._out.get()
            headers = Heading({"content-type": "application/json", **(about.headers or {})})
            try:
                response = await self._door.post(
                    wire.encoded(message), headers, url=place, opening=about.opening
                )
            except NoEffect as error:  # this one is not let in; others may be
                self.channel.fail(message.get("id"), error)
                continue
            except (Unsent, Lost, Rejected) as error:
                self.channel.fail(message.get("id"), error)
                self.channel.lose(str(error))
                return
            response.close()
            if response.status >= 300:
                self.channel.fail(message.get("id"), Rejected(response.status))


async def open_sse(door: Door, info: Mapping[str, Any], hear: Hear) -> SseLink:
    link = SseLink(door, info, hear)
    try:
        await link.open()
    except BaseException:
        await link.close()
        raise
    return link
