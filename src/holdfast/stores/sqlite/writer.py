"""How do many calls share one durable commit?

One thread per process owns the write connection. It takes every job that waits, runs them in one transaction,
commits and only then answers all of them: nothing is acknowledged before it is durable (AUD+). A job that
fails takes no neighbour with it (DEC-1): the batch is run again, each job under a savepoint of its own.
Savepoints are the second try because every statement costs two more turns at the interpreter's lock than it
costs SQLite.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar, TypeVarTuple, Unpack

from holdfast.model.errors import HoldfastError, StoreError
from holdfast.records.chain import GENESIS, Chain, Record
from holdfast.stores.sqlite.connection import LOCK_S, connect, insist

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
_OPEN_CHAIN = "INSERT INTO chain_head VALUES ('*', ?, 0, ?, 1, '') ON CONFLICT DO NOTHING"


ACTIVE_VERSION = """
SELECT version FROM promotion WHERE tenant = '*' AND ended_by IS NULL ORDER BY number DESC LIMIT 1
"""


class AmbiguousCommit(StoreError):
    """The commit itself failed: whether it happened must be looked up."""


class Withdrawn(Exception):
    """Raised by a job that wants none of its writes kept; `answer` is still its answer."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer


class Transaction:
    """What jobs write with. Records wait in `pending` and go in together, last."""

    def __init__(self, connection: sqlite3.Connection, chain: Chain) -> None:
        self.execute = connection.execute
        self.chain = chain
        self.pending: list[Record] = []
        self._halts: dict[str, tuple[str, str]] | None = None
        self._promoted: list[tuple[str]] | None = None

    def record(self, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
        self.pending.append(self.chain.append(tenant, call_id, kind, at, body))

    def write_records(self) -> None:
        if self.pending and self.pending[0].seq == 1:
            self.execute(_OPEN_CHAIN, (self.chain.writer, GENESIS))  # so that the sequencer knows of us
        done = 0
        for rows, statement in _INSERTS.items():
            while len(self.pending) - done >= rows:
                self.execute(statement, tuple(chain.from_iterable(self.pending[done : done + rows])))
                done += rows

    def halts(self) -> dict[str, tuple[str, str]]:
        """Who halted what, and why; read once per transaction, which nobody else can write during."""
        if self._halts is None:
            rows = self.execute("SELECT target, halted_by, note FROM halt WHERE tenant = '*'").fetchall()
            self._halts = {target: (by, note) for target, by, note in rows}
        return self._halts

    def promoted(self) -> str | None:
        """The version of the policies in force, or None; read once per transaction too."""
        if self._promoted is None:
            self._promoted = self.execute(ACTIVE_VERSION).fetchall()
        return self._promoted[0][0] if self._promoted else None

    def forget_halts(self) -> None:
        """And what else was read once: something of it was written."""
        self._halts = None
        self._promoted = None


class _Job(NamedTuple):
    durable: bool
    run: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: asyncio.Future[Any]


_Answer = tuple["asyncio.Future[Any]", Any, BaseException | None]


class Writer:
    def __init__(self, path: Path, name: str, lock_s: float = LOCK_S) -> None:
        self._path = path
        self._lock_s = lock_s
        self._chain = Chain(name)
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._synchronous = ""
        self._closed = True

    def open(self) -> None:
        """Must be called on the event loop whose tasks will submit jobs."""
        self._loop = asyncio.get_running_loop()
        self._connection = connect(self._path, 0.0, any_thread=True)
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        self._thread = threading.Thread(target=self._work, name="holdfast-writer", daemon=True)
        self._closed = False
        self._thread.start()

    async def close(self) -> None:
        """Everything submitted so far is still written and answered."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join)
            await asyncio.sleep(0)  # lets the last answers arrive
            self._connection.close()

    def submit(
        self, durable: bool, job: Callable[[Transaction, Unpack[Ts]], T], *arguments: *Ts
    ) -> asyncio.Future[T]:
        """Queue a job; `durable`: it must survive a power cut before it is answered."""
        if self._closed:
            raise StoreError("the store is closed; open it again")
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(durable, job, arguments, future))
        return future

    # -- the thread --------------------------------------------------------------

    def _work(self) -> None:
        going_on = True
        while going_on:
            batch, going_on = self._gather()
            if batch:
                answers = self._commit(batch)
                try:
                    self._loop.call_soon_threadsafe(_deliver, answers)
                except RuntimeError:  # the loop is gone, and with it everybody who waited
                    log.warning("%d answers of the store came after the event loop had ended", len(answers))

    def _gather(self) -> tuple[list[_Job], bool]:
        """Everything that waits now, at least one; False when nothing will come after it."""
        job = self._jobs.get()
        batch: list[_Job] = []
        while job is not None:
            batch.append(job)
            if len(batch) == BATCH:
                return batch, True
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return batch, True
        return batch, False

    def _commit(self, batch: list[_Job]) -> list[_Answer]:
        mark = self._chain.mark()
        durable = any(job.durable for job in batch)
        try:
            transaction = self._begin(durable)
            try:
                answers: list[_Answer] = [
                    (job.future, job.run(transaction, *job.arguments), None) for job in batch
                ]
            except Exception:  # one of them; which, and what of it was written, the slow way tells
                self._roll_back()
                self._chain.reset(mark)
                transaction = self._begin(durable)
                answers = [self._run(job, transaction) for job in batch]
            transaction.write_records()
        except Exception as error:  # nothing was committed, whatever it was
            self._roll_back()
            self._chain.reset(mark)
            return _all_failed(batch, StoreError(f"the store did not take the write: {error}"))
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            if not self._is_written(transaction.pending):
                self._chain.reset(mark)
            return _all_failed(batch, AmbiguousCommit(f"the store may not have taken the write: {error}"))
        return answers

    def _begin(self, durable: bool) -> Transaction:
        level = "FULL" if durable else "NORMAL"
        if level != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level
        insist(self._connection, "BEGIN IMMEDIATE", self._lock_s)
        return Transaction(self._connection, self._chain)

    def _run(self, job: _Job, transaction: Transaction) -> _Answer:
        """Run a job so that its failure is its own."""
        execute = self._connection.execute
        mark, records = self._chain.mark(), len(transaction.pending)
        execute("SAVEPOINT job")
        answer: Any = None
        failure: BaseException | None = None
        try:
            answer = job.run(transaction, *job.arguments)
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
        transaction.forget_halts()
        return job.future, answer, failure

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            log.exception("a failed transaction could not be rolled back")

    def _is_written(self, records: list[Record]) -> bool:
        if not records:
            return False
        try:
            found = self._connection.execute(
                "SELECT 1 FROM record WHERE tenant = ? AND writer = ? AND seq = ?", records[-1][:3]
            ).fetchall()
        except sqlite3.Error:
            return False
        return bool(found)


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
