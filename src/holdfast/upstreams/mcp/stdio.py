"""How is a server reached over the standard input and output of its process?"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from holdfast.upstreams.mcp import negotiate, wire
from holdfast.upstreams.mcp.change import Hear
from holdfast.upstreams.mcp.channel import Channel
from holdfast.upstreams.mcp.child import Child
from holdfast.upstreams.mcp.exchange import Exchange
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.protocol import Facts, enveloped
from holdfast.upstreams.mcp.target import StdioTarget

log = logging.getLogger(__name__)


class StdioLink:
    """One process, one stream; open it with `open_stdio`."""

    facts: Facts

    def __init__(self, name: str, info: Mapping[str, Any], hidden: Hidden, hear: Hear) -> None:
        self._name, self._info, self._hidden = name, info, hidden
        self.channel = Channel(lambda message, _: self.child.send(wire.encoded(message) + b"\n"), hear)
        self.child = Child(name, hidden, self._line, self.channel.overlong)
        self.over = self.channel.over
        self.in_flight = self.channel.in_flight
        self._noisy = False
        self._watch: asyncio.Task[None] | None = None

    @property
    def heard(self) -> int:
        return self.channel.heard

    async def open(self, target: StdioTarget) -> None:
        await self.child.start(target)
        self._watch = asyncio.ensure_future(self._mourn())
        self.facts = await negotiate.over_one_stream(self.channel.request, self._info)
        if not self.facts.modern:
            await self.notify("notifications/initialized", None)

    async def request(
        self, method: str, params: dict[str, Any] | None, exchange: Exchange | None = None
    ) -> dict[str, Any]:
        if self.facts.modern:
            peer = None if exchange is None else exchange.peer
            params = enveloped(params, self.facts.protocol_version, self._info, peer)
        return await self.channel.request(method, params, exchange)

    async def notify(self, method: str, params: dict[str, Any] | None) -> None:
        self.channel.say(wire.noted(method, params))

    async def close(self) -> str | None:
        broke = bool(self.over)
        if self._watch is not None:
            self._watch.cancel()
        self.channel.lose("it was closed")
        await self.child.stop()
        return self.child.last_words() if broke else None

    def _line(self, line: bytes) -> bool:
        try:
            message = wire.decoded(line)
        except ValueError:
            self._ignore(line)
            return False
        return self.channel.receive(message)

    def _ignore(self, line: bytes) -> None:
        if not self._noisy:
            self._noisy = True
            log.warning("upstream %r writes to its output what is no message; it is ignored", self._name)
        if log.isEnabledFor(logging.DEBUG):
            said = self._hidden.out_of(line[:500].decode(errors="replace"), 200)
            log.debug("upstream %r, noise: %s", self._name, said)

    async def _mourn(self) -> None:
        await self.child.output_ended.wait()
        self.channel.lose("its process ended or closed its output")


async def open_stdio(
    name: str, target: StdioTarget, info: Mapping[str, Any], hidden: Hidden, hear: Hear
) -> StdioLink:
    link = StdioLink(name, info, hidden, hear)
    try:
        await link.open(target)
    except BaseException as error:
        said = await link.close()
        if said is not None and isinstance(error, Exception):
            raise ConnectionError(f"{error}; {said}") from None
        raise
    return link
