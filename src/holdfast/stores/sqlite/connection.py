"""How is the database opened, and how long may anybody wait for it?"""

import sqlite3
import time
from pathlib import Path
from typing import Protocol

from holdfast.model.errors import StoreError

LOCK_S = 10.0
"""Nobody waits longer for another process's transaction: a stopped process may hold it for hours."""
READ_LOCK_S = 1.0
"""WAL readers wait only while a crashed neighbour's log is recovered, and they wait on the event loop."""
OLDEST = (3, 37, 0)  # STRICT tables

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class Connect(Protocol):
    """How the store gets its connections; a test may want others."""

    def __call__(
        self, path: Path, lock_s: float = LOCK_S, *pragmas: str, any_thread: bool = False
    ) -> sqlite3.Connection: ...


def connect(
    path: Path,
    lock_s: float = LOCK_S,
    *pragmas: str,
    any_thread: bool = False,
    factory: type[sqlite3.Connection] = sqlite3.Connection,
) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions are begun by name."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; use 3.37 or newer")
    try:
        connection = sqlite3.connect(
            path, timeout=lock_s, isolation_level=None, check_same_thread=not any_thread, factory=factory
        )
    except sqlite3.Error as error:
        raise StoreError(f"the database '{path}' cannot be opened: {error}") from error
    try:
        for pragma in ("fullfsync = 1", *pragmas):  # Darwin: an fsync that reaches the disk
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"the database '{path}' cannot be opened: {error}") from error
    return connection


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else has the lock; the low byte is the primary result code."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _BUSY


def insist(connection: sqlite3.Connection, statement: str, lock_s: float = LOCK_S) -> None:
    """Execute what needs a lock, trying often: SQLite's own waiting sleeps up to 100 ms between looks."""
    give_up = time.monotonic() + lock_s
    pause = 0.0002
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= give_up:
                raise
        time.sleep(pause)
        pause = min(1.5 * pause, 0.002)
