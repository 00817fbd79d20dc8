"""Which links does one life of an upstream have, and which of them carries a call?

One link is the first: it lists, listens and is watched. An HTTP server may have more: sessions that keep the
calls of different clients apart, and, where it serves both eras, sessions for clients of the older one.
"""

import asyncio
import contextlib

from holdfast.model.peer import Peer
from holdfast.upstreams.mcp.errors import Lost, Refused, Unsent
from holdfast.upstreams.mcp.exchange import Exchange
from holdfast.upstreams.mcp.link import Ending, Link
from holdfast.upstreams.mcp.listen import Listening
from holdfast.upstreams.mcp.pool import NOT_OF_THAT_ERA, Pool


class Connection:
    def __init__(self, link: Link, pool: Pool | None, listening: Listening, per_principal: bool) -> None:
        self.link = link
        self._pool = pool
        self._listening = listening
        self._per_principal = per_principal

    @property
    def over(self) -> Ending:
        return self.link.over

    @property
    def calls(self) -> int:
        """In flight on all links."""
        more = () if self._pool is None else self._pool.links
        return sum(len(link.in_flight) for link in {self.link, *more})

    def plainly(self, peer: Peer | None) -> Link | None:
        """The link that carries a call of this client, where there is nothing to choose or to open."""
        if self._pool is None or (self.link.facts.modern and (peer is None or peer.modern)):
            return self.link
        return None

    async def carrier(self, exchange: Exchange) -> Link:
        """The link for a call of this client and principal."""
        if self._pool is None or self.plainly(exchange.peer) is not None:
            return self.link
        principal = exchange.principal if self._per_principal else ""
        if not self.link.facts.modern:
            return await self._pool.link(exchange.owner, principal)
        try:
            return await self._pool.link(exchange.owner, principal)
        except NOT_OF_THAT_ERA:
            self._pool = None  # it serves the newer era alone; its questions are translated
        except (Unsent, Lost):
            pass
        return self.link

    async def subscribe(self, uri: str, all_of_them: frozenset[str]) -> None:
        if self.link.facts.modern:
            await self._listening.update(all_of_them)
        else:
            await self.link.request("resources/subscribe", {"uri": uri})

    async def unsubscribe(self, uri: str, all_of_them: frozenset[str]) -> None:
        if self.link.facts.modern:
            await self._listening.update(all_of_them)
        else:
            await self.link.request("resources/unsubscribe", {"uri": uri})

    async def resume(self, uris: frozenset[str], level: str | None) -> None:
        """Ask again for what an earlier connection was asked for."""
        if self.link.facts.modern:
            await self._listening.update(uris)
            return
        for uri in sorted(uris):
            with contextlib.suppress(Refused):
                await self.link.request("resources/subscribe", {"uri": uri})
        if level is not None:
            await self.set_level(level)

    async def set_level(self, level: str) -> None:
        """Of what the server logs; of 2026-07-28 on each request says it itself."""
        more = () if self._pool is None else self._pool.links
        await asyncio.gather(*(leveled(link, level) for link in {self.link, *more}))

    async def close(self) -> str | None:
        try:
            await self._listening.close()
            if self._pool is not None:
                await self._pool.close()
        finally:
            said = await self.link.close()
        return said


async def leveled(link: Link, level: str) -> None:
    if not link.facts.modern and "logging" in link.facts.capabilities:
        with contextlib.suppress(Refused):
            await link.request("logging/setLevel", {"level": level})
