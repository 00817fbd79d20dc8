"""Which answer belongs to which request, where all of them share one stream?

Used for stdio and the SSE transport. An answer nobody waits for, a second answer, or something that is no
message at all is dropped and hurts nobody.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from itertools import count
from typing import Any

from holdfast.upstreams.mcp import relay, wire
from holdfast.upstreams.mcp.change import Hear, change
from holdfast.upstreams.mcp.errors import Garbage, Lost, Unsent
from holdfast.upstreams.mcp.exchange import Exchange
from holdfast.upstreams.mcp.inbox import Inbox
from holdfast.upstreams.mcp.link import Ending

log = logging.getLogger(__name__)

MOST_NOTICES = 1000
"""Notifications kept for a client that takes them slowly; later ones are dropped."""
UNCANCELLABLE = frozenset({"initialize", "server/discover"})

Send = Callable[[dict[str, Any], Exchange | None], None]
"""Takes a message and whose it is, for the headers that go with it where there are such; raises Unsent."""


class Channel:
    def __init__(self, send: Send, hear: Hear) -> None:
        self._send = send
        self._hear = hear
        self._numbers = count(1)
        self._waiting: dict[int, tuple[Exchange, Inbox]] = {}
        self.in_flight: dict[int, Exchange] = {}
        self._left = relay.Left()
        self.over = Ending()
        self.heard = 0

    async def request(
        self, method: str, params: dict[str, Any] | None, exchange: Exchange | None = None
    ) -> dict[str, Any]:
        if self.over:
            raise Unsent(self.over.reason)
        number, inbox = next(self._numbers), Inbox()
        about = exchange or Exchange()
        if about.progress:
            params = {**(params or {}), "_meta": {**(params or {}).get("_meta", {}), "progressToken": number}}
        self._waiting[number] = about, inbox
        if exchange is not None:
            self.in_flight[number] = exchange
        try:
            self._send(wire.asked(number, method, params), about)
            return await self._outcome(about, inbox)
        except asyncio.CancelledError:
            if exchange is not None:
                self._left.add(number, exchange.owner)
            if method not in UNCANCELLABLE:
                said = {"requestId": number, "reason": "the deadline passed or the caller gave up"}
                self.say(wire.noted("notifications/cancelled", said))
            raise
        finally:
            del self._waiting[number]
            self.in_flight.pop(number, None)
            about.end()

    async def _outcome(self, about: Exchange, inbox: Inbox) -> dict[str, Any]:
        while True:
            item = await inbox.next()
            if isinstance(item, Exception):
                raise item
            if wire.is_answer(item):
                return wire.outcome(item)
            await relay.tell(about, item["method"], item.get("params"))

    def say(self, message: dict[str, Any]) -> None:
        """Send what needs no answer; a server that is gone does not miss it."""
        with contextlib.suppress(Unsent, Lost):
            self._send(message, None)

    def receive(self, message: Any) -> bool:
        """Take a message in; False when it answers nothing that was asked."""
        self.heard += 1
        if isinstance(message, list):  # a batch, which 2025-03-26 allowed
            return sum(self.receive(part) for part in message if isinstance(part, dict)) > 0
        if not isinstance(message, dict):
            return False
        if wire.is_answer(message):
            return self._answer(message)
        if not isinstance(message.get("method"), str):
            return False
        if "id" in message:
            self._question(message)
        else:
            self._notice(message)
        return False

    def _answer(self, message: dict[str, Any]) -> bool:
        number = wire.number_of(message)
        found = None if number is None else self._waiting.get(number)
        if found is None:
            self._left.discard(number)
            log.debug("dropped an answer nobody waits for")
            return False
        found[1].put(message)
        return True

    def _question(self, message: dict[str, Any]) -> None:
        number = message["id"]
        if isinstance(number, bool) or not isinstance(number, str | int):
            return
        about = relay.sole(self.in_flight.values(), self._left) or Exchange()
        if not about.question(number, self._ask(message, about)):
            said = {"code": relay.INVALID_REQUEST, "message": "too many questions are open"}
            self.say({"jsonrpc": "2.0", "id": number, "error": said})

    async def _ask(self, message: dict[str, Any], about: Exchange) -> None:
        self.say(await relay.answered(message, about))

    def _notice(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params")
        if params is not None and not isinstance(params, dict):
            return
        if (changed := change(method, params)) is not None:
            self._hear(changed)
        elif method == "notifications/cancelled":
            for about in self.in_flight.values():
                about.withdraw((params or {}).get("requestId"))
        elif relay.listened(params):
            return
        elif (inbox := self._addressee(method, params or {})) is not None and len(inbox) < MOST_NOTICES:
            inbox.put(message)

    def _addressee(self, method: str, params: dict[str, Any]) -> Inbox | None:
        if method == "notifications/progress":
            number = wire.number_of({"id": params.get("progressToken")})
        else:
            about = relay.sole(self.in_flight.values(), self._left)
            number = next((n for n, exchange in self.in_flight.items() if exchange is about), None)
        found = None if number is None else self._waiting.get(number)
        return None if found is None else found[1]

    def overlong(self) -> None:
        """A message was too long to be kept; whose it was is only known if one alone is waited for."""
        said = f"the server sent a message of more than {wire.ANSWER_BYTES} bytes"
        log.warning("%s; it is dropped", said)
        if len(self._waiting) == 1:
            (_, inbox), *_ = self._waiting.values()
            inbox.put(Garbage(said))

    def fail(self, number: Any, error: Exception) -> None:
        """One request alone will not be answered."""
        if isinstance(number, int) and number in self._waiting:
            self._waiting[number][1].put(error)

    def lose(self, reason: str) -> None:
        """The stream is over: nobody gets an answer any more."""
        self.over.tell(reason)
        for _, inbox in self._waiting.values():
            inbox.put(Lost(reason))
