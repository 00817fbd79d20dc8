"""How do many calls share one durable commit?

Every job that waits runs in one transaction; it is committed, and only then are all of them answered: nothing
is acknowledged before it is durable (AUD+). A job that fails takes no neighbour with it (DEC-1): the batch is
run again, each job under a savepoint of its own. Savepoints are the second try because each statement costs
more turns at the interpreter's lock than it costs SQLite.
"""

import asyncio
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar, TypeVarTuple, Unpack, cast

from holdfast.model.errors import HoldfastError, StoreError
from holdfast.records.chain import GENESIS, Chain, Mark, Record
from holdfast.stores.sql.engine import (
    ACTIVE_VERSION,
    HALTS,
    OPEN_CHAIN,
    AmbiguousCommit,
    Row,
    Transaction,
    Values,
    Withdrawn,
)
from holdfast.stores.sqlite.connection import LOCK_S, Connect, connect, insist, is_busy

log = logging.getLogger(__name__)

BATCH = 256
"""Most jobs in one commit: bounds how long the first of them waits for the last."""
CHECKPOINT_PAGES = 4000
"""About 16 MB of log before it is folded back: often enough to stay small, seldom enough to be cheap."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERTS = {rows: f"INSERT INTO record VALUES {', '.join([_ROW] * rows)}" for rows in (32, 8, 1)}  # noqa: S608
"""Several records in one statement; constant texts, so that each is prepared once."""


_TIP = """
SELECT seq, hash FROM (
  SELECT seq, hash FROM record WHERE writer = ?1
  UNION ALL SELECT seq, hash FROM chain_head WHERE tenant = '*' AND writer = ?1
) ORDER BY seq DESC LIMIT 1
"""


class SqliteTransaction:
    """What jobs write with. Records wait in `pending` and go in together, last.

    Nothing here ever waits: a job is over when it was started, on the event loop as in the thread.
    """

    def __init__(self, connection: sqlite3.Connection, chain: Chain) -> None:
        self._execute = connection.execute
        self._many = connection.executemany
        self.chain = chain
        self.pending: list[Record] = []
        self._halts: dict[str, tuple[str, str]] | None = None
        self._promoted: list[Row] | None = None
        self._braked = False

    async def run(self, statement: str, values: Values = ()) -> int:
        return self._execute(statement, values).rowcount

    async def one(self, statement: str, values: Values = ()) -> Row | None:
        row: Row | None = self._execute(statement, values).fetchone()
        return row

    async def all(self, statement: str, values: Values = ()) -> list[Row]:
        return self._execute(statement, values).fetchall()

    async def many(self, statement: str, rows: Sequence[Values]) -> None:
        self._many(statement, rows)

    def record(self, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
        self.pending.append(self.chain.append(tenant, call_id, kind, at, body))

    def write_records(self) -> None:
        if self.pending and self.pending[0].seq == 1:
            self._execute(OPEN_CHAIN, (self.chain.writer, GENESIS))  # so that the sequencer knows of us
        done = 0
        for rows, statement in _INSERTS.items():
            while len(self.pending) - done >= rows:
                self._execute(statement, tuple(chain.from_iterable(self.pending[done : done + rows])))
                done += rows

    async def brake(self) -> None:
        """Nobody else writes now; but what was read before must be read again."""
        self._braked = True

    async def alone(self, office: str) -> None:
        """There is one writer at a time over all processes."""

    async def halts(self) -> dict[str, tuple[str, str]]:
        """Read once per transaction."""
        if self._halts is None or self._braked:
            self._halts = {target: (by, note) for target, by, note in self._execute(HALTS).fetchall()}
        return self._halts

    async def promoted(self) -> str | None:
        if self._promoted is None or self._braked:
            self._promoted = self._execute(ACTIVE_VERSION).fetchall()
        return self._promoted[0][0] if self._promoted else None

    async def shred(self) -> None:
        self._execute("PRAGMA secure_delete = ON")

    def ring(self, what: str) -> None:
        """Nobody listens: processes look again often enough."""

    def forget(self) -> None:
        """Something that was read once may have been taken back."""
        self._halts = None
        self._promoted = None


class _Job(NamedTuple):
    durable: bool
    run: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: asyncio.Future[Any]
    long: bool = False  # it would keep the event loop from others


class _Locked(Exception):
    """Another process has the database."""


_Answer = tuple["asyncio.Future[Any]", Any, BaseException | None]


class _Written(NamedTuple):
    """A batch whose transaction lacks only its commit."""

    batch: list[_Job]
    answers: list[_Answer]
    transaction: SqliteTransaction
    mark: Mark


class SqliteWriter:
    """Jobs run on the event loop; the commit, which waits for the disk, runs in a thread.

    Python statements that alternate between two threads cost more than they do: each gives up the
    interpreter lock and waits to get it back. So the thread gets one thing to do per batch. A whole batch
    goes there only when another process has the database, or when one of its jobs takes long.
    """

    def __init__(self, path: Path, name: str, lock_s: float = LOCK_S, connect: Connect = connect) -> None:
        self._path = path
        self._lock_s = lock_s
        self._connect = connect
        self._chain = Chain(name)
        self._chain_known = True  # a new name has no records yet
        self._waiting: deque[_Job] = deque()
        self._work: SimpleQueue[_Written | list[_Job] | None] = SimpleQueue()
        self._busy = False  # the connection is the thread's
        self._due = False  # a turn is on its way
        self._idle = asyncio.Event()
        self._synchronous = ""
        self._closed = True

    def open(self) -> None:
        """Must be called on the event loop whose tasks will submit jobs."""
        self._loop = asyncio.get_running_loop()
        folding = f"wal_autocheckpoint = {CHECKPOINT_PAGES}"
        self._connection = self._connect(self._path, 0.0, folding, any_thread=True)
        self._thread = threading.Thread(target=self._finish_batches, name="holdfast-writer", daemon=True)
        self._closed = False
        self._idle.set()
        self._thread.start()

    @property
    def idle(self) -> bool:
        """Nothing is being written."""
        return self._idle.is_set()

    async def close(self) -> None:
        """Everything submitted so far is still written and answered."""
        if not self._closed:
            await self._idle.wait()
            self._closed = True
            self._work.put(None)
            await asyncio.to_thread(self._thread.join)
            self._connection.close()

    def submit(
        self,
        tenant: str,
        durable: bool,
        job: Callable[[Transaction, Unpack[Ts]], Awaitable[T]],
        *arguments: *Ts,
    ) -> asyncio.Future[T]:
        """Queue a job; `durable`: it must survive a power cut before it is answered."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue(_Job(durable, job, arguments, future))
        return future

    def submit_long(
        self, tenant: str, job: Callable[[Transaction, Unpack[Ts]], Awaitable[T]], *arguments: *Ts
    ) -> asyncio.Future[T]:
        """Queue a durable job that touches many rows: its batch runs in the thread."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue(_Job(True, job, arguments, future, long=True))
        return future

    def _queue(self, job: _Job) -> None:
        if self._closed:
            raise StoreError("the store is closed; open it again")
        self._waiting.append(job)
        self._idle.clear()
        self._take_turn()

    # -- on the event loop -------------------------------------------------------

    def _take_turn(self) -> None:
        """After whatever else is ready now: those callers' jobs can share the commit."""
        if not self._due and not self._busy:
            self._due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._due = False
        if not self._waiting:
            self._idle.set()
            return
        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        self._busy = True
        if any(job.long for job in batch):
            self._work.put(batch)
            return
        try:
            written = self._write(batch, lock_s=0.0)
        except _Locked:
            self._work.put(batch)
            return
        if isinstance(written, _Written):
            self._work.put(written)
        else:
            self._answer(written)

    def _answer(self, answers: list[_Answer]) -> None:
        self._busy = False
        _deliver(answers)
        self._take_turn()

    # -- in the thread -----------------------------------------------------------

    def _finish_batches(self) -> None:
        while (work := self._work.get()) is not None:
            written = work if isinstance(work, _Written) else self._write(work, self._lock_s)
            answers = self._commit(written) if isinstance(written, _Written) else written
            try:
                self._loop.call_soon_threadsafe(self._answer, answers)
            except RuntimeError:  # the loop is gone, and with it everybody who waited
                log.warning("%d answers of the store came after the event loop had ended", len(answers))

    # -- wherever the connection is ----------------------------------------------

    def _write(self, batch: list[_Job], lock_s: float) -> "_Written | list[_Answer]":
        """Run all jobs in one transaction; the answers alone when nothing of it may be kept."""
        mark = self._chain.mark()
        durable = any(job.durable for job in batch)
        try:
            transaction = self._begin(durable, lock_s)
            self._find_tip()
            mark = self._chain.mark()
            try:
                answers: list[_Answer] = [
                    (job.future, _over(job.run(transaction, *job.arguments)), None) for job in batch
                ]
            except Exception:  # one of them; which, and what of it was written, the slow way tells
                self._roll_back()
                self._chain.reset(mark)
                transaction = self._begin(durable, lock_s)
                answers = [self._run(job, transaction) for job in batch]
            transaction.write_records()
        except _Locked:
            self._roll_back()
            self._chain.reset(mark)
            raise
        except Exception as error:  # nothing was committed, whatever it was
            self._roll_back()
            self._chain.reset(mark)
            return _all_failed(batch, StoreError(f"the store did not take the write: {error}"))
        return _Written(batch, answers, transaction, mark)

    def _commit(self, written: _Written) -> list[_Answer]:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            self._chain.reset(written.mark)
            self._chain_known = False  # whether it went on, the next batch finds out
            failed = AmbiguousCommit(f"the store may not have taken the write: {error}")
            return _all_failed(written.batch, failed)
        return written.answers

    def _begin(self, durable: bool, lock_s: float) -> SqliteTransaction:
        level = "FULL" if durable else "NORMAL"
        if level != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level
        try:
            insist(self._connection, "BEGIN IMMEDIATE", lock_s)
        except sqlite3.OperationalError as error:
            if lock_s == 0 and is_busy(error):
                raise _Locked from None
            raise
        return SqliteTransaction(self._connection, self._chain)

    def _run(self, job: _Job, transaction: SqliteTransaction) -> _Answer:
        """Run a job so that its failure is its own."""
        execute = self._connection.execute
        mark, records = self._chain.mark(), len(transaction.pending)
        execute("SAVEPOINT job")
        answer: Any = None
        failure: BaseException | None = None
        try:
            answer = _over(job.run(transaction, *job.arguments))
        except Withdrawn as withdrawn:
            answer = withdrawn.answer
        except HoldfastError as error:
            failure = error
        except Exception as error:
            failure = StoreError(f"the store did not take the write: {error}")
            failure.__cause__ = error
        else:
            execute("RELEASE job")
            return job.future, answer, None
        # A full disk may have ended the whole transaction: then this fails, and with it the batch.
        execute("ROLLBACK TO job")
        execute("RELEASE job")
        self._chain.reset(mark)
        del transaction.pending[records:]
        transaction.forget()
        return job.future, answer, failure

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            log.exception("a failed transaction could not be rolled back")

    def _find_tip(self) -> None:
        """Where our chain ends: a commit that failed may have happened."""
        if not self._chain_known:
            tip = self._connection.execute(_TIP, (self._chain.writer,)).fetchone()
            self._chain.reset((0, GENESIS) if tip is None else (tip[0], bytes(tip[1])))
            self._chain_known = True


def _over(job: Awaitable[Any]) -> Any:
    """What a job answers that never waits."""
    try:
        cast(Coroutine[Any, Any, Any], job).send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a job waited for something that is not the database")


def _deliver(answers: list[_Answer]) -> None:
    for future, answer, failure in answers:
        if future.done():
            continue  # whoever waited was cancelled
        if failure is None:
            future.set_result(answer)
        else:
            future.set_exception(failure)


def _all_failed(batch: list[_Job], error: StoreError) -> list[_Answer]:
    return [(job.future, None, type(error)(*error.args)) for job in batch]
