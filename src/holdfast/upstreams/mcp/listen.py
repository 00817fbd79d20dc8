"""How are changes heard of a server that never speaks first?

2026-07-28: one long request, `subscriptions/listen`, whose answer is a stream of changes. It is made again
when it ends, and then everything may have changed in between.
"""

import asyncio

from holdfast.model.errors import NoEffect
from holdfast.upstreams.mcp.backoff import Backoff
from holdfast.upstreams.mcp.change import Change, Hear, Kind
from holdfast.upstreams.mcp.errors import Garbage, Lost, Refused, Rejected, Unsent, final
from holdfast.upstreams.mcp.link import Link
from holdfast.upstreams.mcp.protocol import Facts

_LISTS: tuple[tuple[Kind, str], ...] = (
    ("tools", "toolsListChanged"),
    ("prompts", "promptsListChanged"),
    ("resources", "resourcesListChanged"),
)


class Listening:
    """Keeps the request open for one link; `update` makes it anew with other resources."""

    def __init__(self, link: Link, hear: Hear, backoff: Backoff) -> None:
        self._link, self._hear, self._backoff = link, hear, backoff
        self._task: asyncio.Task[None] | None = None

    async def update(self, uris: frozenset[str]) -> None:
        await self.close()
        wanted = _wanted(self._link.facts, uris)
        if wanted:
            self._task = asyncio.ensure_future(self._keep(wanted))

    async def _keep(self, wanted: dict[str, object]) -> None:
        vain = 0
        while not self._link.over:
            heard = self._link.heard
            try:
                await self._link.request("subscriptions/listen", {"notifications": wanted})
            except (Unsent, NoEffect):
                return  # the link has said that it is over, or nobody is let in to listen
            except (Refused, Rejected) as error:
                if isinstance(error, Refused) or final(error.status):
                    return  # it does not do this
            except (Lost, Garbage):
                pass
            vain = 1 if self._link.heard > heard + 1 else vain + 1
            await asyncio.sleep(self._backoff.pause(vain))
            for kind, member in _LISTS:
                if member in wanted:
                    self._hear(Change(kind))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None


def _wanted(facts: Facts, uris: frozenset[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for kind, member in _LISTS:
        declared = facts.capabilities.get(kind)
        if isinstance(declared, dict) and declared.get("listChanged"):
            found[member] = True
    if uris:
        found["resourceSubscriptions"] = sorted(uris)
    return found
