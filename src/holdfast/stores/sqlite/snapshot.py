"""All of a database at one moment: a read transaction, which in WAL mode is in nobody's way."""

import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from holdfast.model.errors import StoreError
from holdfast.stores.backup.snapshot import Row, Values
from holdfast.stores.sqlite.migrate import migrate, shipped

BATCH = 500


class SqliteSnapshot:
    engine = "sqlite"

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        copy: "tempfile.TemporaryDirectory[str] | None" = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._copy = copy

    @property
    def place(self) -> str:
        return str(self._path)

    async def shape(self) -> int:
        return _shape(self._connection)

    async def columns(self, table: str) -> list[str]:
        return [name for _, name, *_ in await self.all(f"PRAGMA table_info({table})")]

    async def all(self, statement: str, values: Values = ()) -> list[Row]:
        with self._readable():
            return self._connection.execute(statement, values).fetchall()

    async def stream(self, statement: str, values: Values = ()) -> AsyncIterator[list[Row]]:
        with self._readable():
            cursor = self._connection.execute(statement, values)
            batch = cursor.fetchmany(BATCH)
        while batch:
            yield batch
            with self._readable():
                batch = cursor.fetchmany(BATCH)

    async def close(self) -> None:
        self._connection.close()
        if self._copy is not None:
            self._copy.cleanup()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"the database '{self._path}' cannot be read: {error}") from error


def snapshot(path: Path) -> SqliteSnapshot:
    """Of the database at `path`, brought up to date in a copy where it is older; raises StoreError."""
    connection = _opened(path)
    try:
        shape = _shape(connection)
        newest = max(shipped())
        if shape == newest:
            connection.execute("BEGIN")
            connection.execute(
                "SELECT count(*) FROM schema_migration"
            ).fetchall()  # from here on it stands still
            return SqliteSnapshot(connection, path)
        if shape > newest:
            raise StoreError(
                f"the database '{path}' is at version {shape}, newer than this holdfast knows ({newest});"
                " upgrade holdfast"
            )
        return _brought_up(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"the database '{path}' cannot be read: {error}") from error
    except BaseException:
        connection.close()
        raise


def _brought_up(old: sqlite3.Connection, path: Path) -> SqliteSnapshot:
    folder = tempfile.TemporaryDirectory(prefix="holdfast-")
    copy = Path(folder.name) / "copy.db"
    with closing(sqlite3.connect(copy)) as fresh:
        old.backup(fresh)
    old.close()
    migrate(copy)
    connection = _opened(copy)
    connection.execute("BEGIN")
    return SqliteSnapshot(connection, path, folder)


def _opened(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise StoreError(f"there is no database '{path}'")
    try:
        return sqlite3.connect(
            f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise StoreError(f"the database '{path}' cannot be opened: {error}") from error


def _shape(connection: sqlite3.Connection) -> int:
    [(version,)] = connection.execute("SELECT coalesce(max(version), 0) FROM schema_migration").fetchall()
    return int(version)
