"""What does execution own between calls?

Upstreams and the things that protect them: a bulkhead per upstream, a breaker per
tool, the read cache, and the work that outlived its deadline.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.execution.breaker import Breaker
from holdfast.execution.cache import Cache
from holdfast.ports import Clock, Credentials, Upstream


class Bulkhead(asyncio.Semaphore):
    """How many calls one upstream takes at once, and how many it has."""

    def __init__(self, size: int, *, taskless: bool = False) -> None:
        super().__init__(size)
        self.size = size
        self.taskless = taskless
        """Whether an attempt needs no task of its own."""
        self.asking = 0
        """Calls that wait for their client and have given up their place."""

    @property
    def in_use(self) -> int:
        return self.size - self._value

    def enter(self) -> bool:
        """Take a place, if there is one and nobody else waits for it."""
        if self._value <= 0 or self._waiters:
            return False
        self._value -= 1
        return True

    def lend(self) -> bool:
        """A call that waits for a person is no load: another may have its place, but not without end."""
        if self.asking >= self.size:
            return False
        self.asking += 1
        self.release()
        return True

    def leave(self, *, lent: bool) -> None:
        if lent:
            self.asking -= 1
        else:
            self.release()


@dataclass(slots=True, kw_only=True)
class Runtime:
    upstreams: Mapping[str, Upstream]
    clock: Clock
    credentials: Credentials | None = None
    """Where the secrets are that contracts name."""
    jitter: Callable[[], float] = random.random
    cache: Cache = field(default_factory=Cache)
    breakers: dict[str, Breaker] = field(default_factory=dict)
    bulkheads: dict[str, Bulkhead] = field(default_factory=dict)
    late: set[asyncio.Task[None]] = field(default_factory=set)
    """Answers still on their way after their caller was told `unknown`."""
    _closing: "asyncio.Future[None] | None" = None

    def breaker(self, tool: str) -> Breaker:
        found = self.breakers.get(tool)
        if found is None:
            found = self.breakers[tool] = Breaker(self.clock)
        return found

    def rests(self, tool: str) -> bool:
        """Whether it failed too often to be asked now."""
        found = self.breakers.get(tool)
        return found is not None and found.state == "open"

    def bulkhead(self, upstream: str) -> Bulkhead:
        found = self.bulkheads.get(upstream)
        if found is None:
            behind = self.upstreams[upstream]
            taskless = getattr(behind, "taskless", False)
            found = self.bulkheads[upstream] = Bulkhead(behind.concurrency, taskless=taskless)
        return found

    @property
    def closing(self) -> "asyncio.Future[None]":
        """Done once there is no more time to wait."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_future()
        return self._closing

    def keep(self, work: Awaitable[Any]) -> None:
        """Let `work` finish in the background; `close` waits for it."""

        async def finish() -> None:
            await work

        task = asyncio.create_task(finish())
        self.late.add(task)
        task.add_done_callback(self.late.discard)

    async def close(self, patience_s: float) -> None:
        if not self.closing.done():
            self.closing.set_result(None)
        if self.late:
            await asyncio.wait(self.late, timeout=patience_s)
        for upstream in self.upstreams.values():
            await upstream.close()
        if self.credentials is not None:
            await self.credentials.close()
