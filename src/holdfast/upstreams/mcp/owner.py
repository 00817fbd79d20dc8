"""Who opens a link, sees it break, and opens it again?

One task per upstream owns its link from the first connection to the last goodbye.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, Literal, Protocol, TypeVar

from holdfast.model.timeout import timeout
from holdfast.upstreams.mcp.backoff import Backoff
from holdfast.upstreams.mcp.change import Change, Hear
from holdfast.upstreams.mcp.errors import Unallowed, Unsent
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.link import Ending

log = logging.getLogger(__name__)

State = Literal["connecting", "ready", "down"]
PATIENCE_S = 1.0
"""A call waits for a restart that is due within this time; a longer outage it is told of."""


class Living(Protocol):
    """What is owned: it says when it is over, and can be ended."""

    @property
    def over(self) -> Ending: ...
    async def close(self) -> str | None: ...


L = TypeVar("L", bound=Living)


class Owner(Generic[L]):
    def __init__(
        self,
        name: str,
        connect: Callable[[], Awaitable[L]],
        *,
        connect_s: float,
        backoff: Backoff,
        hidden: Hidden,
        hear: Hear,
    ) -> None:
        self._name, self._connect, self._connect_s = name, connect, connect_s
        self._backoff, self._hidden, self._hear = backoff, hidden, hear
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Event()
        """Set when an attempt to connect has come to an end, either way."""
        self._failed = 0
        self._closed = self._barred = False
        self._again_at = 0.0
        self.state: State = "connecting"
        self.live: L | None = None
        self.last_error: str | None = None
        self.starts = 0
        """How often a connection was tried."""

    def start(self) -> None:
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._own(), name=f"upstream {self._name}")

    @property
    def present(self) -> L | None:
        """What is owned, where it is there and not over."""
        live = self.live
        return None if live is None or live.over else live

    async def usable(self) -> L:
        """What is owned, waiting while it is being opened; raises Unsent when there is nothing."""
        if (live := self.present) is not None:
            return live
        if self._closed:
            raise Unsent("it is closed")
        self.start()  # whoever needs it first
        far = self._again_at - asyncio.get_running_loop().time() > PATIENCE_S
        if not far and await self.turn() and self.live is not None:
            return self.live
        raise (Unallowed if self._barred else Unsent)(self.last_error or "it is down")

    async def turn(self) -> bool:
        """Wait until it is ready, or the next attempt to connect has failed; whether it is ready."""
        failed = self._failed
        while self.live is None or self.live.over:
            if self._failed != failed or self._closed:
                return False
            self._turn.clear()
            await self._turn.wait()
        return True

    async def _own(self) -> None:
        failures, loop = 0, asyncio.get_running_loop()
        while True:
            began = loop.time()
            self.state = "connecting"
            try:
                await self._once()
            except Exception as error:
                self._went_wrong(error)
            if loop.time() - began >= self._backoff.steady_s:
                failures = 0
            failures += 1
            pause = self._backoff.pause(failures)
            self._again_at = loop.time() + pause
            self.state = "down"
            self._turn.set()
            await asyncio.sleep(pause)

    async def _once(self) -> None:
        """One life of a link, from opening to its end."""
        self.starts += 1
        link = await self._opened()
        try:
            self.live, self.state, self.last_error = link, "ready", None
            self._turn.set()
            self._hear(Change("up"))
            reason = await link.over.wait()
        finally:
            self.live, self.state = None, "down"
            said = await link.close()
            self._hear(Change("down"))
        raise ConnectionError(said or reason)

    async def _opened(self) -> L:
        try:
            async with timeout(self._connect_s):
                return await self._connect()
        except TimeoutError:
            self._failed += 1
            raise ConnectionError(f"it did not answer within {self._connect_s:g} s of connecting") from None
        except Exception:
            self._failed += 1
            raise

    def _went_wrong(self, error: Exception) -> None:
        said = self._hidden.out_of(str(error) or type(error).__name__)
        if said != self.last_error:
            log.warning("upstream %r is down: %s", self._name, said)
        self.last_error, self._barred = said, isinstance(error, Unallowed)

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self.state = "down"
        self._turn.set()
