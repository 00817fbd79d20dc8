"""Who is signed in to the console, in memory."""

from dataclasses import replace

from holdfast.model.people import SignedIn
from holdfast.ports import Clock


class MemorySessions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, SignedIn] = {}

    async def add(self, session: SignedIn) -> None:
        self._kept[session.hash] = session

    async def find(self, hash: str) -> SignedIn | None:
        found = self._kept.get(hash)
        return found if found is not None and found.expires_at > self._clock.now() else None

    async def seen(self, hash: str, at: float, expires_at: float) -> None:
        found = self._kept.get(hash)
        if found is not None and found.seen_at <= at:
            self._kept[hash] = replace(found, seen_at=at, expires_at=expires_at)

    async def end(self, hash: str) -> bool:
        return self._kept.pop(hash, None) is not None

    async def forget(self) -> int:
        over = [hash for hash, one in self._kept.items() if one.expires_at <= self._clock.now()]
        for hash in over:
            del self._kept[hash]
        return len(over)
