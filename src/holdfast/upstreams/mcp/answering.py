"""What does an HTTP response answer to the request it belongs to?

It is JSON, or a stream of events that holds the answer after whatever else belongs to the request.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from holdfast.upstreams.http.errors import Broken
from holdfast.upstreams.http.response import JSON, Response
from holdfast.upstreams.mcp import wire
from holdfast.upstreams.mcp.errors import Garbage, Lost, Rejected
from holdfast.upstreams.mcp.sse import Event, Events
from holdfast.upstreams.mcp.waste import Waste

OnMessage = Callable[[dict[str, Any]], Awaitable[None]]


class Interrupted(Lost):
    """The stream ended before the answer; `last_id` says where it could be taken up again."""

    def __init__(self, last_id: str | None, retry_ms: int | None) -> None:
        super().__init__("the stream ended before the answer")
        self.last_id, self.retry_ms = last_id, retry_ms


def plain(response: Response, number: int) -> dict[str, Any] | None:
    """The result for request `number`, where all of it is here and it is nothing but that."""
    raw = response.whole if response.status == 200 and response.content_type == JSON else None
    if raw is None:
        return None
    try:
        message = wire.decoded(raw)
    except ValueError:
        return None
    if type(message) is dict and type(found := message.get("id")) is int and found == number:
        result = message.get("result")
        if type(result) is dict and "error" not in message and "method" not in message:
            return result
    return None


async def answer(response: Response, number: int, on_message: OnMessage) -> dict[str, Any]:
    """The result for request `number`. The response is used up, or closed."""
    try:
        kind = response.content_type
        if kind == "text/event-stream" and response.status == 200:
            return await _streamed(response, number, on_message)
        raw = await _body(response)
    except BaseException:
        response.close()  # at a deadline this is what tells the server to stop
        raise
    if kind != JSON:
        raise _unusable(response)
    return _told(raw, number, response)


def _told(raw: bytes, number: int, response: Response) -> dict[str, Any]:
    try:
        message = wire.decoded(raw)
    except ValueError:
        if response.status >= 300:
            raise _unusable(response) from None
        raise Garbage("the server's answer is not JSON") from None
    mine = _mine(message, number, lenient=response.status >= 400)
    if mine is None:
        if response.status >= 300:
            raise _unusable(response)
        raise Garbage("the server's answer is to another request")
    return wire.outcome(mine, response.status)


def _mine(message: Any, number: int, lenient: bool = False) -> dict[str, Any] | None:
    """The answer to our request; a batch may hold it, and an error may come before its number was read."""
    if isinstance(message, list):
        return next((found for part in message if (found := _mine(part, number)) is not None), None)
    if not isinstance(message, dict) or not wire.is_answer(message):
        return None
    if wire.number_of(message) == number or (lenient and message.get("id") is None and "error" in message):
        return message
    return None


async def _streamed(response: Response, number: int, on_message: OnMessage) -> dict[str, Any]:
    events = Events()
    async for event in read(response, events):
        message = _message(event)
        mine = _mine(message, number)
        if mine is not None:
            response.close()  # a stream has no more use after its answer
            return wire.outcome(mine, response.status)
        for part in message if isinstance(message, list) else [message]:
            if isinstance(part, dict) and isinstance(part.get("method"), str):
                await on_message(part)
    raise Interrupted(events.last_id, events.retry_ms)


def _message(event: Event) -> Any:
    if event.name != "message" or not event.data:
        return None
    try:
        return wire.decoded(event.data)
    except ValueError:
        return None


async def messages(response: Response, events: Events) -> AsyncIterator[dict[str, Any]]:
    """Everything that comes down a stream that answers nothing in particular."""
    async for event in read(response, events):
        message = _message(event)
        for part in message if isinstance(message, list) else [message]:
            if isinstance(part, dict):
                yield part


async def read(response: Response, events: Events) -> AsyncIterator[Event]:
    """The events of a response until it ends or breaks."""
    waste = Waste()
    try:
        async for chunk in response.chunks():
            useless = 0 if events.within else len(chunk)
            for event in events.feed(chunk):
                yield event  # nobody comes back for more after an answer
                useless += len(event.data)
            if useless and (pause := waste.add(useless)):
                await asyncio.sleep(pause)
    except Broken:
        return


async def _body(response: Response) -> bytes:
    """All of it, if it is not too much."""
    too_much = Garbage(f"the server's answer is longer than {wire.ANSWER_BYTES} bytes")
    if (response.content_length or 0) > wire.ANSWER_BYTES:
        raise too_much
    if (whole := response.whole) is not None and len(whole) <= wire.ANSWER_BYTES:
        return whole
    held = bytearray()
    try:
        async for chunk in response.chunks():
            held += chunk
            if len(held) > wire.ANSWER_BYTES:
                raise too_much
    except Broken as error:
        raise Lost(f"the connection broke within the answer: {error}") from None
    return bytes(held)


def _unusable(response: Response) -> Exception:
    if response.status >= 300:
        after = response.header("retry-after") or ""
        wait = int(after) * 1000 if after.isdigit() and len(after) < 7 else None
        return Rejected(response.status, retry_after_ms=wait)
    return Garbage(f"the server answered with {response.content_type!r}, which is neither JSON nor a stream")
