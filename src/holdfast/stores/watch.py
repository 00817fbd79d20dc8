"""Has this operation moved on? Wakes those of this process who wait for it."""

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.model.operation import Operation, OperationRef
from holdfast.ports import Clock

FIRST_POLL_S = 0.005
LAST_POLL_S = 0.1
"""Another process cannot wake us: its outcomes are looked for, less and less often."""


class Watch:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[OperationRef, set[asyncio.Future[None]]] = {}

    def wake(self, ref: OperationRef) -> None:
        for waiter in self._waiting.pop(ref, ()):
            if not waiter.done():
                waiter.set_result(None)

    async def until_still(
        self,
        operation: Operation,
        seconds: float,
        find: Callable[[OperationRef], Awaitable[Operation | None]],
    ) -> Operation:
        """The operation once nobody runs it any more, or as it is after `seconds`."""
        end = self._clock.monotonic() + seconds
        pause = FIRST_POLL_S
        while True:
            waiter = self._enlist(operation.ref)  # before looking, so that nothing is missed in between
            try:
                operation = await find(operation.ref) or operation
                left = end - self._clock.monotonic()
                if not operation.state.running or operation.orphaned or left <= 0:
                    return operation
                await self._clock.until(waiter, min(pause, left))
            finally:
                self._discharge(operation.ref, waiter)
            pause = min(2 * pause, LAST_POLL_S)

    def _enlist(self, ref: OperationRef) -> asyncio.Future[None]:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(ref, set()).add(waiter)
        return waiter

    def _discharge(self, ref: OperationRef, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiting.get(ref)
        if waiters is not None:
            waiters.discard(waiter)
            if not waiters:
                del self._waiting[ref]
