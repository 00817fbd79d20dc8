"""A machine that measures what passes, under a time of day that is not its own."""

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast.ports import Alarm, Clock


class Passing:
    """Whoever adds `now` is a clock."""

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self.monotonic = machine.monotonic  # as it is: every gate asks

    async def sleep(self, seconds: float) -> None:
        await self._machine.sleep(seconds)

    async def until(self, work: "asyncio.Future[Any]", seconds: float | None = None) -> bool:
        return await self._machine.until(work, seconds)

    def alarm(self, seconds: float, ring: Callable[[], object]) -> Alarm:
        return self._machine.alarm(seconds, ring)
