"""Has the database the shape this code expects?

Steps go forward only, all of them in one transaction, so several processes may start at once. A database
that is newer than the code is refused.
"""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from holdfast.model.errors import StoreError
from holdfast.stores.sqlite.connection import connect, insist


def shipped() -> dict[int, str]:
    """The steps this code comes with, by number."""
    folder = files("holdfast.stores.sqlite.migrations")
    steps = {int(f.name[:4]): f.read_text() for f in folder.iterdir() if f.name.endswith(".sql")}
    return dict(sorted(steps.items()))


def migrate(path: Path, steps: Mapping[int, str] | None = None) -> None:
    """Bring the database at `path` up to date."""
    wanted = shipped() if steps is None else steps
    try:
        with closing(connect(path)) as connection:
            insist(connection, "PRAGMA journal_mode = WAL")
            if _version(connection, path, wanted) < max(wanted):
                _apply(connection, path, wanted)
    except sqlite3.Error as error:
        raise StoreError(f"the database '{path}' cannot be brought up to date: {error}") from error


def _version(connection: sqlite3.Connection, path: Path, wanted: Mapping[int, str]) -> int:
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migration'").fetchall()
    if not known:
        return 0
    [(version,)] = connection.execute("SELECT coalesce(max(version), 0) FROM schema_migration").fetchall()
    if version > max(wanted):
        raise StoreError(
            f"the database '{path}' is at version {version}, newer than this holdfast knows ({max(wanted)});"
            " upgrade holdfast"
        )
    return int(version)


def _apply(connection: sqlite3.Connection, path: Path, wanted: Mapping[int, str]) -> None:
    insist(connection, "BEGIN EXCLUSIVE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_migration ("
            "version INTEGER NOT NULL PRIMARY KEY, applied_at REAL NOT NULL) STRICT"
        )
        done = _version(connection, path, wanted)  # again: another process may have been faster
        for version, script in wanted.items():
            if version > done:
                for statement in _statements(script):
                    connection.execute(statement)
                connection.execute("INSERT INTO schema_migration VALUES (?, ?)", (version, time.time()))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """One at a time: `executescript` would commit before it starts."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
