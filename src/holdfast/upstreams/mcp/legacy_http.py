"""How is a server of the handshake era called over streamable HTTP?

A session begins with `initialize`. Each request is a post, answered by JSON or by a stream on which the
server may ask and tell what belongs to the request; what belongs to none comes on a stream of its own.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Coroutine, Mapping
from itertools import count
from typing import Any

from holdfast.model import defaults
from holdfast.model.errors import NoEffect
from holdfast.model.timeout import timeout
from holdfast.upstreams.http.response import Response
from holdfast.upstreams.mcp import negotiate, relay, wire
from holdfast.upstreams.mcp.answering import Interrupted, answer, messages, plain
from holdfast.upstreams.mcp.change import Hear, change
from holdfast.upstreams.mcp.door import Door, Heading
from holdfast.upstreams.mcp.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Lost,
    Refused,
    Rejected,
    Unsent,
)
from holdfast.upstreams.mcp.exchange import Exchange
from holdfast.upstreams.mcp.link import Ending
from holdfast.upstreams.mcp.protocol import Facts
from holdfast.upstreams.mcp.sse import Events
from holdfast.upstreams.secrets.opening import Opening

log = logging.getLogger(__name__)

RESUMES = 3
"""How often in a row a stream that ended early is taken up again in vain."""
RESUME_S = 1.0
LONGEST_RESUME_S = 30.0
BYE_S = 2.0


class LegacyHttp:
    """One session; open it with `open_legacy`."""

    facts: Facts

    def __init__(self, door: Door, info: Mapping[str, Any], hear: Hear, principal: str = "") -> None:
        self._door, self._info, self._hear = door, info, hear
        self.principal = principal
        self._numbers = count(1)
        self._session: dict[str, str] = {}
        self._heading = self._headed()
        self.over = Ending()
        self.in_flight: dict[int, Exchange] = {}
        self._owners: Counter[str | None] = Counter()
        self._left = relay.Left()
        self.heard = 0
        self._beside: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        number = next(self._numbers)
        posted = await self._post(wire.asked(number, "initialize", negotiate.offer(self._info)))
        session = posted.header("mcp-session-id")
        self.facts = negotiate.initialized(await answer(posted, number, self._unaddressed))
        self._session["mcp-protocol-version"] = self.facts.protocol_version
        if session is not None:
            self._session["mcp-session-id"] = session
        self._heading = self._headed()
        await self.notify("notifications/initialized", None)
        if session is not None:
            self._spawn(self._listen())

    async def request(
        self, method: str, params: dict[str, Any] | None, exchange: Exchange | None = None
    ) -> dict[str, Any]:
        if self.over:
            raise Unsent(self.over.reason)
        about, number = exchange or Exchange(), next(self._numbers)
        owner = about.owner
        if about.progress:
            params = {**(params or {}), "_meta": {**(params or {}).get("_meta", {}), "progressToken": number}}
        if exchange is not None:
            self.in_flight[number] = exchange
            self._owners[owner] += 1
        try:
            return await self._ask(wire.asked(number, method, params), number, about)
        except asyncio.CancelledError:
            if exchange is not None:
                self._left.add(number, owner)
            said = {"requestId": number, "reason": "the deadline passed or the caller gave up"}
            self._spawn(self._say(wire.noted("notifications/cancelled", said)))
            raise
        except Unsent as error:
            self.over.tell(str(error))
            raise
        except (Refused, Rejected) as error:
            if self._forgotten(error):
                self.over.tell("the server has forgotten the session")
                raise Unsent("the server has forgotten the session") from None
            raise
        finally:
            if exchange is not None:
                self._leave(number, owner)
            about.end()

    def _leave(self, number: int, owner: str | None) -> None:
        del self.in_flight[number]
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]

    def free_for(self, owner: str | None) -> bool:
        """Whether nobody else's call is on it."""
        return not self._owners or (len(self._owners) == 1 and owner in self._owners)

    def _forgotten(self, error: Refused | Rejected) -> bool:
        about_call = isinstance(error, Refused) and error.code in (METHOD_NOT_FOUND, INVALID_PARAMS)
        return error.status == 404 and "mcp-session-id" in self._session and not about_call

    async def _ask(self, message: dict[str, Any], number: int, about: Exchange) -> dict[str, Any]:
        response = await self._post(message, about.headers, about.opening)
        if (result := plain(response, number)) is not None:
            return result

        async def on_message(said: dict[str, Any]) -> None:
            await self._addressed(about, said)

        try:
            return await answer(response, number, on_message)
        except Interrupted as ended:
            stopped = ended
        vain = 0
        while stopped.last_id is not None and vain < RESUMES:
            pause = RESUME_S if stopped.retry_ms is None else stopped.retry_ms / 1000
            await asyncio.sleep(min(pause, LONGEST_RESUME_S))
            try:
                return await answer(await self._resume(stopped.last_id), number, on_message)
            except Interrupted as again:
                vain = vain + 1 if again.last_id in (None, stopped.last_id) else 0
                stopped = Interrupted(again.last_id or stopped.last_id, again.retry_ms or stopped.retry_ms)
            except (Unsent, Rejected, NoEffect) as error:
                raise _sent_all_the_same(error) from None
            except Refused as error:
                if error.status is not None and error.status >= 300:
                    raise _sent_all_the_same(error) from None
                raise  # the answer itself, on the stream
        raise stopped

    async def _resume(self, last_id: str) -> Response:
        headers = {"accept": "text/event-stream", "last-event-id": last_id}
        return await self._door.get({**self._session, **headers}, self.principal)

    async def _post(
        self, message: dict[str, Any], more: Mapping[str, str] | None = None, opening: Opening | None = None
    ) -> Response:
        response = await self._door.post(
            wire.encoded(message), self._heading, self.principal, more=more, opening=opening
        )
        self.heard += 1
        return response

    def _headed(self) -> Heading:
        accept = "application/json, text/event-stream"
        return Heading({"content-type": "application/json", "accept": accept, **self._session})

    async def notify(self, method: str, params: dict[str, Any] | None) -> None:
        await self._say(wire.noted(method, params))

    async def _say(self, message: dict[str, Any]) -> None:
        """Post what needs no answer; a server that is gone does not miss it."""
        with contextlib.suppress(Unsent, Lost, Rejected, NoEffect):
            (await self._post(message)).close()

    # what the server says unasked

    async def _addressed(self, about: Exchange, message: dict[str, Any]) -> None:
        """Something on the stream of a request: it belongs to that request."""
        self.heard += 1
        method, params, number = message["method"], message.get("params"), message.get("id")
        if isinstance(number, str | int):
            about.question(number, self._answer(message, about))
        elif params is not None and not isinstance(params, dict):
            return
        elif (changed := change(method, params)) is not None:
            self._hear(changed)
        elif method == "notifications/cancelled":
            about.withdraw((params or {}).get("requestId"))
        else:
            await relay.tell(about, method, params)

    async def _unaddressed(self, message: dict[str, Any]) -> None:
        """Something that belongs to no request in particular."""
        if isinstance(message.get("method"), str):
            about = relay.sole(self.in_flight.values(), self._left) or Exchange()
            await self._addressed(about, message)

    async def _answer(self, message: dict[str, Any], about: Exchange) -> None:
        await self._say(await relay.answered(message, about))

    async def _listen(self) -> None:
        """Keep the server's own stream open, where it offers one."""
        events, vain = Events(), 0
        while not self.over:
            headers = {"accept": "text/event-stream", **self._session}
            if events.last_id:
                headers["last-event-id"] = events.last_id
            try:
                response = await self._door.get(headers, self.principal)
            except Unsent as error:
                self.over.tell(str(error))
                return
            except NoEffect:
                return  # nobody is let in to listen
            except (Lost, Rejected):
                vain += 1
            else:
                if response.status == 404:
                    self.over.tell("the server has forgotten the session")
                if response.status != 200 or response.content_type != "text/event-stream":
                    response.close()
                    return
                vain = 0 if await self._heed(response, events) else vain + 1
            pause = defaults.RETRY_BASE_S * 2**vain if events.retry_ms is None else events.retry_ms / 1000
            await asyncio.sleep(min(pause, LONGEST_RESUME_S))

    async def _heed(self, response: Response, events: Events) -> bool:
        some = False
        try:
            async for message in messages(response, events):
                some = True
                await self._unaddressed(message)
        finally:
            response.close()
        return some

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def close(self) -> str | None:
        self.over.tell("it was closed")
        beside = tuple(self._beside)
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        if "mcp-session-id" in self._session:
            with contextlib.suppress(Unsent, Lost, Rejected, NoEffect, TimeoutError):
                async with timeout(BYE_S):
                    await self._door.delete(self._session, self.principal)
        return None


def _sent_all_the_same(error: Exception) -> Lost:
    """Whatever is said to taking up the stream again says nothing about the request: that was taken."""
    return Lost(f"the stream could not be taken up again: {error}")


async def open_legacy(door: Door, info: Mapping[str, Any], hear: Hear, principal: str = "") -> LegacyHttp:
    link = LegacyHttp(door, info, hear, principal)
    try:
        await link.open()
    except BaseException:
        await link.close()
        raise
    return link
