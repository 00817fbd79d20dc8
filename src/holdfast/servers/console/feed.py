"""Which calls are new or changed, for everybody who has a live page open?

One task of a process looks for all of them: who sees the same calls shares one look. It ends with the last
page. What a person may see is asked anew at each look, and a stream ends after a while, so that whoever is
signed out does not go on watching.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from holdfast.gateway import Gateway
from holdfast.model.call import Principal
from holdfast.model.view import CallRow, Wanted

log = logging.getLogger(__name__)

LOOK_S = 0.4
"""Between two looks; a call is on the page within a second."""
WINDOW = 300
"""The newest calls are compared with those of the last look; a page shows fewer."""
MOST_WAITING = 20
"""Looks that a slow reader may be behind before it loses some."""

Heard = asyncio.Queue[list[CallRow]]


@dataclass(slots=True)
class Shared:
    """What one look sees, and who waits for it."""

    by: Principal
    rows: dict[str, CallRow] = field(default_factory=dict)
    readers: set[Heard] = field(default_factory=set)

    def changed(self, rows: tuple[CallRow, ...]) -> list[CallRow]:
        """At the first look everything: what a reader knows already it leaves out itself."""
        before, self.rows = self.rows, {row.call_id: row for row in rows}
        return [row for row in rows if before.get(row.call_id) != row]


class Feed:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._shared: dict[tuple[str, str], Shared] = {}
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def heard(self, by: Principal) -> AsyncIterator[Heard]:
        """Lists of calls that are new or changed since the list before."""
        place = (by.tenant, "" if self._gateway.operates(by) else by.id)
        shared = self._shared.setdefault(place, Shared(by))
        shared.by = by
        queue: Heard = asyncio.Queue(MOST_WAITING)
        shared.readers.add(queue)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look(), name="holdfast-live")
        try:
            yield queue
        finally:
            shared.readers.discard(queue)
            if not shared.readers:
                self._shared.pop(place, None)

    async def _look(self) -> None:
        well = True
        while self._shared:
            try:
                await self._gateway.views.fresh()
                for shared in list(self._shared.values()):
                    await self._look_for(shared)
                well = True
            except Exception as error:  # pages stay open: it is looked again
                if well:
                    log.warning("live pages wait: %s", error)
                well = False
            await asyncio.sleep(LOOK_S)

    async def _look_for(self, shared: Shared) -> None:
        page = await self._gateway.views.calls(shared.by, Wanted(limit=WINDOW))
        if changed := shared.changed(page.rows):
            for reader in shared.readers:
                if not reader.full():
                    reader.put_nowait(changed)


_FEEDS: WeakKeyDictionary[Gateway, Feed] = WeakKeyDictionary()


def feed_of(gateway: Gateway) -> Feed:
    """The one of this process."""
    found = _FEEDS.get(gateway)
    if found is None:
        found = _FEEDS[gateway] = Feed(gateway)
    return found
