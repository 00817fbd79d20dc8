"""How is a server of 2026-07-28 called over HTTP?

One request, one post, one answer: no session, nothing to keep. What comes on the answer's stream belongs to
the request. Closing it is how a request is cancelled.
"""

from collections.abc import Mapping
from itertools import count
from typing import Any

from holdfast.upstreams.mcp import negotiate, relay, wire
from holdfast.upstreams.mcp.answering import answer, plain
from holdfast.upstreams.mcp.change import Hear, change
from holdfast.upstreams.mcp.door import Door, Heading
from holdfast.upstreams.mcp.errors import Garbage, Refused, Rejected, Unsent
from holdfast.upstreams.mcp.exchange import Exchange
from holdfast.upstreams.mcp.link import Ending
from holdfast.upstreams.mcp.marks import written
from holdfast.upstreams.mcp.protocol import LATEST_MODERN_VERSION, NAME_BEARING_METHODS, Facts, enveloped

MOST_HEADINGS = 1024
"""Names of tools whose headers are kept as bytes; a resource's name may be anything."""


class ModernHttp:
    def __init__(self, door: Door, info: Mapping[str, Any], hear: Hear) -> None:
        self._door, self._info, self._hear = door, info, hear
        self._version = LATEST_MODERN_VERSION
        self._numbers = count(1)
        self._headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": self._version,
        }
        self._headings: dict[tuple[str, str | None], Heading] = {}
        self.facts = Facts(protocol_version=self._version)
        self.over = Ending()
        self.in_flight: dict[int, Exchange] = {}
        self.heard = 0

    async def probe(self) -> bool:
        """Whether the server is of this era; what it says of itself is in `facts`."""
        try:
            found = negotiate.discovered(await self._discover())
        except Refused as error:
            negotiate.leave_room(error)
            return False
        except Rejected as error:
            if error.status in (401, 403):
                raise  # says nothing about the era
            return False
        except Garbage:
            return False
        if found is not None:
            self.facts = found
        return found is not None

    async def _discover(self) -> dict[str, Any]:
        """Once more where a server refuses our version and lists it all the same: what it lists counts."""
        try:
            return await self.request("server/discover", None)
        except Refused as error:
            if self._version not in (negotiate.listed(error) or ()):
                raise
            return await self.request("server/discover", None)

    async def request(
        self, method: str, params: dict[str, Any] | None, exchange: Exchange | None = None
    ) -> dict[str, Any]:
        about = exchange or Exchange()
        number = next(self._numbers)
        params = enveloped(params, self._version, self._info, about.peer)
        if about.progress:
            params["_meta"]["progressToken"] = number
        heading = self._heading(method, params)
        if exchange is not None:
            self.in_flight[number] = exchange
        try:
            message = wire.encoded(wire.asked(number, method, params))
            response = await self._door.post(
                message, heading, about.principal, more=about.headers, opening=about.opening
            )
            self.heard += 1
            if (result := plain(response, number)) is not None:
                return result

            async def on_message(message: dict[str, Any]) -> None:
                await self._beside(about, message)

            return await answer(response, number, on_message)
        except Unsent as error:
            self.over.tell(str(error))
            raise
        finally:
            self.in_flight.pop(number, None)

    def _heading(self, method: str, params: dict[str, Any]) -> Heading:
        key = NAME_BEARING_METHODS.get(method)
        name = None if key is None else str(params.get(key, ""))
        found = self._headings.get((method, name))
        if found is None:
            fields = {**self._headers, "mcp-method": method}
            if name is not None:
                fields["mcp-name"] = written(name)
            if len(self._headings) >= MOST_HEADINGS:
                self._headings.clear()
            found = self._headings[method, name] = Heading(fields)
        return found

    async def _beside(self, about: Exchange, message: dict[str, Any]) -> None:
        self.heard += 1
        method, params = message["method"], message.get("params")
        if "id" in message or (params is not None and not isinstance(params, dict)):
            return  # this era's servers ask nothing, they return
        if (changed := change(method, params)) is not None:
            self._hear(changed)
        else:
            await relay.tell(about, method, params)

    async def notify(self, method: str, params: dict[str, Any] | None) -> None:
        """There are none in this direction."""

    async def close(self) -> str | None:
        self.over.tell("it was closed")
        return None
