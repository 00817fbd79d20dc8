"""A provider that obeys the test, and a wallet around it."""

import asyncio
from typing import Any

from holdfast.model.secret import Secret
from holdfast.testing import ManualClock
from holdfast.upstreams.secrets.wallet import Entry, Wallet


class Kept:
    """Hands out what it holds; `fails` is raised instead, `hold` is waited for."""

    def __init__(self, text: str = "first-secret", expires_at: float | None = None) -> None:
        self.text, self.expires_at = text, expires_at
        self.fails: Exception | None = None
        self.hold: asyncio.Event | None = None
        self.reads = 0

    async def read(self) -> Secret:
        self.reads += 1
        if self.hold is not None:
            await self.hold.wait()
        if self.fails is not None:
            raise self.fails
        return Secret(self.text, self.expires_at, str(self.reads))

    async def close(self) -> None: ...


def wallet(clock: ManualClock, **kept: Kept | Entry) -> Wallet:
    entries = {
        name: one if isinstance(one, Entry) else Entry(provider=one, ttl_s=300.0)
        for name, one in kept.items()
    }
    return Wallet(entries, now=clock.now, monotonic=clock.monotonic)


def entry(kept: Kept, **said: Any) -> Entry:
    return Entry(provider=kept, **{"ttl_s": 300.0, **said})
