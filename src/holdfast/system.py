"""The machine's own clock and randomness, and the ingress limit, behind their ports."""

import asyncio
import os
import time
from typing import Any

from holdfast.model import defaults
from holdfast.model.call import Principal


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until(self, work: "asyncio.Future[Any]", seconds: float | None = None) -> bool:
        if not work.done():
            await asyncio.wait((work,), timeout=seconds)
        return work.done()


class RandomIds:
    def call(self) -> str:
        """Sorts by the millisecond it was made in."""
        return f"call_{int(time.time() * 1000):012x}{os.urandom(8).hex()}"

    def nonce(self) -> str:
        return os.urandom(12).hex()

    def trace(self) -> str:
        return os.urandom(16).hex()


class TokenIngress:
    """GCRA per principal in memory: one addition and one comparison."""

    MAX_PRINCIPALS = 100_000

    def __init__(self, rate: float = defaults.INGRESS_RATE, burst: float = defaults.INGRESS_BURST) -> None:
        self._gap = 1 / rate
        self._tolerance = burst / rate
        self._next: dict[tuple[str, str], float] = {}

    def admit(self, principal: Principal) -> int | None:
        now = time.monotonic()
        name = (principal.tenant, principal.id)
        arrival = max(self._next.get(name, now), now) + self._gap
        if arrival - now > self._tolerance:
            return int((arrival - now - self._tolerance) * 1000) + 1
        if len(self._next) >= self.MAX_PRINCIPALS and name not in self._next:
            self._next = {known: at for known, at in self._next.items() if at > now}
        self._next[name] = arrival
        return None
