"""How long may a block take? As `asyncio.timeout` has it, and as it was meant to be.

Python 3.11.0 to 3.11.2 take the end of the time for one more cancellation where the task is being cancelled
already. What cleans up would then be cut short, with a process left unwaited for.
"""

import asyncio
import sys
from types import TracebackType

if sys.version_info >= (3, 11, 3):
    from asyncio import timeout
else:

    class _Timeout(asyncio.Timeout):  # type: ignore[misc]  # it is only said to be final
        _earlier = 0

        async def __aenter__(self) -> "_Timeout":
            await super().__aenter__()
            self._earlier = _cancellations()
            return self

        async def __aexit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None:
            await super().__aexit__(kind, error, trace)
            if self.expired() and kind is asyncio.CancelledError and _cancellations() <= self._earlier:
                raise TimeoutError from error

    def timeout(delay: float | None) -> asyncio.Timeout:
        loop = asyncio.get_running_loop()
        return _Timeout(None if delay is None else loop.time() + delay)

    def _cancellations() -> int:
        task = asyncio.current_task()
        return 0 if task is None else task.cancelling()


__all__ = ["timeout"]
