"""What answers MCP requests over HTTP, once somebody sends one?

The SDK's session manager, and the short way for plain calls. Whatever imports this module imports the SDK,
which takes a second: see `http.Door`.
"""

import asyncio
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from holdfast.servers.mcp.hub import Hub
from holdfast.servers.mcp.lane import Lane
from holdfast.servers.mcp.older import Older, Stay
from holdfast.servers.mcp.results import WHO
from holdfast.servers.mcp.server import build
from holdfast.servers.visit import body_limits

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.servers.mcp.roster import Roster
    from holdfast.servers.mcp.sessions import Sessions

TOUCHES = 4
"""How often in its time a session is kept open whose requests the SDK does not see."""


class Inside:
    def __init__(self, hub: Hub, sessions: "Sessions", stay: Stay, idle_s: float) -> None:
        gateway, server = hub.gateway, build(hub)
        self.hub = hub
        self.manager = StreamableHTTPSessionManager(
            server, max_request_body_size=gateway.config.limits.body_bytes, session_idle_timeout=idle_s
        )
        stamp = {WHO: server.server_info_stamp}
        self.lane = Lane(hub, Older(hub, sessions, stay, idle_s / TOUCHES), body_limits(gateway), stamp)
        self._begun, self._stop = asyncio.Event(), asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._life = asyncio.create_task(self._live(), name="holdfast-mcp-sessions")
        await self._begun.wait()
        self.hub.open()

    async def close(self) -> None:
        self.hub.close()
        self._stop.set()
        if self._life is not None:
            await self._life

    async def _live(self) -> None:
        """Sessions live in a task of their own: the SDK wants them ended by whoever began them."""
        async with self.manager.run():
            self._begun.set()
            await self._stop.wait()


async def enter(
    gateway: "Gateway", command: str, roster: "Roster", sessions: "Sessions", stay: Stay, idle_s: float
) -> Inside:
    inside = Inside(Hub(gateway, command, roster), sessions, stay, idle_s)
    await inside.open()
    return inside
