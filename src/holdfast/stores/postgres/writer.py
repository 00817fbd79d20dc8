"""How do many calls write at once? Each job goes to the next free lane, as a transaction of its own."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, TypeVarTuple, Unpack

from holdfast.model.errors import StoreError
from holdfast.stores.postgres.connection import AWAY_S, PATIENCE_S, Patience
from holdfast.stores.postgres.lane import Job, Lane
from holdfast.stores.sql.engine import Transaction

LANES = 8
"""Connections that write: the server shares one flush of its log among those that commit together."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class PostgresWriter:
    def __init__(
        self,
        url: str,
        name: str,
        lanes: int = LANES,
        patience_s: float = PATIENCE_S,
        refreshed: Callable[[float], Awaitable[None]] | None = None,
        away: Callable[[], bool] = lambda: False,
    ) -> None:
        """`away`: the server is known not to be there; then only what must survive waits for it."""
        self._away = away
        self._lanes = [Lane(url, f"{name}.{number}", refreshed) for number in range(lanes)]
        self._free = list(reversed(self._lanes))
        self._waiting: deque[Job] = deque()
        self._working: set[asyncio.Task[None]] = set()
        self._patience_s = patience_s
        self._closed = False

    @property
    def idle(self) -> bool:
        """Nothing is being written."""
        return not self._working

    async def close(self) -> None:
        """Everything submitted so far is still written and answered."""
        while self._working:
            await asyncio.wait(self._working)
        self._closed = True
        for lane in self._lanes:
            await lane.drop()

    def submit(
        self,
        tenant: str,
        durable: bool,
        job: Callable[[Transaction, Unpack[Ts]], Awaitable[T]],
        *arguments: *Ts,
    ) -> asyncio.Future[T]:
        if self._closed:
            raise StoreError("the store is closed; open it again")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        seconds = self._patience_s if durable or not self._away() else min(self._patience_s, AWAY_S)
        self._waiting.append(Job(tenant, durable, job, arguments, future, Patience(seconds)))
        if self._free:
            task = asyncio.ensure_future(self._work(self._free.pop()))
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        return future

    def submit_long(
        self, tenant: str, job: Callable[[Transaction, Unpack[Ts]], Awaitable[T]], *arguments: *Ts
    ) -> asyncio.Future[T]:
        return self.submit(tenant, True, job, *arguments)

    async def _work(self, lane: Lane) -> None:
        """Take jobs until none waits; then the lane is free again."""
        try:
            while self._waiting:
                job = self._waiting.popleft()
                if job.future.cancelled():
                    continue  # nobody waits, and nothing was begun
                try:
                    answer = await lane.run(job)
                except Exception as error:
                    _deliver(job.future, None, error)
                else:
                    _deliver(job.future, answer, None)
        finally:
            self._free.append(lane)


def _deliver(future: "asyncio.Future[Any]", answer: Any, failure: BaseException | None) -> None:
    if future.done():
        return  # whoever waited was cancelled
    if failure is None:
        future.set_result(answer)
    else:
        future.set_exception(failure)
