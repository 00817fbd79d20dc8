"""How do many calls write at once? Each job goes to a lane; what waits together is written together."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar, TypeVarTuple, Unpack

from holdfast.model.errors import StoreError
from holdfast.stores.postgres.batch import MOST, part_of
from holdfast.stores.postgres.connection import AWAY_S, PATIENCE_S, Patience
from holdfast.stores.postgres.job import Job
from holdfast.stores.postgres.lane import Lane
from holdfast.stores.sql.engine import Transaction

LANES = 8
"""Connections that write: the server shares one flush of its log among those that commit together."""
GATHER_S = 0.002
"""How long a job at most waits for others to go with while a lane is free."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class PostgresWriter:
    in_order: Final = False  # lanes overtake each other
    recent: Final = None  # each lane has a chain of its own
    spool: Final = None  # a server is asked to keep every record
    spools: Final = None

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
        self._sent = False
        self._gathering: asyncio.TimerHandle | None = None
        self._patience_s = patience_s
        self._closed = False

    @property
    def idle(self) -> bool:
        """Nothing is being written, or waits to be."""
        return not self._working and not self._waiting

    async def close(self) -> None:
        """Everything submitted so far is still written and answered."""
        while not self.idle:
            self._gathered()
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
        part = part_of(job, arguments)
        self._waiting.append(Job(tenant, durable, job, arguments, future, Patience(seconds), part))
        self._send()
        return future

    def submit_long(
        self, tenant: str, job: Callable[[Transaction, Unpack[Ts]], Awaitable[T]], *arguments: *Ts
    ) -> asyncio.Future[T]:
        return self.submit(tenant, True, job, *arguments)

    def _send(self) -> None:
        """See that what waits gets a lane. One that was sent and has not looked yet takes more than one job;
        the more are at work, the more are gathered for the next, for many cost hardly more than one.
        """
        if self._sent or not self._free or not self._waiting:
            return
        at_work = len(self._lanes) - len(self._free)
        if self._waiting[0].part is None or len(self._waiting) >= at_work:
            self._start()
        elif self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(GATHER_S, self._gathered)

    def _gathered(self) -> None:
        """The lanes at work may be held up: nobody waits for them who can have another."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if self._waiting and self._free and not self._sent:
            self._start()

    def _start(self) -> None:
        self._sent = True
        task = asyncio.ensure_future(self._work(self._free.pop()))
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _work(self, lane: Lane) -> None:
        """Take jobs until none waits; then the lane is free again."""
        self._sent = False
        try:
            while self._waiting:
                jobs = self._next()
                self._send()
                await lane.work(jobs, self._take_back)
        finally:
            self._free.append(lane)

    def _take_back(self, jobs: Sequence[Job]) -> None:
        """They have waited longest."""
        self._waiting.extendleft(reversed(jobs))
        self._send()

    def _next(self) -> list[Job]:
        """The job that waits longest; with a plain one go others of its tenant, one for each operation."""
        first = self._waiting.popleft()
        if first.part is None:
            return [] if first.future.cancelled() else [first]
        ahead = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST - 1))]
        taken, others, refs = [], [], set()
        for job in (first, *ahead):
            if job.future.cancelled():
                continue  # nobody waits, and nothing was begun
            if job.part is None or job[:2] != first[:2] or (ref := job.part.ref) in refs:
                others.append(job)
                continue
            if ref is not None:
                refs.add(ref)
            taken.append(job)
        self._waiting.extendleft(reversed(others))
        return taken
