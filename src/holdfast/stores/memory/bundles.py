"""Promoted policies, in memory."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.ports import Clock, Promoted
from holdfast.records.body import act_body
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.memory.shelf import Shelf


class MemoryBundles:
    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock

    async def active(self) -> Promoted | None:
        return self._shelf.promoted

    async def active_version(self) -> str | None:
        active = self._shelf.promoted
        return None if active is None else active.version

    async def promote(self, version: str, content: str, by: str, note: str, *, first: bool = False) -> bool:
        earlier, now = self._shelf.promotions, self._clock.now()
        if await self.active_version() == version or (first and earlier):
            return False
        earlier.append(
            Promoted(number=len(earlier) + 1, version=version, content=content, by=by, note=note, at=now)
        )
        self._record(now, act_body(now, "promote", by, version=version, note=note))
        return True

    async def rollback(self, by: str, note: str) -> Promoted | None:
        standing, now = [p for p in self._shelf.promotions if p.ended_by is None], self._clock.now()
        if len(standing) < 2:
            return None
        back, left = standing[-2:]
        self._shelf.promotions[left.number - 1] = replace(left, ended_by=by)
        self._record(now, act_body(now, "rollback", by, version=back.version, left=left.version, note=note))
        return back

    async def list(self) -> Sequence[Promoted]:
        return self._shelf.promotions[::-1]

    def _record(self, now: float, body: str) -> None:
        self._shelf.record(EVERYWHERE, "", "policy", now, body)
