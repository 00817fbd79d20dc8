"""How is a server reached for the first time, and again?"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.upstreams.mcp.backoff import Backoff
from holdfast.upstreams.mcp.change import Change, Hear
from holdfast.upstreams.mcp.connection import Connection, leveled
from holdfast.upstreams.mcp.door import Door
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.legacy_http import LegacyHttp, open_legacy
from holdfast.upstreams.mcp.legacy_sse import open_sse
from holdfast.upstreams.mcp.link import Link
from holdfast.upstreams.mcp.listen import Listening
from holdfast.upstreams.mcp.modern_http import ModernHttp
from holdfast.upstreams.mcp.pool import Pool
from holdfast.upstreams.mcp.processes import Room, marked
from holdfast.upstreams.mcp.stdio import open_stdio
from holdfast.upstreams.mcp.target import StdioTarget


@dataclass(slots=True, kw_only=True)
class Connecting:
    """Makes connections to one target; what clients asked for is asked for again on each."""

    name: str
    target: StdioTarget | None
    door: Door | None
    info: Mapping[str, Any]
    hidden: Hidden
    hear: Hear
    backoff: Backoff
    subscribed: set[str]
    level: str | None = None

    async def connect(self, room: Room) -> Connection:
        """In a room for contracts of their own nothing is listened for; the first room hears of changes."""
        link = await self._link(room)
        listening = Listening(link, _deaf if room.added else self.hear, self.backoff)
        connection = Connection(link, self._pool(link), listening, self._per_principal)
        try:
            await connection.resume(frozenset(() if room.added else self.subscribed), self.level)
        except BaseException:
            await connection.close()
            raise
        return connection

    @property
    def _per_principal(self) -> bool:
        return self.door is not None and self.door.target.auth is not None

    async def told(self) -> dict[str, str]:
        """The variables that hold secrets, as they are now; raises NoEffect."""
        if self.target is None or self.target.secrets is None:
            return {}
        secrets = await self.target.secrets.secrets()
        self.hidden.learn(secret.text for secret in secrets.values())
        return self.target.secrets.filled(secrets)

    async def _link(self, room: Room) -> Link:
        if self.target is not None:
            told = await self.told()
            room.told = marked(told)
            dressed = replace(self.target, env={**self.target.env, **told, **room.added})
            hear = _deaf if room.added else self.hear
            return await open_stdio(self.name, dressed, self.info, self.hidden, hear)
        if self.door is None:
            raise ValueError("neither a program nor a url")
        if self.door.target.transport == "sse":
            return await open_sse(self.door, self.info, self.hear)
        modern = ModernHttp(self.door, self.info, self.hear)
        if await modern.probe():
            return modern
        return await open_legacy(self.door, self.info, self.hear)

    def _pool(self, link: Link) -> Pool | None:
        if isinstance(link, LegacyHttp):
            return Pool(self._another, link)
        return Pool(self._another) if isinstance(link, ModernHttp) else None

    async def _another(self, principal: str) -> LegacyHttp:
        if self.door is None:
            raise ValueError("only an HTTP server has more than one session")
        link = await open_legacy(self.door, self.info, _deaf, principal)
        if self.level is not None:
            await leveled(link, self.level)
        return link


def _deaf(_: Change) -> None:
    """The first link hears of changes; one is enough."""
