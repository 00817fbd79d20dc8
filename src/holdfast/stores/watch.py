"""Has this operation moved on? Wakes those of this process who wait for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.model.operation import Operation, OperationRef
from holdfast.ports import Clock

FIRST_POLL_S = 0.005
LAST_POLL_S = 0.1
"""Another process cannot wake us: its outcomes are looked for, less and less often."""
LISTENING_POLL_S = 1.0
"""It can, where there is a bell; it may also have died."""


class Rings(Protocol):
    """What carries the news from one process to another."""

    def name(self, ref: OperationRef) -> str: ...
    async def want(self, operation: Operation) -> None: ...
    def tell(self, ref: OperationRef) -> None: ...


class Watch:
    def __init__(self, clock: Clock, bell: Rings | None = None) -> None:
        self._clock = clock
        self._bell = bell
        self._last_poll_s = LAST_POLL_S if bell is None else LISTENING_POLL_S
        self._waiting: dict[OperationRef, set[asyncio.Future[None]]] = {}
        self._named: dict[str, OperationRef] = {}

    def wake(self, ref: OperationRef) -> None:
        """It has ended here; whoever waits elsewhere is told as well."""
        self._rouse(ref)
        if self._bell is not None:
            self._bell.tell(ref)

    def wake_named(self, name: str) -> None:
        """It has ended elsewhere."""
        ref = self._named.get(name)
        if ref is not None:
            self._rouse(ref)

    async def until_still(
        self,
        operation: Operation,
        seconds: float,
        find: Callable[[OperationRef], Awaitable[Operation | None]],
    ) -> Operation:
        """The operation once nobody runs it any more, or as it is after `seconds`."""
        end = self._clock.monotonic() + seconds
        pause = FIRST_POLL_S
        if self._bell is not None:
            await self._bell.want(operation)
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
            pause = min(2 * pause, self._last_poll_s)

    def _rouse(self, ref: OperationRef) -> None:
        waiters = self._waiting.pop(ref, None)
        if waiters is None:
            return
        self._unname(ref)
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _enlist(self, ref: OperationRef) -> asyncio.Future[None]:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(ref, set()).add(waiter)
        if self._bell is not None:
            self._named[self._bell.name(ref)] = ref
        return waiter

    def _discharge(self, ref: OperationRef, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiting.get(ref)
        if waiters is not None:
            waiters.discard(waiter)
            if not waiters:
                del self._waiting[ref]
                self._unname(ref)

    def _unname(self, ref: OperationRef) -> None:
        if self._bell is not None:
            self._named.pop(self._bell.name(ref), None)
