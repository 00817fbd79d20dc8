"""Who of this process wants to change the same, and whose turn is it?

Everybody who waits for one call would try again when that is over, and all but one in vain. So those of a
process who want the same stand in a line, and only the first of them tries. What decides is the ledger.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from holdfast.model.stage import Lock, Locked

Until = Callable[["asyncio.Future[None]", float], Awaitable[bool]]
"""Waits for something, and at most so many seconds."""


@dataclass(frozen=True, slots=True)
class _Place:
    tenant: str
    wanted: tuple[Locked, ...]
    left: "asyncio.Future[None]"


def _overlap(tenant: str, wanted: tuple[Locked, ...], other: _Place) -> bool:
    return tenant == other.tenant and any(
        one.name == two.name or (one.kind == two.kind and (one.whole or two.whole))
        for one in wanted
        for two in other.wanted
    )


@dataclass(slots=True)
class Line:
    _places: dict[str, _Place] = field(default_factory=dict)
    """In the order in which they came, by the nonce of the call."""

    def join(self, who: str, tenant: str, lock: Lock) -> bool:
        """Whether it is their turn at once; who stands there already keeps their place."""
        if who not in self._places:
            left = asyncio.get_running_loop().create_future()
            self._places[who] = _Place(tenant, lock.resources, left)
        return self._ahead(who) is None

    def has_before(self, who: str, tenant: str, lock: Lock) -> bool:
        """Whether others wait for what somebody wants who has just come: they were first."""
        if who in self._places:
            return False
        return any(_overlap(tenant, lock.resources, place) for place in self._places.values())

    async def stand(self, who: str, until: Until, seconds: float) -> bool:
        """Whether it is their turn within that time."""
        ahead = self._ahead(who)
        if ahead is not None:
            await until(ahead.left, seconds)
        return self._ahead(who) is None

    def leave(self, who: str) -> None:
        """Whoever stands behind is next."""
        place = self._places.pop(who, None)
        if place is not None and not place.left.done():
            place.left.set_result(None)

    def __len__(self) -> int:
        return len(self._places)

    def _ahead(self, who: str) -> _Place | None:
        """The next one before them who wants the same."""
        place, found = self._places[who], None
        for name, other in self._places.items():
            if name == who:
                break
            if _overlap(place.tenant, place.wanted, other):
                found = other
        return found
