"""Which calls are news to somebody who watches?

Calls are listed by when they were proposed, and seen once something of them is written down: a slow one shows
up before those that were quicker. So the last minute is looked at again each time, and only what nobody was
told yet is told. What was held or is unknown is followed until it ends, however long that takes.
"""

from collections.abc import AsyncIterator
from typing import Any, Protocol

from holdfast.model.call import Principal
from holdfast.model.observation import Status
from holdfast.model.view import RUNNING, CallRow, Wanted

AGAIN_S = 60.0
FIRST = "call_"
"""Sorts before every call."""
A_PAGE = 500
MOST_OPEN = 1000
"""Calls whose end is waited for; the oldest are let go first."""
OPEN = frozenset({RUNNING, Status.HELD.value, Status.UNKNOWN.value, Status.PARTIAL.value})


class Rows(Protocol):
    @property
    def rows(self) -> tuple[CallRow, ...]: ...
    @property
    def more(self) -> bool: ...


class Calls(Protocol):
    """What is asked of `gateway.views`."""

    async def fresh(self) -> None: ...
    async def calls(self, by: Principal, wanted: Wanted) -> Rows: ...
    async def call(self, by: Principal, call_id: str) -> CallRow | None: ...


class Watching:
    """Of one person; `status` is how a call must have ended to be told."""

    def __init__(
        self, calls: Calls, by: Principal, *, status: str | None = None, **wanted: str | None
    ) -> None:
        self._calls, self._by, self._status = calls, by, status
        self._wanted: dict[str, Any] = wanted
        self._from = FIRST
        """Nothing up to this call is looked at again."""
        self._told: dict[str, CallRow] = {}
        """As they were told, in the order of their ids."""
        self._open: dict[str, CallRow] = {}

    async def begin(self, now: float) -> None:
        """Whatever happened until now is no news."""
        await self._calls.fresh()
        newest = await self._calls.calls(self._by, Wanted(**self._wanted, until=now - AGAIN_S, limit=1))
        self._from = newest.rows[0].call_id if newest.rows else FIRST
        await self.news(now)

    async def news(self, now: float) -> list[CallRow]:
        """What changed since the last time, oldest first."""
        await self._calls.fresh()
        found = [row async for row in self._since()]
        seen = {row.call_id for row in found}
        for call_id in [one for one in self._open if one not in seen]:
            row = await self._calls.call(self._by, call_id)
            if row is None:
                del self._open[call_id]
            else:
                found.append(row)
        news = [row for row in found if self._is_news(row)]
        self._note(found)
        self._forget(now - AGAIN_S)
        return sorted(news, key=lambda row: row.updated_at)

    async def _since(self) -> AsyncIterator[CallRow]:
        after = self._from
        while True:
            page = await self._calls.calls(self._by, Wanted(**self._wanted, after=after, limit=A_PAGE))
            for row in page.rows:
                yield row
            if not (page.more and page.rows):
                return
            after = page.rows[-1].call_id

    def _is_news(self, row: CallRow) -> bool:
        before = self._told.get(row.call_id) or self._open.get(row.call_id)
        if before is not None and before.status == row.status:
            return False
        return row.status == self._status if self._status else row.status != RUNNING

    def _note(self, found: list[CallRow]) -> None:
        for row in found:
            self._told[row.call_id] = row
            if row.status in OPEN:
                self._open[row.call_id] = row
            else:
                self._open.pop(row.call_id, None)
        for call_id in list(self._open)[: max(0, len(self._open) - MOST_OPEN)]:
            del self._open[call_id]

    def _forget(self, before: float) -> None:
        old = sorted(call_id for call_id, row in self._told.items() if row.at < before)
        if old:
            self._from = max(self._from, old[-1])
        for call_id in old:
            del self._told[call_id]
