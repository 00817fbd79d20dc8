"""How is something that many want at once fetched once?"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Single(Generic[V]):
    """Callers with the same question share its answer, and none of them can break it off for the others."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[V]] = {}

    async def ask(self, question: Hashable, work: Callable[[], Awaitable[V]]) -> V:
        task = self._running.get(question)
        if task is None:
            task = self._running[question] = asyncio.ensure_future(_done(work))
            task.add_done_callback(lambda done: self._over(question, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Nobody waits any more."""
        running = tuple(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    def _over(self, question: Hashable, task: "asyncio.Task[V]") -> None:
        self._running.pop(question, None)
        if not task.cancelled():
            task.exception()  # whoever waited has seen it, or has gone


async def _done(work: Callable[[], Awaitable[V]]) -> V:
    return await work()
