"""Is the file in which DBOS keeps what is under way whole, whoever makes it at once, and whatever kills them?

DBOS runs the statements that make its tables one by one: two processes that start at once get in each other's
way, and one that is killed in between leaves a file with which nothing starts any more. Here they run in one
transaction. DBOS, which looks again, finds nothing left to do.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import sqlalchemy
from dbos._sys_db_sqlite import SQLiteSystemDatabase

from holdfast.model.errors import StoreError
from holdfast.stores.sqlite.connection import LOCK_S, connect, insist, is_busy

PAUSE_S = 0.01
_VERSIONS = "dbos_migrations"


def prepare(path: Path) -> None:
    """Raises StoreError."""
    try:
        with closing(connect(path)) as connection:
            insist(connection, "PRAGMA journal_mode = WAL")  # five times as fast
            if _is_half_made(connection):
                _clear(connection)
        _migrate(path)
    except (sqlite3.Error, sqlalchemy.exc.SQLAlchemyError) as error:
        raise StoreError(
            f"the file '{path}', in which chains that are under way are noted, cannot be prepared: {error}; "
            "remove it while nothing uses it: the runs themselves are in the store, and go on"
        ) from error


def _is_half_made(connection: sqlite3.Connection) -> bool:
    """An older version of this was killed while it made it: nothing was ever kept there."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE name = ?", (_VERSIONS,)).fetchall()
    return bool(tables) and not connection.execute(f"SELECT 1 FROM {_VERSIONS}").fetchall()  # noqa: S608


def _clear(connection: sqlite3.Connection) -> None:
    insist(connection, "BEGIN IMMEDIATE")
    if _is_half_made(connection):  # still
        named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in named:
            if not table.startswith("sqlite_"):
                connection.execute(f'DROP TABLE "{table}"')
    connection.execute("COMMIT")


def _migrate(path: Path) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", connect_args={"timeout": LOCK_S})
    sqlalchemy.event.listen(engine, "connect", _leave_it_to_us)
    sqlalchemy.event.listen(engine, "begin", _begin)
    until = time.monotonic() + LOCK_S
    try:
        while True:
            try:
                cast(Any, SQLiteSystemDatabase).run_migrations(SimpleNamespace(engine=engine))
                return
            except sqlalchemy.exc.OperationalError as error:  # another one was faster: look again
                busy = isinstance(error.orig, sqlite3.Error) and is_busy(error.orig)
                if not busy or time.monotonic() >= until:
                    raise
            time.sleep(PAUSE_S)
    finally:
        engine.dispose()


def _leave_it_to_us(connection: Any, _: object) -> None:
    """The driver would begin a transaction before rows are written, and not before tables are made."""
    connection.isolation_level = None


def _begin(connection: sqlalchemy.Connection) -> None:
    """Where nothing is to be made it only reads, and waits for nobody."""
    connection.exec_driver_sql("BEGIN")
