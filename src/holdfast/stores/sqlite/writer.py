"""How do many calls share one durable commit?

Every job that waits runs in one transaction; it is committed, and only then are all of them answered: nothing
is acknowledged before it is durable (AUD+). A job that fails takes no neighbour with it (DEC-1): the batch is
run again, each job under a savepoint of its own. Savepoints are the last try because each statement costs
more turns at the interpreter's lock than it costs SQLite.
"""

import asyncio
import contextlib
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar, TypeVarTuple, Unpack, cast

from holdfast.model.errors import HoldfastError, StoreError
from holdfast.records.chain import GENESIS, Chain, Mark, Record
from holdfast.stores.recent import Recent
from holdfast.stores.sql.engine import AmbiguousCommit, Transaction, Withdrawn
from holdfast.stores.sqlite.connection import LOCK_S, READ_LOCK_S, Connect, connect, insist, is_busy
from holdfast.stores.sqlite.job import Answer, Job, all_failed, deliver
from holdfast.stores.sqlite.jotter import Jotter
from holdfast.stores.sqlite.plain import ALONE, MISSED, PLAIN
from holdfast.stores.sqlite.spool import Spool, Spools
from holdfast.stores.sqlite.standing import Standing
from holdfast.stores.sqlite.transaction import NotPlain, SqliteTransaction
from holdfast.stores.sqlite.turnstile import Turnstile

log = logging.getLogger(__name__)

BATCH = 256
"""Most jobs in one commit: bounds how long the first of them waits for the last."""
GATHERING = 3
"""Turns of the loop for which a batch that still grows is waited for, where the last one was of several."""
CHECKPOINT_PAGES = 4000
"""About 16 MB of log before it is folded back: often enough to stay small, seldom enough to be cheap."""
BATCH_PAGES, JOB_PAGES = 4, 2
"""About what a batch and each of its jobs add to the log."""
QUICK_S = 0.003
"""No longer than this may a commit keep the event loop waiting."""
IDLE_S = 0.0001
"""A turn of the loop that took no longer had nothing else to do."""
MANY = 6
"""So many that wait for one commit outweigh whoever else is kept waiting by it."""
FOLD: Final = "fold"

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_TIP = """
SELECT seq, hash FROM (
  SELECT seq, hash FROM record WHERE writer = ?1
  UNION ALL SELECT seq, hash FROM chain_head WHERE tenant = '*' AND writer = ?1
) ORDER BY seq DESC LIMIT 1
"""


class _Locked(Exception):
    """Another process has the database."""


_Way = Callable[[Job, SqliteTransaction], Any]


class _Written(NamedTuple):
    """A batch whose transaction lacks only its commit."""

    batch: list[Job]
    answers: list[Answer]
    durable: bool
    mark: Mark
    records: list[Record]


