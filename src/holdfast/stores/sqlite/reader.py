"""Rows that are committed. In WAL mode a reader waits for nobody, so it reads on the event loop."""

import asyncio
import sqlite3
from pathlib import Path

from holdfast.model.errors import StoreError
from holdfast.stores.sql.engine import Row, Values
from holdfast.stores.sqlite.connection import READ_LOCK_S, Connect, connect


class SqliteReader:
    def __init__(self, path: Path, connect: Connect = connect) -> None:
        self._path = path
        self._connection = connect(path, READ_LOCK_S, "query_only = 1")

    async def all(self, tenant: str, statement: str, values: Values = ()) -> list[Row]:
        """Always to the end of the rows: a half-read statement would keep the log from being folded back."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot be read: {error}") from error

    async def slow(self, tenant: str, statement: str, values: Values = ()) -> list[Row]:
        """In a thread and on a connection of its own."""
        return await asyncio.to_thread(self._aside, statement, values)

    async def version(self) -> int | None:
        """Counts what other connections commit, of whatever process; this one only reads."""
        [(version,)] = await self.all("*", "PRAGMA data_version")
        return int(version)

    def close(self) -> None:
        self._connection.close()

    def _aside(self, statement: str, values: Values) -> list[Row]:
        try:
            connection = connect(self._path, READ_LOCK_S)
            try:
                return connection.execute(statement, values).fetchall()
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot be read: {error}") from error
