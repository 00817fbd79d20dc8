"""Holdfast in memory, for tests of your own tools and policies.

    async with holdfast.testing.gateway(refund, get_order) as gateway:
        observation = await gateway.call("test.refund", {"order_id": "o-1"}, key="k-1")

Every port has an implementation here or is shown by one: time stands still until you
`advance` it, ids count up, nothing touches a disk or a network.
"""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from holdfast.gateway import Gateway
from holdfast.model.function import FunctionTool
from holdfast.ports import Clock, Policy
from holdfast.stores.memory import MemoryStore
from holdfast.upstreams.function import FunctionUpstream

_TURNS = 20
"""Of the event loop, in which everything that is ready to run does."""
_OUTSIDE_S = 0.001
"""How long real things are left alone before they are looked at again."""


class ManualClock:
    """Time that moves only when told to."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._wall = start
        self._monotonic = 0.0
        self._alarms: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._outside: list[Callable[[], bool]] = []

    def now(self) -> float:
        return self._wall

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        await self._alarm(seconds)

    async def until(self, work: "asyncio.Future[Any]", seconds: float | None = None) -> bool:
        if work.done():
            return True
        if seconds is None or seconds == float("inf"):
            await asyncio.wait((work,))
            return True
        alarm = self._alarm(seconds)
        await asyncio.wait((work, alarm), return_when=asyncio.FIRST_COMPLETED)
        alarm.cancel()
        return work.done()

    def alarm(self, seconds: float, ring: Callable[[], object]) -> "asyncio.Future[None]":
        alarm = self._alarm(seconds)
        alarm.add_done_callback(lambda rung: rung.cancelled() or ring())
        return alarm

    @property
    def sleepers(self) -> int:
        """How many waits are under way; a test can wait for its subject to wait."""
        return sum(not alarm.done() for _, _, alarm in self._alarms)

    def heed(self, busy: Callable[[], bool]) -> None:
        """Time stands still while `busy()`: for what happens outside, such as an answer on its way."""
        self._outside.append(busy)

    async def quiet(self) -> None:
        """Until everybody waits for time, for somebody else, or for the test."""
        calm = 0
        while calm < _TURNS:
            if any(busy() for busy in self._outside):
                calm = 0  # what comes from there sets others going
                await asyncio.sleep(_OUTSIDE_S)
            else:
                calm += 1
                await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass, waking sleepers in order and letting them run."""
        end = self._monotonic + seconds
        while self._alarms and self._alarms[0][0] <= end:
            at, _, alarm = heapq.heappop(self._alarms)
            self._pass(at)
            if not alarm.done():
                alarm.set_result(None)
            await self.quiet()
        self._pass(end)
        await self.quiet()

    async def drive(self, work: "asyncio.Future[Any]") -> None:
        """Let time pass, from one alarm to the next, until `work` is done.

        What is not waiting for time (a thread, a disk) is given real time first.
        """
        while not work.done():
            await asyncio.wait((work,), timeout=0.005)
            seen = self._waiting()
            await self.quiet()
            if seen and seen == self._waiting() and not work.done():  # nobody moves: they wait for time
                await self.advance(min(seen) - self._monotonic)

    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, as an operator or a time server might."""
        self._wall += seconds

    def _waiting(self) -> list[float]:
        return [at for at, _, alarm in self._alarms if not alarm.done()]

    def _pass(self, to: float) -> None:
        self._wall += max(to - self._monotonic, 0.0)
        self._monotonic = max(to, self._monotonic)

    def _alarm(self, seconds: float) -> "asyncio.Future[None]":
        alarm: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._alarms, (self._monotonic + seconds, next(self._order), alarm))
        return alarm


async def settle_loop(turns: int = _TURNS) -> None:
    """Give everything that is ready to run a chance to do so."""
    for _ in range(turns):
        await asyncio.sleep(0)


class CountingIds:
    """Names that count up, so that a test can foretell them."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def call(self) -> str:
        return f"call_{next(self._count):06d}"

    def nonce(self) -> str:
        return f"nonce{next(self._count):06d}"

    def trace(self) -> str:
        return f"{next(self._count):032x}"


@asynccontextmanager
async def gateway(
    *tools: FunctionTool[..., Any],
    namespace: str = "test",
    config: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
    policy: Policy | None = None,
    concurrency: int = 32,
) -> AsyncIterator[Gateway]:
    """A whole gateway in memory, without housekeeping: call `tidy` where a sweep is wanted."""
    time = clock or ManualClock()
    ids = CountingIds()
    upstreams = {namespace: FunctionUpstream(tools, concurrency)}
    opened = Gateway.assemble(config or {}, MemoryStore(time), upstreams, clock=time, ids=ids, policy=policy)
    try:
        await opened.prepare()
        yield opened
    finally:
        await opened.close()