class SqliteWriter:
    """Jobs run on the event loop; a commit that waits for the disk runs in a thread where others would wait.

    Python statements that alternate between two threads cost more than they do: each gives up the
    interpreter lock and waits to get it back. So the thread gets one thing to do per batch. A whole batch
    goes there only when another process has the database, or when it is one job that takes long. A commit
    that need not survive a power cut only writes to the log, which is sooner done than handed over; so is
    any other where the disk has been quick and the loop has nothing better to do.
    """

    in_order: Final = True

    def __init__(
        self,
        path: Path,
        name: str,
        lock_s: float = LOCK_S,
        connect: Connect = connect,
        spools: Path | None = None,
    ) -> None:
        """`spools` is the folder in which records wait that belong to no transaction."""
        self._path = path
        self._folder = spools
        self.spool: Spool | None = None
        self._jotter: Jotter | None = None
        self._turnstile: Turnstile | None = None
        self.spools = None if spools is None else Spools(spools)
        self._lock_s = lock_s
        self._connect = connect
        self._chain = Chain(name)
        self.recent = Recent(name)
        self._standing = Standing()
        self._chain_known = True  # a new name has no records yet
        self._waiting: deque[Job] = deque()
        self._work: SimpleQueue[_Written | list[Job] | str | None] = SimpleQueue()
        self._busy = False  # the connection is the thread's
        self._due = False  # a turn is on its way
        self._seen = 0  # how many waited at the last turn
        self._patience = 0  # for how many turns a growing batch is still waited for
        self._due_at = 0.0  # when that was said
        self._unbusied = False  # the loop had nothing else to do
        self._idle = asyncio.Event()
        self._synchronous = ""
        self._unfolded = 0  # pages in the log, about
        self._folded = True  # nothing was written since: the next commit syncs the log's beginning
        self._folding: threading.Thread | None = None  # most of the log is folded beside the writer
        self._rest = False  # what came meanwhile is to be folded too
        self._slow_s = QUICK_S  # what a durable commit took lately, at the worst
        self._closed = True

    def open(self) -> None:
        """Must be called on the event loop whose tasks will submit jobs."""
        self._loop = asyncio.get_running_loop()
        # The log is folded when it is time, beside the writer; this is for what was misjudged.
        folding = f"wal_autocheckpoint = {4 * CHECKPOINT_PAGES}"
        # What a statement of many rows would take back, should it fail, is a few pages: no file for those.
        keeping = "temp_store = MEMORY"
        with contextlib.ExitStack() as undoing:
            self._connection = self._connect(self._path, 0.0, folding, keeping, any_thread=True)
            undoing.callback(self._connection.close)
            self._beside = self._connect(self._path, self._lock_s, any_thread=True)
            undoing.callback(self._beside.close)
            if self._folder is not None:
                looking = self._connect(self._path, READ_LOCK_S, "query_only = 1")
                self.spool = Spool(self._folder, self._chain.writer, looking)
                undoing.callback(self.spool.close)
                self._jotter = Jotter(self._loop, self.spool, self._queue)
                self._turnstile = Turnstile(self._folder / "turn", self._loop)
            undoing.pop_all()
        self._thread = threading.Thread(target=self._finish_batches, name="holdfast-writer", daemon=True)
        self._closed = False
        self._idle.set()
        self._thread.start()

    @property
    def idle(self) -> bool:
        """Nothing is being written."""
        return self._idle.is_set() and (self._jotter is None or self._jotter.idle)

    async def close(self) -> None:
        """Everything submitted so far is still written and answered."""
        if not self._closed:
            while not self.idle:
                if self._jotter is not None:
                    self._jotter.finish()
                await self._idle.wait()
            self._closed = True
            if self._folding is not None:
                await asyncio.to_thread(self._folding.join)
            self._beside.close()
            self._work.put(None)
            await asyncio.to_thread(self._thread.join)
            self._connection.close()
            if self.spool is not None:
                self.spool.close()
            if self._turnstile is not None:
                self._turnstile.close()

    def submit(
        self,
        tenant: str,
        durable: bool,
        job: Callable[[Transaction, Unpack[Ts]], Awaitable[T]],
        *arguments: *Ts,
    ) -> asyncio.Future[T]:
        """Queue a job; `durable`: it must survive a power cut before it is answered."""
        future: asyncio.Future[T] = self._loop.create_future()
        one = Job(durable, job, arguments, future)
        if durable or job not in ALONE or self._jotter is None or self._closed:
            self._queue(one)
        else:
            self._jotter.add(one)
        return future

    def submit_long(
        self, tenant: str, job: Callable[[Transaction, Unpack[Ts]], Awaitable[T]], *arguments: *Ts
    ) -> asyncio.Future[T]:
        """Queue a durable job that touches many rows: it runs in the thread, as a batch of its own."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue(Job(True, job, arguments, future, long=True))
        return future

    def _queue(self, job: Job) -> None:
        if self._closed:
            raise StoreError("the store is closed; open it again")
        self._waiting.append(job)
        if not self._due and not self._busy:
            self._idle.clear()
            self._take_turn()

    # -- on the event loop -------------------------------------------------------

    def _take_turn(self) -> None:
        """After whatever else is ready now: those callers' jobs can share the commit."""
        if not self._due and not self._busy:
            self._due = True
            self._due_at = time.perf_counter()
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        waiting = len(self._waiting)
        if self._patience and self._seen < waiting < BATCH:
            self._seen = waiting
            self._patience -= 1
            self._due_at = time.perf_counter()
            self._loop.call_soon(self._turn)
            return
        self._unbusied = time.perf_counter() - self._due_at < IDLE_S
        self._due = False
        self._seen = 0
        if not waiting:
            self._idle.set()
            return
        self._busy = True
        if self._turnstile is None or self._turnstile.take():
            self._write_next()
        else:
            self._turnstile.wait(self._write_next)  # who comes meanwhile shares the turn

    def _write_next(self) -> None:
        batch = self._next_batch()
        self._patience = GATHERING if len(batch) > 1 else 0
        if batch[0].long:
            self._work.put(batch)
            return
        try:
            written = self._write(batch, lock_s=0.0)
        except _Locked:
            self._work.put(batch)
            return
        if isinstance(written, _Written) and self._waits(written):
            self._work.put(written)
            return
        answers = self._commit(written) if isinstance(written, _Written) else written
        self._end_turn()
        self._answer(answers)

    def _waits(self, written: _Written) -> bool:
        """Whether somebody would be kept from better things by its commit."""
        if self._folded:
            return True
        welcome = self._unbusied or len(written.batch) >= MANY
        return written.durable and (not welcome or self._slow_s >= QUICK_S)

    def _end_turn(self) -> None:
        if self._turnstile is not None:
            self._turnstile.leave()

    def _next_batch(self) -> list[Job]:
        """What has waited longest; a long job goes alone."""
        waiting = self._waiting
        batch = [waiting.popleft()]
        if not batch[0].long:
            while waiting and len(batch) < BATCH and not waiting[0].long:
                batch.append(waiting.popleft())
        return batch

    def _answer(self, answers: list[Answer]) -> None:
        deliver(answers)
        self.recent.call()
        if self._rest:
            self._rest, self._unfolded = False, 0
            self._work.put(FOLD)  # it is little: nobody waits for this but the next batch
            return
        if self._unfolded >= CHECKPOINT_PAGES and self._folding is None:
            self._folding = threading.Thread(target=self._fold_beside, name="holdfast-fold", daemon=True)
            self._folding.start()
        self._busy = False
        self._take_turn()

    def _fold_rest(self) -> None:
        """The log begins anew only when all of it is folded, and others wrote meanwhile."""
        self._folding, self._rest = None, True

    # -- in the thread -----------------------------------------------------------

    def _finish_batches(self) -> None:
        while (work := self._work.get()) is not None:
            answers = self._finished(work)
            self._end_turn()
            try:
                self._loop.call_soon_threadsafe(self._answer, answers)
            except RuntimeError:  # the loop is gone, and with it everybody who waited
                log.warning("%d answers of the store came after the event loop had ended", len(answers))

    def _finished(self, work: "_Written | list[Job] | str") -> list[Answer]:
        if isinstance(work, str):
            self._fold(self._connection)
            self._folded = True
            return []
        if isinstance(work, _Written):
            return self._commit(work)
        try:
            written = self._write(work, self._lock_s)
        except _Locked as locked:
            return all_failed(work, StoreError(str(locked)))
        return self._commit(written) if isinstance(written, _Written) else written

    def _fold(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:  # what is in the log is safe there, and folded another time
            log.warning("the log could not be folded back: %s", error)

    def _fold_beside(self) -> None:
        """In a thread of its own, and on a connection of its own: nobody waits for this."""
        for _ in range(2):  # what comes while most of it is folded is little, and what comes after that less
            self._fold(self._beside)
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it everybody who writes
            self._loop.call_soon_threadsafe(self._fold_rest)

    # -- wherever the connection is ----------------------------------------------

    def _write(self, batch: list[Job], lock_s: float) -> "_Written | list[Answer]":
        """Run all jobs in one transaction; the answers alone when nothing of it may be kept."""
        durable = any(job.durable for job in batch)
        way: _Way = _plainly
        while True:
            try:
                return self._try(batch, durable, lock_s, way)
            except _Locked:
                raise
            except NotPlain:
                way = _together
            except Exception as error:
                if way == self._apart:  # nothing was committed, whatever it was
                    return all_failed(batch, StoreError(f"the store did not take the write: {error}"))
                way = self._apart  # one of them failed; which, and what of it was written, this tells

    def _try(self, batch: list[Job], durable: bool, lock_s: float, way: _Way) -> _Written:
        """All jobs in one way; whatever is raised, nothing is left of it."""
        mark = self._chain.mark()
        try:
            transaction = self._begin(durable, lock_s)
            self._find_tip()
            mark = self._chain.mark()
            answers = [way(job, transaction) for job in batch]
            transaction.write_plain()
            transaction.write_records()
        except Exception:
            self._roll_back()
            self._chain.reset(mark)
            raise
        return _Written(batch, answers, durable, mark, transaction.pending)

    def _commit(self, written: _Written) -> list[Answer]:
        began = time.perf_counter()
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            self._chain.reset(written.mark)
            self._chain_known = False  # whether it went on, the next batch finds out
            self.recent.forget()
            failed = AmbiguousCommit(f"the store may not have taken the write: {error}")
            return all_failed(written.batch, failed)
        self.recent.add(written.records)
        if written.durable and not self._folded:
            self._slow_s = max(time.perf_counter() - began, 0.9 * self._slow_s)
        self._folded = False
        self._unfolded += BATCH_PAGES + JOB_PAGES * len(written.batch)
        return written.answers

    def _begin(self, durable: bool, lock_s: float) -> SqliteTransaction:
        level = "FULL" if durable else "NORMAL"
        try:
            if level != self._synchronous:  # the first of these reads the schema, and that takes a lock too
                insist(self._connection, f"PRAGMA synchronous = {level}", lock_s)
                self._synchronous = level
            insist(self._connection, "BEGIN IMMEDIATE", lock_s)
        except sqlite3.OperationalError as error:
            if is_busy(error):
                raise _Locked(f"the store did not take the write: {error}") from None
            raise
        return SqliteTransaction(self._connection, self._chain, self._standing)

    def _apart(self, job: Job, transaction: SqliteTransaction) -> Answer:
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


def _plainly(job: Job, transaction: SqliteTransaction) -> Answer:
    """Most jobs want rows of which nobody has to know more; the others run in between."""
    plain = PLAIN.get(job.run)
    if plain is not None:
        answer = plain(transaction, *job.arguments)
        if answer is not MISSED:
            return job.future, answer, None
    transaction.write_plain()  # it may look at what those before it wrote
    return _together(job, transaction)


def _together(job: Job, transaction: SqliteTransaction) -> Answer:
    return job.future, _over(job.run(transaction, *job.arguments)), None


def _over(job: Awaitable[Any]) -> Any:
    """What a job answers that never waits."""
    try:
        cast(Coroutine[Any, Any, Any], job).send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a job waited for something that is not the database")
