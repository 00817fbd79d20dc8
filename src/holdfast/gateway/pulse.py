"""Did a question of this tenant move? Asked once for everybody who looks, and told to all of them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

from holdfast.ports import Approvals, Clock

log = logging.getLogger(__name__)

EVERY_S = 0.5
"""Between two looks: what is new is on every screen within a second."""
BEATS = 20
"""So many looks after which listeners hear something in any case, to find out whether they still may."""


class Pulse:
    def __init__(self, approvals: Approvals, clock: Clock, ending: Callable[[], bool]) -> None:
        self._approvals, self._clock, self._ending = approvals, clock, ending
        self._listening: dict[str, set[asyncio.Event]] = {}
        self._marks: dict[str, str] = {}
        self._looking: asyncio.Task[None] | None = None

    async def beats(self, tenant: str) -> AsyncGenerator[None, None]:
        """Once now, then whenever something moved, and now and then; ends when the gateway does."""
        heard = asyncio.Event()
        self._listening.setdefault(tenant, set()).add(heard)
        try:
            while not self._ending():
                yield
                if self._looking is None or self._looking.done():
                    self._looking = asyncio.create_task(self._look(), name="holdfast-inbox")
                await heard.wait()
                heard.clear()
        finally:
            self._listening[tenant].discard(heard)
            if not self._listening[tenant]:
                del self._listening[tenant]
                self._marks.pop(tenant, None)

    @property
    def listeners(self) -> int:
        return sum(len(several) for several in self._listening.values())

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking
        self._tell(None)

    async def _look(self) -> None:
        """While anybody listens."""
        looks = 0
        while self._listening and not self._ending():
            for tenant in list(self._listening):
                await self._look_at(tenant)
            looks += 1
            if looks % BEATS == 0:
                self._tell(None)
            await self._clock.sleep(EVERY_S)
        self._tell(None)

    async def _look_at(self, tenant: str) -> None:
        try:
            mark = await self._approvals.mark(tenant)
        except Exception:  # the store is away: the next look may find it
            log.debug("the questions of %r cannot be looked at now", tenant, exc_info=True)
            return
        if self._marks.get(tenant) != mark:
            self._marks[tenant] = mark
            self._tell(tenant)

    def _tell(self, tenant: str | None) -> None:
        for name, several in self._listening.items():
            if tenant in (None, name):
                for heard in several:
                    heard.set()
