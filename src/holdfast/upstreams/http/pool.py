"""Which connection carries the next request to an origin?

The one used last, for it is the least likely to be closing. One that a server may have closed meanwhile is
looked at first, and one that was idle for too long is not used at all.
"""

import asyncio
import ssl
from functools import cache

from holdfast.model import defaults
from holdfast.model.timeout import timeout
from holdfast.upstreams.http.address import Address
from holdfast.upstreams.http.connection import Connection
from holdfast.upstreams.http.errors import Broken, Unreachable, words
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.response import Response

KEEP_ALIVE_S = 3.0
"""Shorter than what servers allow (uvicorn and Node: 5 s): nobody posts into a door that is closing."""
LOOKED_AT_S = 0.1
"""After this long without use the socket itself is asked whether the server has closed it."""
GOODBYE_S = 1.0


class Pool:
    def __init__(
        self, there: Address, guard: Guard, trust: ssl.SSLContext | None = None, purpose: str = ""
    ) -> None:
        self._there, self._guard, self._trust, self._purpose = there, guard, trust, purpose
        self._loop = asyncio.get_running_loop()
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._sweep: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self.closed = False

    async def request(self, data: bytes) -> Response:
        """The response's head, and all of it where that is short. Raises Unreachable or Broken."""
        connection = self._kept() or await self._connected()
        waiter = connection.send(data)
        try:
            return await waiter
        except BaseException:
            connection.give_up(waiter)
            raise

    async def harmless(self, data: bytes) -> Response:
        """The same, where asking twice does no harm: a kept connection may break just when it is used."""
        kept = bool(self._idle)
        try:
            return await self.request(data)
        except Broken:
            if not kept:
                raise
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.abort()
        return await self.request(data)

    def _kept(self) -> Connection | None:
        if self.closed:
            raise Unreachable("it is closed")
        idle, now = self._idle, self._loop.time()
        while idle:
            connection = idle.pop()
            rested = now - connection.idle_since
            if not connection.usable:
                continue
            if rested < LOOKED_AT_S or (rested < KEEP_ALIVE_S and connection.silent):
                return connection
            connection.abort()
        return None

    async def _connected(self) -> Connection:
        there, loop = self._there, self._loop
        try:
            async with timeout(defaults.CONNECT_S):
                bound = await self._guard.dial(there.host, there.port, self._purpose)
                trust = await self._whom() if there.tls else None
                name = there.host if there.tls else None
                try:
                    _, connection = await loop.create_connection(
                        lambda: Connection(self, loop), sock=bound, ssl=trust, server_hostname=name
                    )
                except BaseException:
                    bound.close()
                    raise
        except TimeoutError:
            raise Unreachable(f"no connection within {defaults.CONNECT_S:g} s") from None
        except (OSError, ValueError) as error:
            raise Unreachable(words(error)) from None
        if self.closed:
            connection.abort()
        if not connection.usable:
            raise Unreachable("the connection was closed before anything was sent")
        self._open.add(connection)
        return connection

    async def _whom(self) -> ssl.SSLContext:
        if self._trust is None:
            self._trust = await self._loop.run_in_executor(None, trusted)
        return self._trust

    # what connections say

    def free(self, connection: Connection) -> None:
        if self.closed:
            return connection.abort()
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(KEEP_ALIVE_S, self._swept)
        return None

    def lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if not self._open:
            self._empty.set()

    def _swept(self) -> None:
        """Close what nobody used for long; the oldest are first."""
        since = self._loop.time() - KEEP_ALIVE_S
        old = [one for one in self._idle if one.idle_since <= since or not one.usable]
        self._idle = [one for one in self._idle if one.idle_since > since and one.usable]
        for connection in old:
            connection.abort()
        self._sweep = self._loop.call_later(KEEP_ALIVE_S, self._swept) if self._idle else None

    async def close(self) -> None:
        self.closed = True
        self._idle.clear()
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in tuple(self._open):
            connection.abort()
        if self._open:
            self._empty.clear()
            try:
                async with timeout(GOODBYE_S):
                    await self._empty.wait()
            except TimeoutError:
                pass


@cache
def trusted() -> ssl.SSLContext:
    """Whom this machine trusts. Made once: it reads every certificate there is."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
