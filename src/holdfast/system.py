"""The machine's own clock and randomness, and the ingress limit, behind their ports."""

import asyncio
import os
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.model import defaults
from holdfast.model.call import Principal

_PASSED: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # Darwin's monotonic clock counts sleep


class SystemClock:
    def now(self) -> float:
        return time.time()

    monotonic = staticmethod(partial(time.clock_gettime, _PASSED))
    """Counts the hours that the machine slept: a call that slept with it is late. Asked after every gate, so
    it is no function of ours."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until(self, work: "asyncio.Future[Any]", seconds: float | None = None) -> bool:
        if work.done():
            return True
        loop = asyncio.get_running_loop()
        woken = loop.create_future()  # half of what `asyncio.wait` costs, on the path of every call

        def wake(_: object = None) -> None:
            if not woken.done():
                woken.set_result(None)

        work.add_done_callback(wake)
        alarm = None if seconds is None else loop.call_later(seconds, wake)
        try:
            await woken
        finally:
            work.remove_done_callback(wake)
            if alarm is not None:
                alarm.cancel()
        return work.done()

    def alarm(self, seconds: float, ring: Callable[[], object]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, ring)


class RandomIds:
    """Names from the system's randomness, fetched in blocks: each fetch lets another thread in."""

    BLOCK = 4096

    def __init__(self) -> None:
        self.forget()
        _drawing.add(self)

    def forget(self) -> None:
        """What was fetched is for nobody any more."""
        self._hex = ""
        self._at = 0

    def call(self) -> str:
        """Sorts by the millisecond it was made in."""
        return f"call_{int(time.time() * 1000):012x}{self._take(16)}"

    def nonce(self) -> str:
        return self._take(24)

    def trace(self) -> str:
        return self._take(32)

    def _take(self, digits: int) -> str:
        end = self._at + digits
        if end > len(self._hex):
            self._hex, self._at, end = os.urandom(self.BLOCK).hex(), 0, digits
        taken = self._hex[self._at : end]
        self._at = end
        return taken


_drawing: weakref.WeakSet[RandomIds] = weakref.WeakSet()


def _forget_all() -> None:
    """A forked child must not repeat its parent."""
    for ids in _drawing:
        ids.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


class TokenIngress:
    """GCRA per principal in memory: one addition and one comparison."""

    MAX_PRINCIPALS = 100_000

    def __init__(self, rate: float = defaults.INGRESS_RATE, burst: float = defaults.INGRESS_BURST) -> None:
        self._gap = 1 / rate
        self._tolerance = burst / rate + self._gap * 1e-6  # what rounding takes from a whole burst
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
