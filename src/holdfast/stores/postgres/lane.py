"""How do jobs become durable transactions?

A lane is a connection that stays, and the chain of records that is written through it. Plain jobs are written
many at once; whatever goes wrong then, each of them is run alone. What fails before its commit was never
written, and is tried again while there is time. A commit whose answer is lost may have happened: the last
record of the transaction tells, for its place in the chain is taken by it or by nobody.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from holdfast.model.errors import HoldfastError, StoreError
from holdfast.model.timeout import timeout
from holdfast.records.chain import GENESIS, Chain, Record
from holdfast.stores.boot import elapsed
from holdfast.stores.postgres.batch import STATEMENT, Part, bound
from holdfast.stores.postgres.connection import (
    CONFLICTS,
    LOST,
    Connection,
    Patience,
    connect,
    describe,
    hang_up,
)
from holdfast.stores.postgres.dialect import quoted
from holdfast.stores.postgres.job import Job
from holdfast.stores.postgres.transaction import PostgresTransaction
from holdfast.stores.sql.engine import AmbiguousCommit, Withdrawn

log = logging.getLogger(__name__)

TRIES = 8
"""How often a job that meets others is run before it is given up."""

MEETING_S = 0.01
"""Those that met wait for a moment each before they try again, so that they do not meet again."""

# What the server calls safe may be less than a commit that survives a power cut; more than that stays.
_SAFELY = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""
# Nor may a process that is stopped again and again keep the others out; a job has given up long before that.
# Servers before 17 do not know this.
_SHORTLY = """
SELECT set_config(name, '30s', false) FROM pg_settings WHERE name = 'transaction_timeout'
"""
_TIP = """
SELECT seq, hash FROM (
  (SELECT seq, hash FROM record WHERE writer = $1 ORDER BY seq DESC LIMIT 1)
  UNION ALL SELECT seq, hash FROM chain_head WHERE tenant = '*' AND writer = $1
) tip ORDER BY seq DESC LIMIT 1
"""
_TAKEN_BY = "SELECT hash FROM record WHERE writer = $1 AND seq = $2"


class _Doubt(Exception):
    """A commit was asked for, and no answer came."""

    def __init__(self, record: Record | None, answer: Any, why: BaseException) -> None:
        super().__init__(describe(why))
        self.record = record
        self.answer = answer


class Lane:
    def __init__(
        self, url: str, name: str, refreshed: Callable[[float], Awaitable[None]] | None = None
    ) -> None:
        """`refreshed` waits until what the store knows of the time and of this worker is newer than a moment:
        whoever lost a connection may have been away for hours.
        """
        self.chain = Chain(name)
        self._url = url
        self._refreshed = refreshed or _at_once
        self._lost_at = elapsed()
        self._connection: Connection | None = None
        self._chain_known = True  # a new name has no records yet

    async def work(self, jobs: Sequence[Job], give_back: Callable[[Sequence[Job]], None]) -> None:
        """Run these and answer each. Several are plain ones of one tenant, and are tried together first.

        Where one of them is not as hoped, half of them are given back: it may have to wait, the others not.
        """
        doubt: _Doubt | None = None
        try:
            while len(jobs) > 1 and self._has_begun:
                if await self._run_together(jobs):
                    return
                half = len(jobs) // 2
                give_back(jobs[half:])
                jobs = jobs[:half]
        except _Doubt as in_doubt:
            doubt, self._chain_known = in_doubt, False
            await self.drop()
        except LOST:
            await self.drop()
        except Exception as error:  # each of them is to find out whether it was the cause
            log.debug("jobs that were tried together are run alone: %s", describe(error))
        for job in jobs:
            if not job.future.cancelled():
                await self._run_alone(job, doubt)

    async def _run_together(self, jobs: Sequence[Job]) -> bool:
        """Whether all were written and answered; else none was."""
        parts = [job.part for job in jobs if job.part is not None]
        patience = max(jobs, key=_time_left).patience
        async with timeout(max(patience.left, 0.1)):
            connection = await self._connected(patience)
            if not await self._take(connection, jobs[0], parts):
                return False
        for job, part in zip(jobs, parts, strict=True):
            job.tell(part.answer)
        return True

    async def _run_alone(self, job: Job, doubt: _Doubt | None) -> None:
        """`doubt`: it may have been written with others."""
        doubts = [] if doubt is None or job.part is None else [_Doubt(doubt.record, job.part.answer, doubt)]
        try:
            job.tell(await self._run(job, doubts))
        except Exception as error:
            job.fail(error)

    async def _run(self, job: Job, doubts: list[_Doubt]) -> Any:
        """What the job answers once it is committed."""
        tries, patience = 0, job.patience
        while True:
            try:
                async with timeout(max(patience.left, 0.1)):
                    connection = await self._connected(patience)
                    for doubt in doubts:
                        if await self._happened(connection, doubt):
                            return doubt.answer
                    return await self._write(connection, job)
            except CONFLICTS as error:
                tries += 1
                if tries == TRIES or patience.left <= 0:
                    raise _over(f"{describe(error)}", doubts) from error
                await asyncio.sleep(random.uniform(0, MEETING_S * tries))
            except _Doubt as doubt:
                doubts.append(await self._doubted(doubt, patience))
            except LOST as error:
                await self.drop()
                await _wait(patience, error, doubts)
            except asyncpg.PostgresError as error:
                await self.drop()
                raise _over(describe(error), doubts) from error

    async def drop(self) -> None:
        """Let go of the connection; the next job makes another."""
        self._lost_at = elapsed()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await hang_up(connection)

    # -- one try -----------------------------------------------------------------

    async def _connected(self, patience: Patience) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._url, max(patience.left, 0.1))
            await self._connection.execute(f"{_SAFELY};{_SHORTLY}")
            await self._refreshed(self._lost_at)
            # A server that crashed takes back what was not durable, told or not: our chain may be shorter.
            self._chain_known = self._chain_known and not self.chain.mark()[0]
        if not self._chain_known:
            await self._find_tip(self._connection)
        return self._connection

    async def _write(self, connection: Connection, job: Job) -> Any:
        part = job.part
        if part is not None and self._has_begun and await self._take(connection, job, [part]):
            return part.answer
        return await self._transact(connection, job)

    async def _take(self, connection: Connection, job: Job, parts: Sequence[Part]) -> bool:
        """The short way: one statement that is a transaction of its own, or nothing."""
        mark = self.chain.mark()
        try:
            batch = bound(self.chain, job.tenant, job.durable, parts)
        except Exception as error:  # as of text that is none
            self.chain.reset(mark)
            raise StoreError(f"the store did not take the write: {describe(error)}") from error
        try:
            taken = await connection.fetchval(STATEMENT, *batch.values)
        except (*LOST, asyncio.CancelledError) as error:
            raise _Doubt(batch.last, parts[0].answer, error) from error
        except Exception as error:
            self._back_to(mark, error)
            if _goes_on(error):
                raise
            raise StoreError(f"the store did not take the write: {describe(error)}") from error
        if not taken:
            self.chain.reset(mark)
        return bool(taken)

    async def _transact(self, connection: Connection, job: Job) -> Any:
        mark = self.chain.mark()
        transaction = PostgresTransaction(connection, self.chain)
        try:
            await connection.execute(_opening(job.tenant, job.durable))
            answer = await job.run(transaction, *job.arguments)
            await transaction.complete()
        except BaseException as error:
            self._back_to(mark, error)
            await self._roll_back(connection)
            if isinstance(error, Withdrawn):
                return error.answer
            if _goes_on(error):
                raise
            raise StoreError(f"the store did not take the write: {describe(error)}") from error
        try:
            ended = await connection.execute("COMMIT")
        except BaseException as error:
            raise _Doubt(transaction.pending[-1] if transaction.pending else None, answer, error) from error
        if ended != "COMMIT":  # what a failed transaction answers
            self.chain.reset(mark)
            raise StoreError("the store did not take the write: the transaction had failed")
        return answer

    async def _roll_back(self, connection: Connection) -> None:
        try:
            await connection.execute("ROLLBACK")
        except (asyncpg.PostgresError, *LOST):
            await self.drop()

    # -- doubt -------------------------------------------------------------------

    async def _doubted(self, doubt: _Doubt, patience: Patience) -> _Doubt:
        self._chain_known = doubt.record is None
        await self.drop()
        if doubt.record is None:
            raise AmbiguousCommit(f"the store may not have taken the write: {doubt}") from doubt
        await _wait(patience, doubt, [doubt])
        return doubt

    async def _happened(self, connection: Connection, doubt: _Doubt) -> bool:
        """If its place is still free the job is run again there; should the lost one come in after all, the
        two cannot both have the place.
        """
        assert doubt.record is not None  # noqa: S101
        found = await _asked(connection, _TAKEN_BY, doubt.record.writer, doubt.record.seq)
        return found is not None and bytes(found[0]) == doubt.record.hash

    @property
    def _has_begun(self) -> bool:
        """The first record of a chain also tells the sequencer of it: that takes the long way."""
        return self.chain.mark()[0] > 0

    def _back_to(self, mark: tuple[int, bytes], error: BaseException) -> None:
        self.chain.reset(mark)
        if isinstance(error, asyncpg.UniqueViolationError):
            self._chain_known = False  # it may be our own place that is taken

    async def _find_tip(self, connection: Connection) -> None:
        """Where our chain ends: a commit that nobody heard of may have happened."""
        row = await _asked(connection, _TIP, self.chain.writer)
        self.chain.reset((0, GENESIS) if row is None else (row[0], bytes(row[1])))
        self._chain_known = True


def _time_left(job: Job) -> float:
    return job.patience.left


async def _at_once(moment: float) -> None:
    """There is nothing to wait for."""


async def _wait(patience: Patience, error: BaseException, doubts: Sequence[_Doubt]) -> None:
    try:
        await patience.wait(error)
    except StoreError as over:
        if not doubts:
            raise
        raise _over(str(over), doubts) from error


def _over(why: str, doubts: Sequence[_Doubt]) -> StoreError:
    """There is no more time; a commit that may still happen is another matter than none."""
    if doubts:
        return AmbiguousCommit(f"the store may not have taken the write: {why}")
    return StoreError(f"the store did not take the write: {why}")


async def _asked(connection: Connection, query: str, *values: object) -> asyncpg.Record | None:
    """A row of the records, which belong to many tenants."""
    await connection.execute(_opening("*", durable=True))
    try:
        return await connection.fetchrow(query, *values)
    finally:
        await connection.execute("ROLLBACK")


def _opening(tenant: str, durable: bool) -> str:
    """One trip: begin, for whom, and how safely."""
    begin = f"BEGIN; SET LOCAL holdfast.tenant = {quoted(tenant)}"
    return begin if durable else f"{begin}; SET LOCAL synchronous_commit = off"


def _goes_on(error: BaseException) -> bool:
    """What is ours, and what may be tried again."""
    return isinstance(error, (HoldfastError, *CONFLICTS, *LOST)) or not isinstance(error, Exception)
