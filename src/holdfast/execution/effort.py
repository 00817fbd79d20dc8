"""How can work be stopped at its deadline without having a task of its own?

A task costs every call a turn of the loop and more. So the work is awaited where it stands, step by step:
what it waits for is cancelled, as a task would do, and not the call around it. Work that goes on although it
was stopped becomes a task after all, so that nobody is kept waiting for it.

Looks from outside like the future of a task: `done`, `cancel`, `cancelled`, `exception`, `result`.
"""

import asyncio
from asyncio import CancelledError, Future
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any

from holdfast.model.call import Call
from holdfast.ports import Clock

Work = Coroutine[Any, Any, Any]
Waiting = Generator[Any, Any, "asyncio.Task[Any] | None"]


class Effort:
    __slots__ = (
        "_alarm",
        "_call",
        "_clock",
        "_error",
        "_longest",
        "_over",
        "_relay",
        "_result",
        "_stopped",
        "_told",
        "_waits",
        "_work",
        "late",
    )

    def __init__(self, work: Work, call: Call, clock: Clock, seconds: float) -> None:
        self._work, self._call, self._clock, self._longest = work, call, clock, seconds
        self._waits: Future[Any] | None = None
        self._relay: Future[None] | None = None
        self._over = self._stopped = self._told = self.late = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._alarm = clock.alarm(seconds, self._ring)

    def __await__(self) -> Waiting:
        """Ends when the work has; a task is what goes on although it was stopped."""
        work = self._work
        step: Any = work.send
        given: Any = None
        try:
            while True:
                waits = step(given)
                step, given = work.send, None
                if self._told:
                    return asyncio.ensure_future(_rest(work, waits))
                try:
                    if type(waits) is Future:
                        self._waits = waits
                        if self._stopped:
                            self._told = waits.cancel()
                        yield waits
                    elif waits is None:  # it only lets others run
                        yield
                        if self._stopped:
                            self._told = True
                            step, given = work.throw, CancelledError()
                    elif not (yield from self._slow(waits)):
                        return asyncio.ensure_future(_rest(work, waits))
                except BaseException as error:
                    step, given = work.throw, error
        except StopIteration as end:
            self._result = end.value
        except (Exception, CancelledError) as error:
            self._error = error
        finally:
            self._alarm.cancel()
            self._over = True
        return None

    def _slow(self, waits: "Future[Any]") -> Generator[Any, Any, bool]:
        """Wait for what may take its time to be cancelled, as a task may; False when it does."""
        relay = self._relay = asyncio.get_running_loop().create_future()
        waits.add_done_callback(self._pass_on)
        self._waits = waits
        if self._stopped:
            self._stop_waiting()
        yield from relay
        return waits.done()

    def _pass_on(self, _: object) -> None:
        if self._relay is not None and not self._relay.done():
            self._relay.set_result(None)

    def _stop_waiting(self) -> None:
        if self._waits is not None and self._waits.cancel():
            self._told = True
            self._pass_on(None)

    def _ring(self) -> None:
        left = self._call.deadline - self._clock.monotonic()
        if left > 0:  # asking the client something moves the deadline
            self._alarm = self._clock.alarm(min(left, self._longest), self._ring)
        else:
            self.late = True
            self.cancel()

    def cancel(self) -> bool:
        """An answer that has come is not lost: only what it waits for from now on is."""
        if self._over or self._stopped:
            return False
        self._stopped = True
        self._stop_waiting()
        return True

    def done(self) -> bool:
        return self._over

    def cancelled(self) -> bool:
        return isinstance(self._error, CancelledError)

    @property
    def stopped(self) -> bool:
        """Whether it was to end before it was over; else it was the call around it that was cancelled."""
        return self._stopped

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> Any:
        return self._result


async def _rest(work: Work, waits: Any) -> Any:
    """What is left of work that was begun elsewhere."""
    return await _stepwise(work, waits)


@coroutine
def _stepwise(work: Work, waits: Any) -> Generator[Any, Any, Any]:
    while True:
        step: Any = work.send
        given: Any = None
        try:
            yield waits
        except BaseException as error:
            step, given = work.throw, error
        try:
            waits = step(given)
        except StopIteration as end:
            return end.value
