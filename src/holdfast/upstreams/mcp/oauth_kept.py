"""What is kept for an owner right now, and who may replace it?"""

import asyncio
from collections.abc import Awaitable, Callable

from pydantic import ValidationError

from holdfast.model.errors import StoreError
from holdfast.upstreams.mcp.oauth_grant import Grant, Owner, TokenStore

LEASE_S = 15.0
"""Longer than a renewal may take; after that another process tries."""
LOOK_S = 0.05
"""Between two looks whether another process has renewed."""

Renew = Callable[[Owner, Grant], Awaitable[Grant]]


class Kept:
    """The grants of one upstream. They are read each time: another process may have renewed one, a person may
    have signed out."""

    def __init__(self, upstream: str, store: TokenStore, now: Callable[[], float]) -> None:
        self._upstream = upstream
        self._store = store
        self._now = now
        self._read: dict[Owner, tuple[bytes, Grant]] = {}

    async def grant(self, owner: Owner) -> Grant:
        value = await self._store.load(owner, self._upstream)
        if value is None:
            self._read.pop(owner, None)
            return Grant(holder=(*owner, self._upstream))
        known = self._read.get(owner)
        if known is None or known[0] != value:
            known = self._read[owner] = (value, _opened(value, (*owner, self._upstream)))
        return known[1]

    async def keep(self, owner: Owner, grant: Grant, *, new: bool = False) -> Grant:
        """What is kept in the end, which is another one where another process was faster."""
        kept = await self._store.save(owner, self._upstream, grant.sealed_form(), grant.at, new=new)
        return grant if kept else await self.grant(owner)

    async def drop(self, owner: Owner) -> bool:
        return await self._store.drop(owner, self._upstream)

    async def in_turn(self, owner: Owner, grant: Grant, renew: Renew) -> Grant:
        """Among processes: a refresh token that two of them use may end the whole sign-in."""
        while True:
            now = self._now()
            if await self._store.lease(owner, self._upstream, grant.at, now, now + LEASE_S):
                return await renew(owner, grant)
            seen = await self.grant(owner)
            if seen.at != grant.at or seen.token != grant.token:
                return seen
            await asyncio.sleep(LOOK_S)


class Turns:
    """In one process: callers with the same question share its answer, and none of them can break it off."""

    def __init__(self) -> None:
        self._locks: dict[Owner, asyncio.Lock] = {}
        self._running: dict[tuple[object, ...], asyncio.Task[Grant]] = {}

    async def alone(self, owner: Owner, *what: object, work: Callable[[], Awaitable[Grant]]) -> Grant:
        question = (owner, *what)
        task = self._running.get(question)
        if task is None:
            task = self._running[question] = asyncio.create_task(self._take(owner, work))
            task.add_done_callback(lambda done: self._ended(question, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Let what runs end: a refresh token that was used and not replaced is lost."""
        if self._running:
            await asyncio.wait(self._running.values())

    async def _take(self, owner: Owner, work: Callable[[], Awaitable[Grant]]) -> Grant:
        async with self._locks.setdefault(owner, asyncio.Lock()):
            return await work()

    def _ended(self, question: tuple[object, ...], task: "asyncio.Task[Grant]") -> None:
        del self._running[question]
        if not task.cancelled():
            task.exception()  # whoever waited has seen it, or has gone


def _opened(value: bytes, holder: tuple[str, str, str]) -> Grant:
    try:
        grant = Grant.model_validate_json(value)
    except ValidationError:  # its text quotes tokens
        raise StoreError("a kept token cannot be read; sign in again") from None
    if grant.holder != holder:
        raise StoreError("a kept token belongs to somebody else; sign in again")
    return grant
