"""All of a schema at one moment: a read-only transaction that sees nothing newer."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg

from holdfast.model.errors import StoreError
from holdfast.stores.backup.snapshot import Row, Values
from holdfast.stores.postgres.connection import LOST, Connection, connect, describe, hang_up
from holdfast.stores.postgres.dialect import said
from holdfast.stores.postgres.migrate import shipped

SHAPES = {7: 4, 8: 7, 9: 8, 10: 9, 11: 10, 12: 11, 13: 12}
"""From which of the steps here on the tables are those that SQLite's step of that number makes."""
SCHEMA = "holdfast"
BATCH = 500

PATIENT = {"statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
"""A whole store is read at the pace of whoever writes it down."""
FAILED = (asyncpg.PostgresError, *LOST)

_COLUMNS = """
SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""


class PostgresSnapshot:
    engine = "postgresql"

    def __init__(self, connection: Connection, place: str, schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self.place = place

    async def shape(self) -> int:
        [(version,)] = await self.all("SELECT max(version) FROM schema_migration")
        if version > max(shipped()):
            raise StoreError(f"'{self.place}' is newer than this holdfast knows; upgrade holdfast")
        return shape_of(version)

    async def columns(self, table: str) -> list[str]:
        return [name for (name,) in await self.all(_COLUMNS, (f"{self._schema}.{table}",))]

    async def all(self, statement: str, values: Values = ()) -> list[Row]:
        text, used = said(statement, values)
        try:
            return [tuple(row) for row in await self._connection.fetch(text, *used)]
        except FAILED as error:
            raise self._unreadable(error) from error

    async def stream(self, statement: str, values: Values = ()) -> AsyncIterator[list[Row]]:
        text, used = said(statement, values)
        try:
            cursor = await self._connection.cursor(text, *used)
            while batch := await cursor.fetch(BATCH):
                yield [tuple(row) for row in batch]
        except FAILED as error:
            raise self._unreadable(error) from error

    async def close(self) -> None:
        await hang_up(self._connection)

    def _unreadable(self, error: BaseException) -> StoreError:
        return StoreError(f"the database '{self.place}' cannot be read: {describe(error)}")


async def snapshot(url: str, schema: str = SCHEMA) -> PostgresSnapshot:
    """Of one schema; raises StoreError."""
    place = f"{shown(url)}, schema {schema}"
    try:
        connection = await connect(url, settings={**PATIENT, "search_path": schema, "holdfast.tenant": "*"})
    except LOST as error:
        raise StoreError(f"the database '{place}' cannot be opened: {describe(error)}") from error
    try:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        found = PostgresSnapshot(connection, place, schema)
        if await found.shape() != max(SHAPES):
            raise StoreError(
                f"'{place}' is older than this holdfast: open it once with this one, then try again"
            )
    except FAILED as error:
        await hang_up(connection)
        raise StoreError(f"the database '{place}' cannot be read: {describe(error)}") from error
    except BaseException:
        await hang_up(connection)
        raise
    return found


def shown(url: str) -> str:
    """Where it is, without a password."""
    parts = urlsplit(url)
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"


def shape_of(version: int) -> int:
    return max((shape for shape, step in SHAPES.items() if step <= version), default=0)


def steps_of(shape: int) -> dict[int, str]:
    """The steps that lead to tables of this shape."""
    return {version: step for version, step in shipped().items() if shape_of(version) <= shape}
