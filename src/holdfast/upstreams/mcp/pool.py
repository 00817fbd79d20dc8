"""Which session of the handshake era carries a call?

What a server asks there may not say which call it belongs to. So calls of different clients are kept apart
while there are sessions to be had, a client finds its own session again, and where servers know principals a
session is only ever one principal's.
"""

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.upstreams.mcp.errors import Garbage, Mismatch, Refused, Rejected, Unsent
from holdfast.upstreams.mcp.legacy_http import LegacyHttp

NOT_OF_THAT_ERA = (Refused, Rejected, Garbage, Mismatch)
"""What a server says that does not serve the handshake era at all."""
MOST = 8
"""Sessions of one upstream. Beyond that clients share, and servers cannot ask them anything."""

Open = Callable[[str], Awaitable[LegacyHttp]]


class Pool:
    def __init__(self, open_one: Open, first: LegacyHttp | None = None) -> None:
        self._open = open_one
        self._lock = asyncio.Lock()
        self._last: dict[LegacyHttp, str | None] = {} if first is None else {first: None}
        """Every session, and whose calls it had last."""
        self._refused: Exception | None = None

    @property
    def links(self) -> tuple[LegacyHttp, ...]:
        return tuple(link for link in self._last if not link.over)

    async def link(self, owner: str | None, principal: str) -> LegacyHttp:
        """Raises what opening a session raises, when there is none at all."""
        found = self._free(owner, principal)
        if found is None:
            async with self._lock:
                found = self._free(owner, principal) or await self._another(principal)
        self._last[found] = owner
        return found

    def _free(self, owner: str | None, principal: str) -> LegacyHttp | None:
        """A session nobody else is using: best the one this client had before, or one nobody had."""
        unused = others = None
        for link, last in self._last.items():
            if link.over or link.principal != principal or not link.free_for(owner):
                continue
            if last == owner:
                return link
            if last is None:
                unused = unused or link
            else:
                others = others or link
        return unused or others

    async def _another(self, principal: str) -> LegacyHttp:
        if self._refused is not None:
            raise self._refused
        await self._tidy(principal)
        if len(self._last) < MOST:
            return await self._opened(principal)
        shared = [link for link in self.links if link.principal == principal]
        if not shared:
            raise Unsent(f"all {MOST} sessions of it are busy with others' calls")
        return min(shared, key=lambda link: len(link.in_flight))

    async def _opened(self, principal: str) -> LegacyHttp:
        try:
            link = await self._open(principal)
        except NOT_OF_THAT_ERA as error:
            if not self._last:
                self._refused = error  # whoever waits here for a session need not ask too
            raise
        self._last[link] = None
        return link

    async def _tidy(self, principal: str) -> None:
        """Make room: what is over goes, and if a principal has no session at all, so does an idle one."""
        for link in [link for link in self._last if link.over]:
            del self._last[link]
            await link.close()
        if len(self._last) >= MOST and not any(link.principal == principal for link in self._last):
            idle = next((link for link in list(self._last)[1:] if not link.in_flight), None)
            if idle is not None:
                del self._last[idle]
                await idle.close()

    async def close(self) -> None:
        links, self._last = tuple(self._last), {}
        await asyncio.gather(*(link.close() for link in links), return_exceptions=True)
